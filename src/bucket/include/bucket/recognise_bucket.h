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
 * If the place is a domain that a listing shows (struct schema_mark), *place says which bucket to
 * open in its place. The caller releases *place. */
struct recognised {
	/* The place is an empty directory that is to become a bucket: call recognise_make() when
	 * nothing else can fail. */
	bool becomes;
	bool has_marks; /* it has domains that a listing shows */
	/* NULL, or the bucket above the place, and the name of the place in it; on the heap. */
	char *above, *name;
};
void recognised_release(struct recognised *place);
int recognise_bucket(const struct engine_options *opt, const struct store_stack_parts *parts,
		     struct recognised *place, struct err *err);
/* Makes a bucket of the directory. */
int recognise_make(const struct engine_options *opt, struct err *err);

#endif
