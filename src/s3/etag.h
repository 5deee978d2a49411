/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ETags. In this program an ETag is without quotes; on the wire it has them (RFC 9110, 8.8.3).
 * Pure.
 */
#ifndef S3_ETAG_H
#define S3_ETAG_H

#include <store/store.h>

/* From the wire: without quotes and weakness mark; "" when it does not fit, so that half an ETag
 * is never taken for one, or has bytes that no header may have. */
void s3_etag_read(const char *text, char etag[STORE_ETAG_MAX]);
/* Has the form of an MD5. A multipart upload's has not: it ends with "-n". */
bool s3_etag_is_md5(const char *etag);

#endif
