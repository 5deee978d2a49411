/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first request: one key of the bucket. Its answer tells whether the bucket is there, whether
 * we may list it, and in which region it is; a server that names another region is followed once.
 */
#include "s3.h"

#include <errno.h>
#include <string.h>

enum { ROUNDS = 4, BODY_MAX = 1 << 20 };

static int ask(struct s3_store *s, char *region, size_t region_size, struct err *err)
{
	static const struct sigv4_pair query[] = {{"list-type", "2"}, {"max-keys", "1"}};
	auto_s3_call struct s3_call call = {0};
	struct s3_error why;
	const struct s3_request req = {
		.method = "GET", .query = query, .n_query = 2, .body_max = BODY_MAX};
	int rc = s3_call_run(&call, s, &req, &why, err);
	const char *named = call.answer.bucket_region[0] ? call.answer.bucket_region : why.region;
	region[0] = '\0';
	if (rc && strlen(named) < region_size)
		strcpy(region, named);
	if (rc == -ENOENT || strcmp(why.code, "NoSuchBucket") == 0)
		return err_set(err, -ENOENT, "there is no bucket '%s' at %s",
			       str_text(&s->place.bucket), str_text(&s->place.host));
	return rc;
}

static int ask_patiently(struct s3_store *s, char *region, size_t size, struct err *err)
{
	const struct env *env = s->base.env;
	uint64_t pause_ns = 200000000;
	int rc = ask(s, region, size, err);
	for (int i = 1; rc == -EAGAIN && i < ROUNDS; i++, pause_ns *= 2) {
		env->sleep(env, pause_ns);
		rc = ask(s, region, size, err);
	}
	return rc == -EAGAIN ? err_wrap(err, -EIO, "%d attempts", ROUNDS) : rc;
}

int s3_probe(struct s3_store *s, struct err *err)
{
	char region[32];
	int rc = ask_patiently(s, region, sizeof(region), err);
	if (rc && region[0] && strcmp(region, str_text(&s->place.region)) != 0) {
		log_info(s->base.env->log, "bucket %s is in region %s", str_text(&s->place.bucket),
			 region);
		if (s3_place_set_region(&s->place, region))
			return err_set(err, -ENOMEM, "no memory");
		rc = ask_patiently(s, region, sizeof(region), err);
	}
	return rc;
}
