/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ETags. In this program an ETag has no quotes; in HTTP it has quotes (RFC 9110, 8.8.3). Pure.
 */
#ifndef S3_ETAG_H
#define S3_ETAG_H

#include <store/store.h>

/* Reads the value of an ETag header, without quotes and the mark of weak ETags. The result is "" if
 * the ETag is too long or has bytes that a header must not contain. */
void s3_etag_read(const char *text, char etag[STORE_ETAG_MAX]);
/* Returns true if the ETag has the form of an MD5. The ETags of multipart uploads end with "-n"
 * instead. */
bool s3_etag_is_md5(const char *etag);

#endif
