/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads in parts that were not finished: ListMultipartUploads and AbortMultipartUpload (Amazon S3
 * API Reference). They block: only a person's command uses them.
 */
#include "s3_internal.h"

#include <errno.h>
#include <string.h>

#include "upload_xml.h"

enum { ANSWER_MAX = 32 << 20 };
#define SECOND_NS INT64_C(1000000000)

/* A service without this listing says so in different ways. */
static int refused(const struct s3_request *call, int rc, struct err *err)
{
	const long status = call->http.status;
	if (status == 405 || status == 501 || rc == -ENOENT || rc == S3_UNPROVEN)
		return err_set(err, -EOPNOTSUPP,
			       "the service does not list uploads in parts that were not finished");
	return rc;
}

int s3_list_uploads(struct store *store, const char *prefix, struct store_upload_page *page,
		    struct err *err)
{
	struct s3_store *s = s3_store_of(store);
	auto_s3_request struct s3_request call = {0};
	struct sigv4_pair query[5] = {{"encoding-type", "url"}, {"uploads", ""}};
	size_t n = 2;
	if (prefix[0])
		query[n++] = (struct sigv4_pair){"prefix", prefix};
	if (page->next_key[0])
		query[n++] = (struct sigv4_pair){"key-marker", page->next_key};
	if (page->next_id[0])
		query[n++] = (struct sigv4_pair){"upload-id-marker", page->next_id};
	const struct s3_spec spec = {
		.method = "GET", .query = query, .n_query = n, .body_max = ANSWER_MAX};
	int rc = s3_request_run(&call, s, &spec, NULL, err);
	if (rc)
		return refused(&call, rc, err);
	const struct bytes *answer = &call.http.answer;
	rc = s3_uploads_parse(answer->data, answer->len, prefix, page, err);
	for (size_t i = 0; !rc && i < page->n; i++)
		page->v[i].now_ns = call.answer.date * SECOND_NS;
	return rc;
}

int s3_abort_upload(struct store *store, const char *key, const char *id, struct err *err)
{
	auto_s3_request struct s3_request call = {0};
	const struct sigv4_pair query[] = {{"uploadId", id}};
	const struct s3_spec spec = {.method = "DELETE",
				     .key = key,
				     .query = query,
				     .n_query = 1,
				     .body_max = HTTP_ERROR_BODY_MAX};
	const int rc = s3_request_run(&call, s3_store_of(store), &spec, NULL, err);
	/* NoSuchUpload: it has ended. */
	if (rc == -ENOENT || rc == S3_UNPROVEN) {
		err_clear(err);
		return 0;
	}
	return rc;
}
