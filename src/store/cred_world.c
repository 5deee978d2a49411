/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real world of the providers: getenv(3), passwd(5), the wall clock, one blocking HTTP request.
 * Not the object transport: this happens once an hour, before there is a transport, and has other
 * limits.
 */
#include "credentials.h"

#include <curl/curl.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BODY_MAX = 256 << 10 };

static const char *real_getenv(const struct cred_world *w, const char *name)
{
	return getenv(name);
}

static int64_t real_wall(const struct cred_world *w)
{
	return (int64_t)time(NULL);
}

/* As "~" is understood by a shell that knows no HOME. */
static int real_home(const struct cred_world *w, struct str *out)
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

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct str *body = arg;
	n *= size;
	if (n > BODY_MAX - body->b.len)
		return 0;
	str_addn(body, bytes, n);
	return str_ok(body) ? n : 0;
}

static struct curl_slist *make_header(const struct cred_fetch *req)
{
	struct curl_slist *header = curl_slist_append(NULL, "Accept: application/json, text/xml");
	for (size_t i = 0; header && i < 4 && req->header[i]; i++) {
		struct curl_slist *longer = curl_slist_append(header, req->header[i]);
		if (!longer)
			curl_slist_free_all(header);
		header = longer;
	}
	return header;
}

static void prepare(CURL *easy, const struct cred_world *w, const struct cred_fetch *req,
		    struct curl_slist *header, struct str *body, char *why)
{
	curl_easy_setopt(easy, CURLOPT_URL, req->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, header);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
	if (req->to_link_local)
		curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	if (w->ca_bundle)
		curl_easy_setopt(easy, CURLOPT_CAINFO, w->ca_bundle);
	if (req->body)
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, req->body);
	else if (strcmp(req->method, "GET") != 0)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
}

static int real_fetch(const struct cred_world *w, const struct cred_fetch *req, long *status,
		      struct str *body, struct err *err)
{
	char why[CURL_ERROR_SIZE] = "";
	CURL *easy = curl_easy_init();
	struct curl_slist *header = make_header(req);
	int rc = -ENOMEM;
	if (easy && header) {
		prepare(easy, w, req, header, body, why);
		const CURLcode result = curl_easy_perform(easy);
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, status);
		rc = result == CURLE_OK ? 0 : result == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EIO;
		if (rc)
			err_set(err, rc, "%s: %s", req->url,
				why[0] ? why : curl_easy_strerror(result));
	} else {
		err_set(err, rc, "%s: no memory", req->url);
	}
	curl_slist_free_all(header);
	if (easy)
		curl_easy_cleanup(easy);
	return rc;
}

struct cred_world cred_world_real(const struct env *env)
{
	return (struct cred_world){.env = env,
				   .getenv = real_getenv,
				   .wall = real_wall,
				   .fetch = real_fetch,
				   .home = real_home};
}
