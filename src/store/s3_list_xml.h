/* SPDX-License-Identifier: Apache-2.0 */
/* ListBucketResult, the answer to ListObjectsV2 (Amazon S3 API Reference). Pure. */
#ifndef STORE_S3_LIST_XML_H
#define STORE_S3_LIST_XML_H

#include <store/store.h>

#include "str.h"

struct s3_list_result {
	struct store_page page; /* ascending; more is set, next is not */
	struct str token;	/* of the next page, "" when there is none */
	struct str last;	/* greatest key or prefix that was listed, also one left out */
};
void s3_list_release(struct s3_list_result *result);

/* Keys are form-encoded in the document (encoding-type=url) when it says so. Keys that
 * store_key_ok() refuses, that do not begin with prefix, or that are not greater than start_after
 * (may be NULL) are left out; common prefixes only when delimit. The result is to be released
 * whatever is returned. -EBADMSG: no such document; -EIO: one with more
 * items than a page has; -ENOMEM. */
int s3_list_parse(const void *bytes, size_t n, const struct store_list *req,
		  struct s3_list_result *out, struct err *err);

#endif
