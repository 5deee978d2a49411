/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of this process for the providers: getenv(3), passwd(5), the wall clock, blocking
 * HTTP requests.
 */
#include <aws/credentials.h>
#include <aws/profile.h>
#include <http/fetch.h>

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *real_getenv(const struct aws_environment *w, const char *name)
{
	return getenv(name);
}

static int64_t real_wall(const struct aws_environment *w)
{
	return (int64_t)time(NULL);
}

/* Returns the directory that a shell substitutes for "~" if HOME is not set. */
static int real_home(const struct aws_environment *w, struct str *out)
{
	enum { ENTRY_MAX = 64 << 10 };
	struct passwd entry, *found = NULL;
	auto_free char *buf = malloc(ENTRY_MAX);
	if (!buf || getpwuid_r(geteuid(), &entry, buf, ENTRY_MAX, &found) || !found ||
	    !found->pw_dir || !found->pw_dir[0])
		return -ENOENT;
	str_add(out, found->pw_dir);
	return 0;
}

static int real_fetch(const struct aws_environment *w, const struct cred_fetch *req, long *status,
		      struct str *body, struct err *err)
{
	const struct http_fetch fetch = {
		.method = req->method,
		.url = req->url,
		.header = {req->header[0], req->header[1], req->header[2], req->header[3]},
		.body = req->body,
		.ca_bundle = w->ca_bundle,
		.timeout_ms = req->timeout_ms,
		.no_proxy = req->to_link_local,
	};
	return http_fetch(&fetch, status, body, err);
}

struct aws_environment aws_environment_real(const struct env *env)
{
	return (struct aws_environment){.env = env,
					.getenv = real_getenv,
					.wall = real_wall,
					.fetch = real_fetch,
					.home = real_home};
}

const char *cred_env(const struct aws_environment *w, const char *name)
{
	const char *value = w->getenv(w, name);
	return value && *value ? value : NULL;
}

void cred_release(struct cred *cred)
{
	str_wipe(&cred->access_key);
	str_wipe(&cred->secret_key);
	str_wipe(&cred->token);
	cred->expires = 0;
}
