/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the place that the user names as the bucket really is a bucket. */
#ifndef BUCKET_RECOGNISE_BUCKET_H
#define BUCKET_RECOGNISE_BUCKET_H

#include <hsmount/engine.h>

#include <bucket/store_stack.h>

/* If the place is not a bucket, fails with -EINVAL and a message that says what it is; but an S3
 * prefix that is not recognised, and an empty place if it can be written, only cause a warning in
 * the log. Fails with -EOPNOTSUPP if the schema is not supported, and with the error of a listing
 * that fails.
 *
 * In S3, one listing of a single key recognises a bucket. If that finds nothing, at most 17 small
 * listings follow. Starts threads of the stack and of the pool.
 *
 * *becomes: the place is an empty directory that is to become a bucket: call recognise_make() when
 * nothing else can fail. */
int recognise_bucket(const struct engine_options *opt, const struct store_stack_parts *parts,
		     bool *becomes, struct err *err);
/* Makes a bucket of the directory. */
int recognise_make(const struct engine_options *opt, struct err *err);

#endif
