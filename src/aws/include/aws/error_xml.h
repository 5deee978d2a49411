/* SPDX-License-Identifier: Apache-2.0 */
/* The error document of S3 ("REST error responses", Amazon S3 API Reference) and of STS. Pure. */
#ifndef AWS_ERROR_XML_H
#define AWS_ERROR_XML_H

#include <stdbool.h>
#include <stddef.h>

struct s3_error {
	char code[64]; /* "NoSuchKey"; "" when the document has none */
	char message[256];
	char request_id[64];
	char region[32]; /* of the bucket, if the document names it */
};

/* Reads an error document; members that are too long are cut. Returns false, with all members "",
 * if the bytes are not an error document. */
bool s3_error_parse(const void *bytes, size_t n, struct s3_error *out);

#endif
