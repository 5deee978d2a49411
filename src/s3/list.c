/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing (ListObjectsV2). Each page of the store is one page of the server. The next page begins
 * after a key (start-after), so no token has to be kept. A continuation token is used only if
 * the store leaves out all items of a page.
 */
#include "s3_internal.h"

#include <base/checksum.h>
#include <base/utf8.h>

#include <store/page.h>
#include "list_xml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ANSWER_MAX = 32 << 20,	 /* more than 1,000 encoded keys of 1,024 bytes */
	EMPTY_PAGES_MAX = 10000, /* consecutive ones; if there are more, the server repeats pages */
};

/* Returns the length of the UTF-8 at the beginning of a text. Keys in S3 are UTF-8, so start-after
 * can be only this part. All keys after the whole text are also after this part; the parser leaves
 * out the others. */
static size_t utf8_part(const char *text)
{
	const size_t n = strlen(text);
	size_t at = 0, len;
	while (at < n && (len = utf8_length(text + at, n - at)))
		at += len;
	return at;
}

static void take(struct s3_operation *op);

void s3_send_list(struct s3_operation *op, const struct s3_list_query *query, const char *token,
		  void (*next)(struct s3_operation *op))
{
	char max[16];
	auto_str struct str after = {0};
	struct sigv4_pair pairs[7];
	size_t n = 0;
	snprintf(max, sizeof(max), "%u", query->max < STORE_PAGE_MAX ? query->max : STORE_PAGE_MAX);
	if (query->start_after)
		str_addn(&after, query->start_after, utf8_part(query->start_after));
	pairs[n++] = (struct sigv4_pair){"list-type", "2"};
	pairs[n++] = (struct sigv4_pair){"encoding-type", "url"};
	pairs[n++] = (struct sigv4_pair){"max-keys", max};
	if (query->prefix[0])
		pairs[n++] = (struct sigv4_pair){"prefix", query->prefix};
	if (query->delimit)
		pairs[n++] = (struct sigv4_pair){"delimiter", "/"};
	if (token)
		pairs[n++] = (struct sigv4_pair){"continuation-token", token};
	else if (after.b.len)
		pairs[n++] = (struct sigv4_pair){"start-after", str_text(&after)};
	const struct s3_spec spec = {
		.method = "GET", .query = pairs, .n_query = n, .body_max = ANSWER_MAX};
	s3_send(op, &spec, next);
}

/* Leaves the first n items, and says that more follow. */
static int cut_page(struct s3_list_result *result, uint32_t n, struct err *err)
{
	result->page.n = n;
	result->page.more = true;
	str_release(&result->last);
	str_add(&result->last, result->page.items[n - 1].key);
	return str_ok(&result->last) ? 0 : err_no_memory(err);
}

int s3_read_list(struct s3_operation *op, const struct s3_list_query *query,
		 struct s3_list_result *result, struct err *err)
{
	memset(result, 0, sizeof(*result));
	int rc = s3_request_judge(&op->call, NULL, err);
	if (rc == 0)
		rc = s3_list_parse(op->call.http.answer.data, op->call.http.answer.len, query,
				   result, err);
	/* The document is damaged, although its length is right. */
	if (rc == -EBADMSG) {
		rc = -EAGAIN;
		op->req->answer.damage =
			checksum_crc32c(op->call.http.answer.data, op->call.http.answer.len, 0) | 1;
	}
	if (rc == -ENOENT) /* the bucket, from a server without the code NoSuchBucket */
		rc = -EIO;
	if (rc) {
		err->code = rc;
		return err_wrap(err, rc, "listing of '%s'", query->prefix);
	}
	/* Some services ignore max-keys. */
	if (result->page.n > query->max)
		return cut_page(result, query->max, err);
	return 0;
}

static struct s3_list_query query_of(const struct store_request *req)
{
	return (struct s3_list_query){
		.prefix = req->key,
		.start_after = req->list.start_after,
		.delimit = req->list.delimit,
		.markers = req->list.markers,
		.complete = req->list.complete,
		.max = req->list.max,
	};
}

static void note_left_out(struct s3_operation *op, const struct s3_list_result *result)
{
	if (!result->n_left_out)
		return;
	log_warning(op->s->base.env->log,
		    "s3://%s/%s: %u items of the listing are left out, the first is %s",
		    str_text(&op->s->endpoint.bucket), op->req->key, result->n_left_out,
		    str_text(&result->first_left_out));
	if (!op->left_out.b.len)
		str_add(&op->left_out, str_text(&result->first_left_out));
}

/* Moves the page to the answer, with the first key that was left out, perhaps of an earlier page of
 * the server, and with the key after which the next page begins. */
static int move_page(struct s3_operation *op, struct s3_list_result *result)
{
	struct store_page *page = &op->req->answer.page;
	const char *last = str_text(&result->last);
	const char *left_out = str_text(&op->left_out);
	*page = result->page;
	result->page = (struct store_page){0};
	if (left_out[0] &&
	    !(page->left_out = arena_strndup(page->arena, left_out, strlen(left_out))))
		return -ENOMEM;
	if (!page->more)
		return 0;
	/* The next page also begins after the items that were left out. */
	page->next = arena_strndup(page->arena, last, strlen(last));
	return page->next ? 0 : -ENOMEM;
}

/* Returns true if the server's next page has been requested. */
static bool skip_empty_page(struct s3_operation *op, struct s3_list_result *result)
{
	const struct s3_list_query query = query_of(op->req);
	if (result->page.n || !result->page.more || !result->token.b.len ||
	    ++op->empty_pages == EMPTY_PAGES_MAX)
		return false;
	str_release(&op->token);
	op->token = result->token;
	result->token = (struct str){0};
	s3_list_release(result);
	s3_send_list(op, &query, str_text(&op->token), take);
	return true;
}

static void take(struct s3_operation *op)
{
	const struct s3_list_query query = query_of(op->req);
	struct err *err = &op->req->answer.err;
	struct s3_list_result result;
	int rc = s3_read_list(op, &query, &result, err);
	if (rc == 0) {
		note_left_out(op, &result);
		if (skip_empty_page(op, &result))
			return;
	}
	if (rc == 0 && op->empty_pages == EMPTY_PAGES_MAX)
		rc = err_set(err, -EIO, "listing of '%s' does not advance", query.prefix);
	else if (rc == 0 && result.page.more && result.page.n == 0)
		/* This page must not end the listing, because the items that follow would be
		 * missing. */
		rc = err_set(err, -EIO,
			     "listing of '%s': more items follow, but the page has none, and no "
			     "continuation token",
			     query.prefix);
	else if (rc == 0 && (!str_ok(&op->left_out) || move_page(op, &result)))
		rc = err_set(err, -ENOMEM, "listing of '%s': out of memory", query.prefix);
	s3_list_release(&result);
	if (rc)
		s3_fail(op, rc);
	else
		s3_present(op);
}

void s3_list(struct s3_operation *op)
{
	const struct s3_list_query query = query_of(op->req);
	if (utf8_part(query.prefix) == strlen(query.prefix)) {
		s3_send_list(op, &query, NULL, take);
		return;
	}
	/* No key begins with text that is not UTF-8. */
	if (store_page_init(&op->req->answer.page)) {
		err_set(&op->req->answer.err, -ENOMEM, "listing: out of memory");
		s3_fail(op, -ENOMEM);
	} else {
		s3_present(op);
	}
}
