/* SPDX-License-Identifier: Apache-2.0 */
/* ListBucketResult, the answer to ListObjectsV2 (Amazon S3 API Reference). Pure. */
#ifndef S3_LIST_XML_H
#define S3_LIST_XML_H

#include <store/store.h>

#include <base/str.h>

/* The query, as in struct store_request. */
struct s3_list_query {
	const char *prefix;
	const char *start_after; /* NULL if the listing begins with the first key */
	bool delimit;
	bool markers;  /* directory markers are items */
	bool complete; /* a bad item makes the listing fail, also with delimit */
	uint32_t max;  /* items, at least 1 */
};

struct s3_list_result {
	struct store_page page; /* ascending; more is set, next is not */
	struct str token;	/* of the next page; "" if there is none */
	struct str last;	/* the greatest key or common prefix with the prefix of the query,
				   including those left out; at most STORE_KEY_MAX long */
	/* Items that match the query, but are left out because they are bad. */
	unsigned int n_left_out;
	struct str first_left_out; /* its key, printable, and the reason */
};
void s3_list_release(struct s3_list_result *result);

/* Reads a listing. Keys are form-encoded if the document says so (encoding-type=url).
 *
 * Ignored: keys that do not begin with prefix or are not greater than start_after, common prefixes
 * without delimit, directory markers ("a/") without `markers`. Left out and counted: items whose
 * key store_key_ok() refuses. Also items whose key or size cannot be read, if the listing has
 * delimit and not complete, and has other items. In all other cases such an item makes the listing
 * fail, because an object that exists must not seem to be absent. If the prefix or start_after has
 * a character that XML does not allow, and the document is not well-formed, it is read without such
 * characters.
 *
 * The caller releases *out, also after an error. Fails with -EBADMSG if it is not a listing, or
 * does not say whether more items follow; with -EIO if there are too many items, an item that makes
 * the listing fail, or keys that are not in byte order while more follow; and with -ENOMEM. */
int s3_list_parse(const void *bytes, size_t n, const struct s3_list_query *req,
		  struct s3_list_result *out, struct err *err);

#endif
