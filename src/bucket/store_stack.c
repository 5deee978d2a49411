/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of stores. From the bottom:
 *
 *   dir, or s3     the bucket
 *   fault          if debug_fault is set; below retry, so that injected failures are retried
 *   retry          for s3 only
 *   prefix         for s3://bucket/prefix only
 *   count          counts requests to the bucket; an injected failure counts as a failed request
 *   diskcache      if cache_dir is set; above count, so that an answer from disk is not counted as
 *                  a request
 *
 * No state.
 */
#include <bucket/store_stack.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <bucket/schemas.h>
#include <diskcache/diskcache.h>
#include <names/names.h>
#include <s3/s3.h>

#include "probe.h"

static const char s3_scheme[] = "s3://", file_scheme[] = "file://";

bool store_stack_is_s3(const char *bucket)
{
	return strncmp(bucket, s3_scheme, sizeof(s3_scheme) - 1) == 0;
}

int store_stack_split_s3(const char *url, char **bucket, char **prefix, struct err *err)
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
		return err_set(err, -EINVAL, "%s: the name of the bucket is missing", url);
	*bucket = strndup(name, n);
	*prefix = rest_n ? strndup(rest, rest_n) : NULL;
	if (*bucket && (*prefix || !rest_n))
		return 0;
	free(*bucket);
	free(*prefix);
	return err_no_memory(err);
}

const char *store_stack_dir(const char *bucket)
{
	const size_t n = sizeof(file_scheme) - 1;
	return strncmp(bucket, file_scheme, n) == 0 ? bucket + n : bucket;
}

static struct store *new_dir(const struct env *env, const char *bucket, bool writes,
			     struct err *err)
{
	const char *dir = store_stack_dir(bucket);
	if (dir == bucket && strstr(bucket, "://")) {
		err_set(err, -EINVAL, "%s: must be a directory, file:///DIRECTORY or s3://BUCKET",
			bucket);
		return NULL;
	}
	if (!*dir) {
		err_set(err, -EINVAL, "%s: the name of the directory is missing", bucket);
		return NULL;
	}
	struct store *s = store_dir_new(env, dir, err);
	/* Without it, the directory would be no bucket any more. */
	if (s)
		store_dir_keep(s, probe_new_storages());
	if (s && writes)
		store_dir_sweep(s);
	return s;
}

static struct store *new_s3(const struct env *env, const struct engine_s3_options *opt,
			    const char *bucket, const char *prefix, const char *const *marks,
			    struct store *beside, struct http_stats *meter, struct err *err)
{
	static const enum store_s3_verify verify[] = {
		[ENGINE_S3_VERIFY_AUTO] = STORE_S3_VERIFY_AUTO,
		[ENGINE_S3_VERIFY_ALWAYS] = STORE_S3_VERIFY_ALWAYS,
		[ENGINE_S3_VERIFY_NEVER] = STORE_S3_VERIFY_NEVER,
	};
	auto_free char *below = prefix ? names_join(prefix, "") : NULL;
	if (prefix && !below) {
		err_no_memory(err);
		return NULL;
	}
	const struct store_s3_options s3 = {
		.bucket = bucket,
		.prefix = below,
		.evidence = marks,
		.endpoint = opt->endpoint,
		.region = opt->region,
		.profile = opt->profile,
		.ca_bundle = opt->ca_bundle,
		.expected_bucket_owner = opt->bucket_owner,
		.requester_pays = opt->requester_pays,
		.no_sign_request = opt->no_sign_request,
		.style = opt->path_style ? STORE_S3_STYLE_PATH : STORE_S3_STYLE_AUTO,
		.verify = verify[opt->verify],
		.connections = opt->connections,
		.retry_ms = opt->retry_ms,
		.beside = beside,
		.meter = meter,
	};
	return store_s3_new(env, &s3, err);
}

/* Larger objects are read in parts, which are not kept on disk. */
static const uint64_t max_object = (uint64_t)64 << 20;
/* The cache does not keep a file that was written so recently: a second write within one tick of
 * the file system's clock would not change the ETag. */
static const uint64_t dir_settle_ns = UINT64_C(2) * 1000000000;

int store_stack_identity(const struct store_stack_parts *parts, const char *name, struct str *out,
			 struct err *err)
{
	auto_bytes struct bytes server = {0};
	auto_free char *path = NULL, *bucket = NULL, *prefix = NULL;
	int rc = 0;
	if (!store_stack_is_s3(name))
		path = realpath(store_stack_dir(name), NULL);
	else if (store_stack_split_s3(name, &bucket, &prefix, err))
		return -ENOMEM;
	if (parts->s3)
		rc = store_s3_identity(parts->s3, &server);
	else if (!path && !bucket)
		rc = -errno;
	str_addn(out, (const char *)server.data, server.len);
	str_addf(out, "%s%s%s", path ? path : "", prefix ? "\n" : "", prefix ? prefix : "");
	if (!rc && !str_ok(out))
		rc = -ENOMEM;
	return rc ? err_errno(err, rc, "bucket %s", name) : 0;
}

char *store_stack_name(const char *name)
{
	auto_free char *bucket = NULL, *prefix = NULL;
	auto_str struct str out = {0};
	if (!store_stack_is_s3(name)) {
		char *path = realpath(store_stack_dir(name), NULL);
		return path ? path : strdup(name);
	}
	if (store_stack_split_s3(name, &bucket, &prefix, NULL))
		return NULL;
	str_addf(&out, "%s%s%s%s", s3_scheme, bucket, prefix ? "/" : "", prefix ? prefix : "");
	return str_take(&out);
}

static struct store *new_diskcache(struct store *inner, const struct engine_options *opt, bool s3,
				   const char *scope, struct err *err)
{
	const struct store_diskcache_options disk = {
		.dir = opt->cache_dir,
		.scope = scope,
		.max_bytes = opt->cache_disk_size,
		.max_object = max_object,
		.settle_ns = s3 ? 0 : dir_settle_ns,
	};
	return store_diskcache_new(inner, &disk, err);
}

/* Puts a wrapper on top of the stack. If it is NULL, frees the stack. */
static void wrap(struct store **s, struct store *wrapped)
{
	if (!wrapped)
		store_free(*s);
	*s = wrapped;
}

enum { MARKS_MAX = 8 };

static void free_marks(char *(*marks)[MARKS_MAX + 1])
{
	for (unsigned int i = 0; (*marks)[i]; i++)
		free((*marks)[i]);
}

/* Makes the keys of the marks of the domain at prefix/name; each of these may be NULL. The bucket
 * as a whole is no such domain. Fails with -ENOMEM. */
static int make_marks(const char *prefix, const char *name, char *marks[MARKS_MAX + 1])
{
	const char *mark;
	for (unsigned int i = 0; (prefix || name) && (mark = schema_mark_name(schema_all(), i));
	     i++) {
		assert(i < MARKS_MAX);
		auto_free char *at =
			prefix && name ? names_join(prefix, name) : strdup(prefix ? prefix : name);
		marks[i] = at ? names_join(at, mark) : NULL;
		if (!marks[i])
			return -ENOMEM;
	}
	return 0;
}

struct store *store_stack_new(const struct env *env, const struct engine_options *opt,
			      const char *only, struct store *beside, struct http_stats *meter,
			      struct store_stack_parts *parts, struct err *err)
{
	__attribute__((cleanup(free_marks))) char *marks[MARKS_MAX + 1] = {0};
	auto_free char *bucket = NULL, *prefix = NULL;
	auto_str struct str scope = {0};
	struct store *s;
	const bool s3 = store_stack_is_s3(opt->bucket);
	*parts = (struct store_stack_parts){0};
	if (s3 && store_stack_split_s3(opt->bucket, &bucket, &prefix, err))
		return NULL;
	if (s3 && make_marks(prefix, only, marks)) {
		err_no_memory(err);
		return NULL;
	}
	s = s3 ? new_s3(env, &opt->s3, bucket, prefix, (const char *const *)marks, beside, meter,
			err)
	       : new_dir(env, opt->bucket, opt->write, err);
	parts->s3 = s3 ? s : NULL;
	parts->dir = s3 ? NULL : s;
	if (s && opt->cache_dir && store_stack_identity(parts, opt->bucket, &scope, err))
		wrap(&s, NULL);
	if (s && opt->debug_fault)
		wrap(&s, store_fault_new(s, opt->debug_fault, err));
	if (s && s3) {
		const struct store_retry_options retry = {.budget_ms = opt->s3.retry_ms};
		wrap(&s, store_retry_new(s, &retry, err));
		parts->retry = s;
	}
	parts->whole = s;
	if (s && prefix)
		wrap(&s, store_prefix_new(s, prefix, err));
	if (s)
		wrap(&s, store_count_new(s, err));
	parts->count = s;
	if (s && opt->cache_dir) {
		wrap(&s, new_diskcache(s, opt, s3, str_text(&scope), err));
		parts->disk = s;
	}
	return s;
}

struct store *store_stack_over(struct store *bucket, struct store_stack_parts *parts,
			       struct err *err)
{
	struct store *s = bucket;
	wrap(&s, store_count_new(s, err));
	*parts = (struct store_stack_parts){.whole = bucket, .count = s};
	return s;
}

/* Returns whether a request with this result was answered, even if the answer is that an object is
 * too large. */
static bool was_answered(const char *result)
{
	static const char *const answers[] = {"ok", "absent", "unchanged", "EFBIG", "E2BIG"};
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (strcmp(result, answers[i]) == 0)
			return true;
	return false;
}

uint64_t store_stack_failures(const struct store_stack_parts *parts)
{
	struct store_counts counts;
	uint64_t n = 0;
	store_count_read(parts->count, &counts);
	for (unsigned int op = 0; op < STORE_OPS; op++)
		for (unsigned int i = 0; i < STORE_RESULTS; i++)
			if (!was_answered(store_result_name(i)))
				n += counts.results[op][i];
	return n;
}

/* First the retrying store, because its thread passes requests to the store below. */
void store_stack_stop_threads(const struct store_stack_parts *parts)
{
	if (parts->retry)
		store_retry_stop_thread(parts->retry);
	if (parts->s3)
		store_s3_stop_thread(parts->s3);
}
