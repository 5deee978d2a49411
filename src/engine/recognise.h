/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the place that a user names as the bucket is one. */
#ifndef ENGINE_RECOGNISE_H
#define ENGINE_RECOGNISE_H

#include <hsmount/engine.h>

#include "store_stack.h"

/* Refuses what is no bucket, with a message that says what it is: -EINVAL; -EOPNOTSUPP for a bucket
 * of a schema that cannot be read. In S3 a prefix where nothing is recognised is only warned about.
 * When the place cannot be listed, fails as the listing does.
 *
 * In S3, one listing of one key recognises a bucket; where there is none, at most 17 small listings
 * follow. Starts threads of the stack and of its pool. */
int recognise_bucket(const struct engine_options *opt, const struct store_stack_parts *parts,
		     struct err *err);

#endif
