/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container credential provider (ECS task roles, EKS pod identity): a URL and an authorization
 * token in the environment. The token is sent to the URL, so only the URLs that the AWS
 * SDKs accept are used: any host over https, otherwise only loopback and the fixed addresses of ECS
 * and EKS.
 */
#include "provider.h"

#include <errno.h>
#include <string.h>

enum { TIMEOUT_MS = 2000, TOKEN_MAX = 64 << 10 };

static bool is_trusted(const char *url)
{
	static const char *const hosts[] = {"127.",	     "localhost",      "[::1]",
					    "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
	static const char plain[] = "http://";
	if (strncmp(url, "https://", 8) == 0)
		return true;
	if (strncmp(url, plain, sizeof(plain) - 1) != 0)
		return false;
	const char *host = url + sizeof(plain) - 1;
	/* In "localhost@host" the host is the second one. */
	const size_t n = strcspn(host, "/?#");
	if (memchr(host, '@', n))
		return false;
	const size_t bare = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
	if (strncmp(host, hosts[0], strlen(hosts[0])) == 0)
		return strspn(host, "0123456789.") >= bare;
	for (size_t i = 1; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (bare == strlen(hosts[i]) && strncmp(host, hosts[i], bare) == 0)
			return true;
	return false;
}

static int authorization(const struct aws_environment *w, struct str *header, struct err *err)
{
	auto_secret struct str token = {0};
	const char *file = cred_env(w, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *value = cred_env(w, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
	if (file) {
		int rc = cred_read_file(w, file, TOKEN_MAX, &token, err);
		if (rc)
			return err_wrap(err, rc == -ENOENT ? -EINVAL : rc, "container token");
		value = str_text(&token);
	}
	if (!value)
		return 0;
	/* A second line would become another header. */
	str_addf(header, "Authorization: %.*s", (int)strcspn(value, "\r\n"), value);
	return str_ok(header) ? 0 : err_set(err, -ENOMEM, "container credentials: out of memory");
}

int cred_from_container(const struct aws_environment *w, struct cred *out, struct err *err)
{
	auto_str struct str url = {0};
	auto_secret struct str header = {0}, json = {0};
	const char *relative = cred_env(w, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = cred_env(w, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
	long status = 0;
	if (!relative && !full)
		return -ENOENT;
	if (relative)
		str_addf(&url, "http://169.254.170.2%s", relative);
	else
		str_add(&url, full);
	if (!str_ok(&url))
		return err_set(err, -ENOMEM, "container credentials: out of memory");
	if (!is_trusted(str_text(&url)))
		return err_set(err, -EACCES,
			       "container credentials: no request to '%s': the host is neither "
			       "loopback nor an address of ECS or EKS; use https",
			       str_text(&url));
	int rc = authorization(w, &header, err);
	if (rc)
		return rc;
	const struct cred_fetch req = {.method = "GET",
				       .url = str_text(&url),
				       .header = {header.b.len ? str_text(&header) : NULL},
				       .timeout_ms = TIMEOUT_MS,
				       .to_link_local = true};
	rc = w->fetch(w, &req, &status, &json, err);
	if (rc)
		return err_wrap(err, rc == -ENOENT ? -EIO : rc, "container credentials");
	if (status != 200)
		return err_set(err, -EACCES, "container credentials: status %ld", status);
	return cred_from_json(&json, "Token", "container credentials", out, err);
}
