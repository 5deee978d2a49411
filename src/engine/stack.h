/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of stores under the engine: which implementation, which wrappers, in which order. */
#ifndef ENGINE_STACK_H
#define ENGINE_STACK_H

#include <hsmount/engine.h>

#include <store/meter.h>
#include <store/store.h>

/* "s3://bucket[/prefix]" -> the two, heap, the caller's; prefix is NULL when there is none.
 * -EINVAL, -ENOMEM. */
int stack_split_s3(const char *url, char **bucket, char **prefix, struct err *err);
/* It is a bucket of S3, by its name. */
bool stack_is_s3(const char *bucket);
/* "file:///a/b" and "/a/b" are the directory "/a/b". */
const char *stack_dir(const char *bucket);

/* Parts that can be asked by themselves; they are the stack's. */
struct stack_parts {
	struct store *bottom; /* the implementation */
	struct store *whole;  /* the bucket in S3 without the prefix */
	struct store *count;  /* store_count_read() */
	struct store *disk;   /* store_diskcache_read(); NULL without a cache_dir */
};

/* NULL with err set. env and meter are borrowed. */
struct store *stack_new(const struct env *env, const struct engine_options *opt,
			struct meter *meter, struct stack_parts *parts, struct err *err);

#endif
