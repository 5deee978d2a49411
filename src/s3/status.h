/* SPDX-License-Identifier: Apache-2.0 */
/* Maps HTTP status and S3 error code to an errno. Pure. */
#ifndef S3_STATUS_H
#define S3_STATUS_H

#include <stdbool.h>

/* Returns 0 for success (200, 204, 206), otherwise a negative errno. This is -EAGAIN for a
 * temporary failure that is worth a retry. A known code determines the result, otherwise the
 * status. If both are unknown, the result is -EIO. code may be "". 416 gives -ERANGE. */
int s3_status_errno(long status, const char *code);
/* Returns whether the error of a PUT shows that the service has not carried it out. A time-out, an
 * internal error or an answer without a code does not show this. */
bool s3_status_refuses(long status, const char *code);

#endif
