/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles of the Security Token Service: AssumeRole, which is signed, and AssumeRoleWithWebIdentity,
 * which a token authorizes; and the provider for the web identity of the environment (EKS).
 */
#include "provider.h"

#include <aws/error_xml.h>
#include <aws/time.h>
#include <aws/sigv4.h>
#include <aws/uri.h>
#include <aws/xml.h>

#include <errno.h>
#include <string.h>

enum { TIMEOUT_MS = 10000, TOKEN_MAX = 64 << 10, ATTEMPTS = 3 };

static const char form_type[] = "application/x-www-form-urlencoded; charset=utf-8";

/* ---- the answer: …Response / …Result / Credentials / fields ---- */

static int field(void *arg, const struct xml_path *at, const char *text, size_t n)
{
	struct cred *cred = arg;
	if (at->depth != 4 || strcmp(at->name[3], "Credentials") != 0)
		return 0;
	if (strcmp(at->name[4], "AccessKeyId") == 0)
		str_addn(&cred->access_key, text, n);
	else if (strcmp(at->name[4], "SecretAccessKey") == 0)
		str_addn(&cred->secret_key, text, n);
	else if (strcmp(at->name[4], "SessionToken") == 0)
		str_addn(&cred->token, text, n);
	else if (strcmp(at->name[4], "Expiration") == 0)
		cred->expires = s3_time_iso(text);
	return 0;
}

static int read_answer(long status, const struct str *body, struct cred *out, struct err *err)
{
	const struct xml_handler handler = {.end = field, .arg = out};
	struct s3_error why;
	if (status != 200) {
		s3_error_parse(body->b.data, body->b.len, &why);
		return err_set(err, status >= 500 ? -EAGAIN : -EACCES, "STS: status %ld %s: %s",
			       status, why.code, why.message);
	}
	int rc = xml_walk(body->b.data, body->b.len, &handler, err);
	if (rc == 0 && str_text(&out->access_key)[0] && str_text(&out->secret_key)[0] &&
	    str_text(&out->token)[0] && out->expires)
		return 0;
	cred_release(out);
	return err_set(err, -EINVAL, "STS: the answer contains no credentials");
}

/* ---- the request ---- */

struct call {
	struct str url, form, host;
	struct str date, token, authorization; /* header lines; may be "" */
	const char *region;
};

static void release_call(struct call *call)
{
	str_release(&call->url);
	str_wipe(&call->form);
	str_release(&call->host);
	str_release(&call->date);
	str_wipe(&call->token);
	str_wipe(&call->authorization);
}

static void add_field(struct str *form, const char *name, const char *value)
{
	if (!value)
		return;
	str_addf(form, "&%s=", name);
	uri_encode(form, value, strlen(value), false);
}

static int prepare(const struct aws_environment *w, const struct sts_role *role, const char *action,
		   struct call *call, struct err *err)
{
	const char *endpoint = cred_env(w, "AWS_ENDPOINT_URL_STS");
	const char *region = w->region ? w->region : role->region;
	if (!region)
		region = cred_env(w, "AWS_REGION");
	if (!region)
		region = cred_env(w, "AWS_DEFAULT_REGION");
	call->region = region ? region : "us-east-1";
	if (!endpoint)
		endpoint = role->endpoint;
	if (endpoint)
		str_add(&call->url, endpoint);
	else
		str_addf(&call->url, "https://sts.%s.amazonaws.com%s", call->region,
			 strncmp(call->region, "cn-", 3) == 0 ? ".cn" : "");
	const char *host = strstr(str_text(&call->url), "://");
	if (!host)
		return err_set(err, -EINVAL, "STS: endpoint '%s' is not a URL",
			       str_text(&call->url));
	host += 3;
	str_addn(&call->host, host, strcspn(host, "/"));
	/* Drops the path of the endpoint: the signature covers "/". */
	call->url.b.len = (size_t)(host - str_text(&call->url)) + call->host.b.len;
	str_add(&call->url, "/");
	str_addf(&call->form, "Action=%s&Version=2011-06-15", action);
	add_field(&call->form, "RoleArn", role->arn);
	add_field(&call->form, "RoleSessionName", role->session ? role->session : "hsmount");
	add_field(&call->form, "DurationSeconds", role->duration);
	add_field(&call->form, "ExternalId", role->external_id);
	return 0;
}

static int sign(const struct aws_environment *w, const struct cred *base, struct call *call)
{
	char date[SIGV4_DATE_SIZE], hash[SHA256_HEX];
	const char *token = str_text(&base->token);
	const int64_t now = w->wall(w);
	sigv4_date(now, date);
	const struct sigv4_pair header[] = {
		{"content-type", form_type},
		{"host", str_text(&call->host)},
		{"x-amz-date", date},
		{"x-amz-security-token", token},
	};
	int rc = digest_sha256(&(struct piece){call->form.b.data, call->form.b.len}, 1, hash);
	if (rc)
		return rc;
	const struct sigv4_request req = {.method = "POST",
					  .path = "/",
					  .header = header,
					  .n_header = *token ? 4 : 3,
					  .payload = hash};
	const struct sigv4_key key = {.access_key = str_text(&base->access_key),
				      .secret_key = str_text(&base->secret_key),
				      .region = call->region,
				      .service = "sts"};
	str_addf(&call->date, "x-amz-date: %s", date);
	if (*token)
		str_addf(&call->token, "x-amz-security-token: %s", token);
	str_add(&call->authorization, "Authorization: ");
	struct sigv4_signer *signer = sigv4_signer_new();
	rc = signer ? sigv4_authorization(signer, &req, &key, now, &call->authorization) : -ENOMEM;
	sigv4_signer_free(signer);
	return rc;
}

static int send(const struct aws_environment *w, const struct call *call, struct cred *out,
		struct err *err)
{
	auto_secret struct str body = {0};
	auto_str struct str type = {0};
	long status = 0;
	str_addf(&type, "Content-Type: %s", form_type);
	struct cred_fetch req = {.method = "POST",
				 .url = str_text(&call->url),
				 .header = {str_text(&type)},
				 .body = str_text(&call->form),
				 .timeout_ms = TIMEOUT_MS};
	if (call->authorization.b.len) {
		req.header[1] = str_text(&call->date);
		req.header[2] = str_text(&call->authorization);
		req.header[3] = call->token.b.len ? str_text(&call->token) : NULL;
	}
	if (!str_ok(&call->url) || !str_ok(&call->form) || !str_ok(&call->token) || !str_ok(&type))
		return err_set(err, -ENOMEM, "STS: out of memory");
	int rc = w->fetch(w, &req, &status, &body, err);
	if (rc)
		return err_wrap(err, rc == -ENOENT ? -EIO : rc, "STS");
	return read_answer(status, &body, out, err);
}

/* Repeats the request twice if the service is busy. */
static int send_with_retries(const struct aws_environment *w, const struct call *call,
			     struct cred *out, struct err *err)
{
	uint64_t pause_ns = 200000000;
	int rc = send(w, call, out, err);
	for (int i = 1; rc == -EAGAIN && i < ATTEMPTS; i++, pause_ns *= 2) {
		w->env->sleep(w->env, pause_ns);
		rc = send(w, call, out, err);
	}
	if (rc != -EAGAIN)
		return rc;
	err->code = -EIO; /* the callers decide by it, and -EAGAIN is a code of this file */
	return -EIO;
}

int sts_assume_role(const struct aws_environment *w, const struct sts_role *role,
		    const struct cred *base, struct cred *out, struct err *err)
{
	struct call call = {0};
	int rc = prepare(w, role, "AssumeRole", &call, err);
	if (rc == 0 && (rc = sign(w, base, &call)))
		err_set(err, rc, "STS: the request cannot be signed");
	if (rc == 0)
		rc = send_with_retries(w, &call, out, err);
	release_call(&call);
	return rc;
}

int sts_web_identity(const struct aws_environment *w, const struct sts_role *role,
		     const char *token_file, struct cred *out, struct err *err)
{
	auto_secret struct str token = {0};
	struct call call = {0};
	int rc = cred_read_file(w, token_file, TOKEN_MAX, &token, err);
	if (rc)
		return err_wrap(err, rc == -ENOENT ? -EINVAL : rc, "web identity token");
	rc = prepare(w, role, "AssumeRoleWithWebIdentity", &call, err);
	if (rc == 0) {
		add_field(&call.form, "WebIdentityToken", str_text(&token));
		rc = send_with_retries(w, &call, out, err);
	}
	release_call(&call);
	return rc;
}

int cred_from_web_env(const struct aws_environment *w, struct cred *out, struct err *err)
{
	const char *file = cred_env(w, "AWS_WEB_IDENTITY_TOKEN_FILE");
	const struct sts_role role = {.arn = cred_env(w, "AWS_ROLE_ARN"),
				      .session = cred_env(w, "AWS_ROLE_SESSION_NAME")};
	if (!file || !role.arn)
		return -ENOENT;
	return sts_web_identity(w, &role, file, out, err);
}
