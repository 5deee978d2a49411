/* SPDX-License-Identifier: Apache-2.0 */
/* From HTTP status and S3 error code to errno: the one table. Pure. */
#ifndef S3_STATUS_H
#define S3_STATUS_H

/* 0 for success (200, 204, 206), else a negative errno; -EAGAIN: a passing fault, to be asked
 * again. code may be "". A code that is known decides, then the status; what is in neither is
 * -EIO. 416 gives -ERANGE. */
int s3_status_errno(long status, const char *code);

#endif
