/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first request: a listing of one key of the bucket or of the prefix. The answer shows whether
 * the bucket exists, whether the credentials allow a listing, and where the bucket is. If the
 * server names another region or endpoint, the request is repeated there, once. If the
 * host contains the bucket by default and the server does not know it, the bucket is moved to the
 * path. If the listing is refused, the objects are requested that the caller names. A user waits
 * for the mount, so time-outs are short here.
 */
#include "s3_internal.h"

#include "error_hints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	ATTEMPTS_MAX = 4,
	TOTAL_MS = 8000,      /* no attempt begins later */
	FIRST_BYTE_MS = 5000, /* limit for each answer */
	AGAIN_MAX_MS = 3000,  /* limit for Retry-After */
	BODY_MAX = 1 << 20,
};

/* Where the bucket is according to an answer. A member is "" if the answer does not say. */
struct redirect {
	char region[32], location[S3_LOCATION_MAX];
	bool in_path;	     /* try the same host with the bucket in the path */
	bool without_bucket; /* try it without the bucket in the path of the endpoint */
};

static void add_hint(const struct s3_request *call, const struct s3_error *why, int rc,
		     struct err *err)
{
	auto_str struct str hint = {0};
	const struct s3_refusal refusal = {.untrusted = call->http.end == HTTP_REFUSED,
					   .status = call->http.status,
					   .code = why->code,
					   .is_signed = call->s->creds != NULL,
					   .of_session = call->of_session,
					   .owner = call->s->owner,
					   .our_time = (int64_t)time(NULL),
					   .server_time = call->answer.date};
	s3_error_hint(&refusal, &hint);
	if (hint.b.len)
		err_wrap(err, rc, "%s", str_text(&hint));
}

/* Refuses an answer that is not a listing, because the server is probably not an S3 service. The
 * XML is not parsed: a bucket may have keys that XML does not allow. */
static int check_listing(const struct s3_store *s, const struct bytes *answer, struct err *err)
{
	static const char root[] = "<ListBucketResult";
	if (!answer->len || !memmem(answer->data, answer->len, root, sizeof(root) - 1))
		return err_set(err, -EIO,
			       "GET %s: the answer is not a listing; %s may not be an S3 service",
			       str_text(&s->endpoint.bucket), str_text(&s->endpoint.host));
	return 0;
}

static bool knows_no_bucket(const struct s3_request *call, const struct s3_error *why, int rc)
{
	const enum http_end end = call->http.end;
	return end == HTTP_UNKNOWN || end == HTTP_REFUSED || rc == -ENOENT ||
	       strcmp(why->code, "NoSuchBucket") == 0;
}

static int try_once(struct s3_store *s, const char *prefix, struct redirect *to, struct err *err)
{
	const struct sigv4_pair query[] = {
		{"list-type", "2"}, {"max-keys", "1"}, {"prefix", prefix}};
	auto_s3_request struct s3_request call = {0};
	struct s3_error why;
	const struct s3_spec req = {.method = "GET",
				    .query = query,
				    .n_query = prefix[0] ? 3 : 2,
				    .body_max = BODY_MAX,
				    .first_byte_ms = FIRST_BYTE_MS};
	int rc = s3_request_run(&call, s, &req, &why, err);
	const bool answered = rc == 0;
	*to = (struct redirect){0};
	if (answered)
		rc = check_listing(s, &call.http.answer, err);
	if (rc == 0)
		return 0;
	to->in_path = s3_endpoint_is_guess(&s->endpoint) &&
		      (answered || knows_no_bucket(&call, &why, rc));
	to->without_bucket = answered || knows_no_bucket(&call, &why, rc);
	if (answered)
		return rc;
	const struct s3_answer *a = &call.answer;
	const char *region = a->bucket_region[0] ? a->bucket_region : why.region;
	const long status = call.http.status;
	if (s3_region_ok(region) && strcmp(region, str_text(&s->endpoint.region)) != 0)
		snprintf(to->region, sizeof(to->region), "%s", region);
	/* At AWS the region determines the host. */
	if (status >= 300 && status < 400 && (s->endpoint.is_custom || !to->region[0]))
		strcpy(to->location, a->location);
	if (rc == -ENOENT || strcmp(why.code, "NoSuchBucket") == 0)
		return err_set(err, -ENOENT, "there is no bucket '%s' at %s%s",
			       str_text(&s->endpoint.bucket), str_text(&s->endpoint.host),
			       why.code[0] ? "" : ", which may not be an S3 service");
	add_hint(&call, &why, rc, err);
	return rc;
}

static int try_with_retries(struct s3_store *s, const char *prefix, struct redirect *to,
			    struct err *err)
{
	const struct env *env = s->base.env;
	const uint64_t ms = 1000000, started = env->now(env);
	uint64_t backoff_ns = 200 * ms;
	int rc = try_once(s, prefix, to, err), attempts = 1;
	for (; rc == -EAGAIN && !to->location[0] && !to->region[0] && !to->in_path &&
	       attempts < ATTEMPTS_MAX;
	     attempts++) {
		const uint64_t pause_ns =
			backoff_ns + min_u64(err->retry_after_ms, AGAIN_MAX_MS) * ms;
		if (env->now(env) - started + pause_ns > TOTAL_MS * ms)
			break;
		env->sleep(env, pause_ns);
		rc = try_once(s, prefix, to, err);
		backoff_ns *= 2;
	}
	if (rc != -EAGAIN)
		return rc;
	err->code = -EIO;
	return attempts == 1 ? -EIO : err_wrap(err, -EIO, "%d attempts", attempts);
}

/* Changes the endpoint to the one that the answer names. Returns 1 if the answer names none. */
static int follow(struct s3_store *s, const struct redirect *to, struct err *err)
{
	int rc = 1;
	if (to->in_path) {
		log_info(s->base.env->log,
			 "bucket %s is not found as part of the host %s: trying it in the path",
			 str_text(&s->endpoint.bucket), str_text(&s->endpoint.host));
		rc = s3_endpoint_use_path(&s->endpoint);
	} else if (to->region[0]) {
		log_info(s->base.env->log, "bucket %s is in region %s",
			 str_text(&s->endpoint.bucket), to->region);
		rc = s3_endpoint_set_region(&s->endpoint, to->region);
	}
	if (rc >= 0 && !to->in_path && to->location[0]) {
		rc = s3_endpoint_redirect(&s->endpoint, to->location, s->creds != NULL);
		if (rc == -EINVAL)
			return err_wrap(err, -EIO,
					"the redirect to '%s' is not followed; if you trust this "
					"server, use -o endpoint",
					to->location);
		log_info(s->base.env->log, "bucket %s is at %s", str_text(&s->endpoint.bucket),
			 str_text(&s->endpoint.host));
	}
	return rc < 0 ? err_set(err, rc, "out of memory") : rc;
}

/* The user may have written the bucket at the end of the endpoint, too. Then the listing is tried
 * without it there. Keeps the error of the first attempt if this one fails, too. */
static int try_without_bucket(struct s3_store *s, const char *prefix, int rc, struct err *err)
{
	struct redirect to = {0};
	struct err why = ERR_INIT;
	auto_str struct str root = {0};
	str_add(&root, str_text(&s->endpoint.root));
	const int dropped = str_ok(&root) ? s3_endpoint_drop_bucket(&s->endpoint) : -ENOMEM;
	if (dropped)
		return dropped < 0 ? err_no_memory(err) : rc;
	if (try_with_retries(s, prefix, &to, &why) == 0) {
		log_warning(s->base.env->log,
			    "the endpoint ends with the name of the bucket; it is used without it: "
			    "%s://%s%s",
			    s->endpoint.tls ? "https" : "http", str_text(&s->endpoint.host),
			    str_text(&s->endpoint.root));
		err_clear(err);
		return 0;
	}
	str_release(&s->endpoint.root);
	s->endpoint.root = root;
	root = (struct str){0};
	return err_wrap(err, rc, "write the endpoint without the bucket");
}

static bool has_object(struct s3_store *s, const char *key)
{
	auto_s3_request struct s3_request call = {0};
	struct err ignored = ERR_INIT;
	const struct s3_spec req = {.method = "HEAD", .key = key, .first_byte_ms = FIRST_BYTE_MS};
	return s3_request_run(&call, s, &req, NULL, &ignored) == 0;
}

int s3_discover(struct s3_store *s, const char *prefix, const char *const *evidence,
		struct err *err)
{
	struct redirect to = {0};
	int rc = try_with_retries(s, prefix, &to, err);
	if (rc == 0)
		return 0;
	const int followed = follow(s, &to, err);
	if (followed < 0)
		return followed;
	if (followed == 0)
		rc = try_with_retries(s, prefix, &to, err);
	if (rc && to.without_bucket)
		rc = try_without_bucket(s, prefix, rc, err);
	for (; rc == -EACCES && evidence && *evidence; evidence++)
		if (has_object(s, *evidence))
			rc = 0;
	return rc;
}
