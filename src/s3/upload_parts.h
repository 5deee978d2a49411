/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an upload: see upload_parts.c. */
#ifndef S3_UPLOAD_PARTS_H
#define S3_UPLOAD_PARTS_H

#include "s3_internal.h"

struct s3_parts {
	struct s3_operation *op;
	const char *upload; /* the server's name */
	uint64_t size, part_size;
	unsigned int n; /* number of parts */
	char (*etags)[STORE_ETAG_MAX];
};

/* Sends all parts and fills in their ETags. Blocks. On failure, returns a negative errno or
 * S3_UNPROVEN, with the reason in the answer's err. No part is then in progress. */
int s3_parts_send(const struct s3_parts *parts);
/* Waits before another attempt after a temporary failure. `failures` (from 1) is the number of
 * failures so far. Returns false if there have been enough. */
bool s3_parts_wait(struct s3_operation *op, unsigned int failures);

#endif
