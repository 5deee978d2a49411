/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of stores. From the bottom:
 *
 *   dir, or s3     the bucket
 *   fault          debug_fault; below the wrapper that asks again, so that it can be seen to do so
 *   retry          s3 only
 *   prefix         s3://bucket/prefix only
 *   count          on top: what a fault stops counts as a request that failed
 *
 * No state.
 */
#include "stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <store/s3.h>

static const char s3_scheme[] = "s3://", file_scheme[] = "file://";

bool stack_is_s3(const char *bucket)
{
	return strncmp(bucket, s3_scheme, sizeof(s3_scheme) - 1) == 0;
}

int stack_split_s3(const char *url, char **bucket, char **prefix, struct err *err)
{
	const char *name = url + sizeof(s3_scheme) - 1;
	const size_t n = strcspn(name, "/");
	const char *rest = name + n;
	while (*rest == '/')
		rest++;
	size_t rest_n = strlen(rest);
	while (rest_n && rest[rest_n - 1] == '/')
		rest_n--;
	*prefix = NULL;
	*bucket = NULL;
	if (n == 0)
		return err_set(err, -EINVAL, "%s: no bucket is named", url);
	*bucket = strndup(name, n);
	*prefix = rest_n ? strndup(rest, rest_n) : NULL;
	if (*bucket && (*prefix || !rest_n))
		return 0;
	free(*bucket);
	free(*prefix);
	return err_set(err, -ENOMEM, "no memory");
}

/* "file:///a/b" and "/a/b" are directories. */
static struct store *new_dir(const struct env *env, const char *bucket, struct err *err)
{
	const char *dir = bucket;
	if (strncmp(bucket, file_scheme, sizeof(file_scheme) - 1) == 0)
		dir = bucket + sizeof(file_scheme) - 1;
	else if (strstr(bucket, "://")) {
		err_set(err, -EINVAL, "%s: a bucket is a directory, file://… or s3://…", bucket);
		return NULL;
	}
	if (!*dir) {
		err_set(err, -EINVAL, "%s: no directory is named", bucket);
		return NULL;
	}
	return store_dir_new(env, dir, err);
}

static struct store *new_s3(const struct env *env, const struct engine_s3_options *opt,
			    const char *bucket, struct meter *meter, struct err *err)
{
	const struct store_s3_options s3 = {
		.bucket = bucket,
		.endpoint = opt->endpoint,
		.region = opt->region,
		.profile = opt->profile,
		.ca_bundle = opt->ca_bundle,
		.expected_bucket_owner = opt->bucket_owner,
		.requester_pays = opt->requester_pays,
		.no_sign_request = opt->no_sign_request,
		.style = opt->path_style ? STORE_S3_STYLE_PATH : STORE_S3_STYLE_AUTO,
		.connections = opt->connections,
		.meter = meter,
	};
	return store_s3_new(env, &s3, err);
}

/* Puts a wrapper on top of the stack. When it could not be made, the stack is gone. */
static void wrap(struct store **s, struct store *wrapped)
{
	if (!wrapped)
		store_free(*s);
	*s = wrapped;
}

struct store *stack_new(const struct env *env, const struct engine_options *opt,
			struct meter *meter, struct err *err)
{
	const struct store_retry_options retry = {.meter = meter};
	auto_free char *bucket = NULL, *prefix = NULL;
	struct store *s;
	const bool s3 = stack_is_s3(opt->bucket);
	if (s3 && stack_split_s3(opt->bucket, &bucket, &prefix, err))
		return NULL;
	s = s3 ? new_s3(env, &opt->s3, bucket, meter, err) : new_dir(env, opt->bucket, err);
	if (s && opt->debug_fault)
		wrap(&s, store_fault_new(s, opt->debug_fault, err));
	if (s && s3)
		wrap(&s, store_retry_new(s, &retry, err));
	if (s && prefix)
		wrap(&s, store_prefix_new(s, prefix, err));
	if (s)
		wrap(&s, store_count_new(s, err));
	return s;
}
