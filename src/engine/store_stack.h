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

/* Parts that can be asked what they have done; they are the stack's. */
struct store_stack_parts {
	struct store *count; /* store_count_read() */
	struct store *retry; /* store_retry_count(); NULL where nothing is repeated */
	struct store *disk;  /* store_diskcache_read(); NULL without a cache_dir */
};

/* NULL with err set. env and meter are borrowed. */
struct store *store_stack_new(const struct env *env, const struct engine_options *opt,
			      struct http_stats *meter, struct store_stack_parts *parts,
			      struct err *err);

#endif
