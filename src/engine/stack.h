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

/* NULL with err set. env and meter are borrowed. */
struct store *stack_new(const struct env *env, const struct engine_options *opt,
			struct meter *meter, struct err *err);

#endif
