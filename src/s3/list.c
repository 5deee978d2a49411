/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing (ListObjectsV2). A page of ours is a page of the server's: where to go on is a key
 * (start-after), so no token has to be kept. A token is followed only when a page had nothing for
 * the caller, which happens when all its keys are such that no store may give them.
 */
#include "internal.h"

#include <base/utf8.h>

#include <store/page.h>
#include "list_xml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ANSWER_MAX = 32 << 20,	 /* 1,000 keys of 1,024 bytes, encoded, with all else */
	EMPTY_PAGES_MAX = 10000, /* in a row: the server goes round in circles */
};

/* S3's keys are UTF-8, and a server may put what is not into its XML as it is. What is greater than
 * such a text is greater than the UTF-8 at its beginning, too; the parser leaves out what is not
 * greater than the whole. */
static size_t utf8_part(const char *text)
{
	const size_t n = strlen(text);
	size_t at = 0, len;
	while (at < n && (len = utf8_length(text + at, n - at)))
		at += len;
	return at;
}

static int ask(struct s3_store *s, const struct store_list *req, const char *token,
	       struct s3_list_result *result, struct err *err)
{
	auto_s3_request struct s3_request call = {0};
	char max[16];
	auto_str struct str after = {0};
	struct sigv4_pair query[8];
	size_t n = 0;
	const uint32_t wanted = req->max < STORE_PAGE_MAX ? req->max : STORE_PAGE_MAX;
	snprintf(max, sizeof(max), "%u", wanted);
	if (req->start_after)
		str_addn(&after, req->start_after, utf8_part(req->start_after));
	query[n++] = (struct sigv4_pair){"list-type", "2"};
	query[n++] = (struct sigv4_pair){"encoding-type", "url"};
	query[n++] = (struct sigv4_pair){"max-keys", max};
	if (req->prefix[0])
		query[n++] = (struct sigv4_pair){"prefix", req->prefix};
	if (req->delimit)
		query[n++] = (struct sigv4_pair){"delimiter", "/"};
	if (token)
		query[n++] = (struct sigv4_pair){"continuation-token", token};
	else if (after.b.len)
		query[n++] = (struct sigv4_pair){"start-after", str_text(&after)};
	const struct s3_spec request = {
		.method = "GET", .query = query, .n_query = n, .body_max = ANSWER_MAX};
	memset(result, 0, sizeof(*result));
	int rc = s3_request_run(&call, s, &request, NULL, err);
	if (rc == 0)
		rc = s3_list_parse(call.http.answer.data, call.http.answer.len, req, result, err);
	/* A document that is cut or damaged, although its length was right. */
	if (rc == -EBADMSG)
		rc = -EAGAIN;
	if (rc == -ENOENT) /* NoSuchBucket, from a server that has no such code */
		rc = -EIO;
	if (rc && err)
		err->code = rc;
	if (rc)
		return err_wrap(err, rc, "listing of '%s'", req->prefix);
	return result->page.n <= req->max
		       ? 0
		       : err_set(err, -EIO, "listing of '%s': %zu items, %u were asked for",
				 req->prefix, result->page.n, wanted);
}

static void tell_unfit(const struct s3_store *s, const struct store_list *req,
		       const struct s3_list_result *result)
{
	if (result->unfit)
		log_warning(s->base.env->log,
			    "s3://%s/%s: %u items of the listing are left out, the first is %s",
			    str_text(&s->place.bucket), req->prefix, result->unfit,
			    str_text(&result->first_unfit));
}

/* Takes the page over, with the place to go on. */
static int give(struct s3_list_result *result, struct store_page *page)
{
	const char *last = str_text(&result->last);
	*page = result->page;
	result->page = (struct store_page){0};
	if (!page->more)
		return 0;
	/* Also past what was left out. */
	page->next = arena_strndup(page->arena, last, strlen(last));
	return page->next ? 0 : -ENOMEM;
}

int s3_list(struct store *store, const struct store_list *req, struct store_page *page,
	    struct err *err)
{
	struct s3_store *s = s3_store_of(store);
	auto_str struct str token = {0};
	if (utf8_part(req->prefix) != strlen(req->prefix))
		return page_init(page); /* no key begins so */
	for (unsigned int empty = 0; empty < EMPTY_PAGES_MAX; empty++) {
		struct s3_list_result result;
		int rc = ask(s, req, token.b.len ? str_text(&token) : NULL, &result, err);
		if (rc == 0)
			tell_unfit(s, req, &result);
		const bool go_on =
			rc == 0 && result.page.n == 0 && result.page.more && result.token.b.len;
		if (go_on) {
			str_release(&token);
			token = result.token;
			result.token = (struct str){0};
		} else if (rc == 0 && result.page.more && result.page.n == 0) {
			/* To take it for the end would lose what there is more. */
			rc = err_set(err, -EIO, "listing of '%s': more is promised, but not where",
				     req->prefix);
		} else if (rc == 0) {
			rc = give(&result, page);
		}
		s3_list_release(&result);
		if (!go_on)
			return rc == -ENOMEM ? err_set(err, rc, "listing: no memory") : rc;
	}
	return err_set(err, -EIO, "listing of '%s' does not advance", req->prefix);
}
