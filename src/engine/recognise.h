/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the place that a user names as the bucket is one. */
#ifndef ENGINE_RECOGNISE_H
#define ENGINE_RECOGNISE_H

#include <hsmount/engine.h>

#include <base/log.h>
#include <schema/schema.h>

#include "stack.h"

/* Refuses what is no bucket, with a message that says what it is: -EINVAL; -EOPNOTSUPP for a bucket
 * of schema v1. In S3 a prefix where nothing is recognised is only warned about. When the place
 * cannot be listed, fails as the listing does.
 *
 * In S3, one listing of one key recognises a bucket; where there is none, at most 17 small listings
 * follow. On success no thread of the store runs: a daemon may fork. */
int recognise_bucket(const struct engine_options *opt, const struct schema_ops *schema,
		     const struct stack_parts *parts, struct err *err);

/* Surveys a directory. Reads at most some thousand of its entries. -EACCES, -ENOENT … */
int recognise_survey_dir(const char *dir, const struct schema_ops *schema,
			 struct schema_survey *seen);

#endif
