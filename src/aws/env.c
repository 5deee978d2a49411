/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of the environment, and the JSON form that the other providers share. */
#include "provider.h"

#include "flat_json.h"
#include <aws/time.h>

#include <errno.h>

int cred_from_env(const struct aws_environment *w, struct cred *out, struct err *err)
{
	const char *access = cred_env(w, "AWS_ACCESS_KEY_ID");
	const char *secret = cred_env(w, "AWS_SECRET_ACCESS_KEY");
	const char *token = cred_env(w, "AWS_SESSION_TOKEN");
	if (!access && !secret)
		return -ENOENT;
	if (!access || !secret)
		return err_set(err, -EINVAL, "the environment has %s but not %s",
			       access ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
			       access ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
	str_add(&out->access_key, access);
	str_add(&out->secret_key, secret);
	str_add(&out->token, token ? token : "");
	return 0;
}

int cred_from_json(const struct str *json, const char *token, const char *what, struct cred *out,
		   struct err *err)
{
	auto_str struct str expiration = {0};
	const char *text = str_text(json);
	const size_t n = json->b.len;
	int rc = flat_json_get(text, n, "AccessKeyId", &out->access_key);
	if (rc == 0)
		rc = flat_json_get(text, n, "SecretAccessKey", &out->secret_key);
	if (rc == 0)
		rc = flat_json_get(text, n, token, &out->token);
	/* A process may give keys that are for ever. */
	if (rc == 0 || rc == -ENOENT)
		rc = flat_json_get(text, n, "Expiration", &expiration);
	if (rc == 0) {
		out->expires = s3_time_iso(str_text(&expiration));
		if (out->expires == 0)
			rc = -EINVAL;
	}
	if (rc == -ENOENT)
		rc = 0;
	if (rc == 0 && (!str_text(&out->access_key)[0] || !str_text(&out->secret_key)[0]))
		rc = -EINVAL;
	if (rc == 0)
		return 0;
	cred_release(out);
	return err_set(err, rc, "%s: the answer holds no credentials", what);
}
