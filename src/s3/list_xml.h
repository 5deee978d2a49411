/* SPDX-License-Identifier: Apache-2.0 */
/* ListBucketResult, the answer to ListObjectsV2 (Amazon S3 API Reference). Pure. */
#ifndef S3_LIST_XML_H
#define S3_LIST_XML_H

#include <store/store.h>

#include <base/str.h>

/* What was asked for: as in struct store_request. */
struct s3_list_query {
	const char *prefix;
	const char *start_after; /* NULL: from the beginning */
	bool delimit;
	bool complete; /* an item that cannot be read makes the listing fail, also with delimit */
	uint32_t max;  /* items, at least 1 */
};

struct s3_list_result {
	struct store_page page; /* ascending; more is set, next is not */
	struct str token;	/* of the next page, "" when there is none */
	struct str last;	/* greatest key or prefix that was listed below the prefix, also one
				   left out; no longer than a key may be */
	/* Of the server's items: those that no store may give, although they were asked for. */
	unsigned int unfit;
	struct str first_unfit; /* its key, printable, and what is wrong with it */
};
void s3_list_release(struct s3_list_result *result);

/* Keys are form-encoded in the document (encoding-type=url) when it says so. Keys that do not begin
 * with prefix, or that are not greater than start_after (may be NULL) are left out; common prefixes
 * only when delimit; markers of directories ("a/") too. An item that is bad does not hide others:
 * it is left out and counted when store_key_ok() refuses its key, or when key or size cannot be
 * read. Those last ones only when delimit and not complete, and beside others; else the listing
 * fails, since an object that is there must not be taken for one that is not. The result is to be
 * released whatever is returned. -EBADMSG: no such document, or one that does not say whether it
 * is the last; -EIO: one with more items than a page has, with an item of this kind, or with keys
 * in another order than that of their bytes and more to follow; -ENOMEM. */
int s3_list_parse(const void *bytes, size_t n, const struct s3_list_query *req,
		  struct s3_list_result *out, struct err *err);

#endif
