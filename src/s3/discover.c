/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first request: one key of the bucket, or below the prefix of it that is shown. Its answer
 * tells whether the bucket is there, whether we may list it, and where it is; a server that names
 * another region or another endpoint is followed once, and one that does not know the bucket in
 * front of its name is asked with the bucket in the path. A user waits for the mount, so time-outs
 * are short here.
 */
#include "internal.h"

#include "error_hints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	ROUNDS = 4,
	PATIENCE_MS = 8000,   /* no attempt begins later */
	FIRST_BYTE_MS = 5000, /* of each answer */
	AGAIN_MAX_MS = 3000,  /* of what a server asks for */
	BODY_MAX = 1 << 20,
};

/* What an answer says of the bucket's place; "" for nothing. */
struct elsewhere {
	char region[32], location[S3_LOCATION_MAX];
	bool in_path; /* the same host, perhaps, but the bucket in the path */
};

static void advise(const struct s3_request *call, const struct s3_error *why, int rc,
		   struct err *err)
{
	auto_str struct str words = {0};
	const struct s3_refusal refusal = {.untrusted = call->http.end == HTTP_REFUSED,
					   .status = call->http.status,
					   .code = why->code,
					   .is_signed = call->s->creds != NULL,
					   .of_session = call->of_session,
					   .owner = call->s->owner,
					   .ours = (int64_t)time(NULL),
					   .its = call->answer.date};
	s3_error_hint(&refusal, &words);
	if (words.b.len)
		err_wrap(err, rc, "%s", str_text(&words));
}

static void read_elsewhere(const struct s3_store *s, const struct s3_request *call,
			   const struct s3_error *why, struct elsewhere *to)
{
	const struct s3_answer *a = &call->answer;
	const char *region = a->bucket_region[0] ? a->bucket_region : why->region;
	const long status = call->http.status;
	if (s3_region_ok(region) && strcmp(region, str_text(&s->endpoint.region)) != 0)
		snprintf(to->region, sizeof(to->region), "%s", region);
	/* Amazon's own hosts follow from the region. */
	if (status >= 300 && status < 400 && (s->endpoint.own_endpoint || !to->region[0]))
		strcpy(to->location, a->location);
}

/* What is no listing at all comes from somebody else. A key that XML cannot hold is no reason to
 * refuse a bucket. */
static int check_listing(const struct s3_store *s, const struct bytes *answer, struct err *err)
{
	static const char root[] = "<ListBucketResult";
	if (!answer->len || !memmem(answer->data, answer->len, root, sizeof(root) - 1))
		return err_set(err, -EIO, "GET %s: no listing came: %s may be no S3 service",
			       str_text(&s->endpoint.bucket), str_text(&s->endpoint.host));
	return 0;
}

static bool knows_no_bucket(const struct s3_request *call, const struct s3_error *why, int rc)
{
	const enum http_end end = call->http.end;
	return end == HTTP_UNKNOWN || end == HTTP_REFUSED || rc == -ENOENT ||
	       strcmp(why->code, "NoSuchBucket") == 0;
}

static int ask(struct s3_store *s, const char *prefix, struct elsewhere *to, struct err *err)
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
	*to = (struct elsewhere){0};
	if (answered)
		rc = check_listing(s, &call.http.answer, err);
	if (rc == 0)
		return 0;
	to->in_path = s3_endpoint_is_guess(&s->endpoint) &&
		      (answered || knows_no_bucket(&call, &why, rc));
	if (answered)
		return rc;
	read_elsewhere(s, &call, &why, to);
	if (rc == -ENOENT || strcmp(why.code, "NoSuchBucket") == 0)
		return err_set(err, -ENOENT, "there is no bucket '%s' at %s%s",
			       str_text(&s->endpoint.bucket), str_text(&s->endpoint.host),
			       why.code[0] ? "" : ", which may be no S3 service");
	advise(&call, &why, rc, err);
	return rc;
}

static bool goes_on(const struct elsewhere *to)
{
	return to->location[0] || to->region[0] || to->in_path;
}

static int ask_patiently(struct s3_store *s, const char *prefix, struct elsewhere *to,
			 struct err *err)
{
	const struct env *env = s->base.env;
	const uint64_t ms = 1000000, started = env->now(env);
	uint64_t backoff_ns = 200 * ms;
	int rc = ask(s, prefix, to, err), asked = 1;
	for (; rc == -EAGAIN && !goes_on(to) && asked < ROUNDS; asked++) {
		const uint64_t pause_ns = backoff_ns + min_u64(err->again_ms, AGAIN_MAX_MS) * ms;
		if (env->now(env) - started + pause_ns > PATIENCE_MS * ms)
			break;
		env->sleep(env, pause_ns);
		rc = ask(s, prefix, to, err);
		backoff_ns *= 2;
	}
	if (rc != -EAGAIN)
		return rc;
	err->code = -EIO;
	return asked == 1 ? -EIO : err_wrap(err, -EIO, "%d attempts", asked);
}

/* Where the answer pointed. Positive: nowhere else; then the answer stands. */
static int move(struct s3_store *s, const struct elsewhere *to, struct err *err)
{
	int rc = 1;
	if (to->in_path) {
		log_info(s->base.env->log, "bucket %s is not at %s: it is asked for in the path",
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
			return err_wrap(err, -EIO, "'%s' is not followed", to->location);
		log_info(s->base.env->log, "bucket %s is at %s", str_text(&s->endpoint.bucket),
			 str_text(&s->endpoint.host));
	}
	return rc < 0 ? err_set(err, rc, "out of memory") : rc;
}

int s3_discover(struct s3_store *s, const char *prefix, struct err *err)
{
	struct elsewhere to = {0};
	int rc = ask_patiently(s, prefix, &to, err);
	if (rc == 0)
		return 0;
	const int moved = move(s, &to, err);
	if (moved < 0)
		return moved;
	return moved == 0 ? ask_patiently(s, prefix, &to, err) : rc;
}
