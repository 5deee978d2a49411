/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of stores under the engine: which implementation, which wrappers, in which order. */
#ifndef ENGINE_STORE_STACK_H
#define ENGINE_STORE_STACK_H

#include <hsmount/engine.h>

#include <http/stats.h>
#include <store/store.h>

/* "s3://bucket[/prefix]" -> the two, heap, the caller's; prefix is NULL when there is none.
 * -EINVAL, -ENOMEM. */
int store_stack_split_s3(const char *url, char **bucket, char **prefix, struct err *err);
/* It is a bucket of S3, by its name. */
bool store_stack_is_s3(const char *bucket);
/* "file:///a/b" and "/a/b" are the directory "/a/b". */
const char *store_stack_dir(const char *bucket);

/* Parts that can be asked by themselves; they are the stack's. */
struct store_stack_parts {
	struct store *s3;    /* the implementation, when it is S3; else NULL */
	struct store *retry; /* store_retry_count(); NULL where nothing is repeated */
	struct store *whole; /* the bucket without the prefix */
	struct store *count; /* store_count_read() */
	struct store *disk;  /* store_diskcache_read(); NULL without a cache_dir */
};

/* NULL with err set. env and meter are borrowed. */
struct store *store_stack_new(const struct env *env, const struct engine_options *opt,
			      struct http_stats *meter, struct store_stack_parts *parts,
			      struct err *err);
/* Ends the threads of the stack's own; its next request starts them again. No request is under
 * way. */
void store_stack_rest(const struct store_stack_parts *parts);

#endif
