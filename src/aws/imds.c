/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instance metadata, version 2 ("Use IMDSv2", Amazon EC2 User Guide): a session token by PUT, the
 * name of the role, its credentials. Outside EC2 there is no answer, so the time-out is short.
 */
#include "provider.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum { TIMEOUT_MS = 1000 };

static int get_metadata(const struct aws_environment *w, const char *method, const char *path,
			const char *header, struct str *body, struct err *err)
{
	auto_str struct str url = {0};
	const char *base = cred_env(w, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
	size_t n;
	long status = 0;
	if (!base)
		base = "http://169.254.169.254";
	n = strlen(base);
	if (n && base[n - 1] == '/')
		n--;
	str_addn(&url, base, n);
	str_add(&url, path);
	if (!str_ok(&url))
		return err_set(err, -ENOMEM, "instance metadata: out of memory");
	const struct cred_fetch req = {.method = method,
				       .url = str_text(&url),
				       .header = {header},
				       .timeout_ms = TIMEOUT_MS,
				       .to_link_local = true};
	int rc = w->fetch(w, &req, &status, body, err);
	if (rc)
		return rc;
	if (status != 200)
		return err_set(err, status == 404 ? -ENOENT : -EACCES,
			       "instance metadata: %s %s: status %ld", method, path, status);
	return 0;
}

int cred_from_imds(const struct aws_environment *w, struct cred *out, struct err *err)
{
	static const char roles[] = "/latest/meta-data/iam/security-credentials/";
	auto_secret struct str token = {0}, header = {0}, json = {0};
	auto_str struct str role = {0}, path = {0};
	const char *off = cred_env(w, "AWS_EC2_METADATA_DISABLED");
	if (off && strcasecmp(off, "true") == 0)
		return -ENOENT;
	/* Without a token, there is no instance metadata service here. */
	if (get_metadata(w, "PUT", "/latest/api/token",
			 "X-aws-ec2-metadata-token-ttl-seconds: 21600", &token, err))
		return -ENOENT;
	str_addf(&header, "X-aws-ec2-metadata-token: %s", str_text(&token));
	int rc = get_metadata(w, "GET", roles, str_text(&header), &role, err);
	if (rc)
		return rc;
	str_add(&path, roles);
	str_addn(&path, str_text(&role), strcspn(str_text(&role), "\r\n"));
	if (!str_ok(&path) || !str_ok(&header))
		return err_set(err, -ENOMEM, "instance metadata: out of memory");
	rc = get_metadata(w, "GET", str_text(&path), str_text(&header), &json, err);
	return rc ? rc : cred_from_json(&json, "Token", "instance metadata", out, err);
}
