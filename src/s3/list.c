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

static void take(struct s3_flight *f);

void s3_send_list(struct s3_flight *f, const struct s3_list_query *query, const char *token,
		  void (*next)(struct s3_flight *f))
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
	s3_send(f, &spec, next);
}

int s3_take_list(struct s3_flight *f, const struct s3_list_query *query,
		 struct s3_list_result *result, struct err *err)
{
	memset(result, 0, sizeof(*result));
	int rc = s3_request_judge(&f->call, NULL, err);
	if (rc == 0)
		rc = s3_list_parse(f->call.http.answer.data, f->call.http.answer.len, query, result,
				   err);
	/* A document that is cut or damaged, although its length was right. */
	if (rc == -EBADMSG)
		rc = -EAGAIN;
	if (rc == -ENOENT) /* NoSuchBucket, from a server that has no such code */
		rc = -EIO;
	if (rc) {
		err->code = rc;
		return err_wrap(err, rc, "listing of '%s'", query->prefix);
	}
	if (result->page.n > query->max)
		return err_set(err, -EIO, "listing of '%s': %zu items, %u were asked for",
			       query->prefix, result->page.n, query->max);
	return 0;
}

static struct s3_list_query query_of(const struct store_request *req)
{
	return (struct s3_list_query){
		.prefix = req->key,
		.start_after = req->list.start_after,
		.delimit = req->list.delimit,
		.complete = req->list.complete,
		.max = req->list.max,
	};
}

static void log_unfit(const struct s3_flight *f, const struct s3_list_result *result)
{
	if (result->unfit)
		log_warning(f->s->base.env->log,
			    "s3://%s/%s: %u items of the listing are left out, the first is %s",
			    str_text(&f->s->endpoint.bucket), f->req->key, result->unfit,
			    str_text(&result->first_unfit));
}

/* Takes the page over, with the key from which the next one goes on. */
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

/* True when the server's next page has been asked for. */
static bool skip_empty_page(struct s3_flight *f, struct s3_list_result *result)
{
	const struct s3_list_query query = query_of(f->req);
	if (result->page.n || !result->page.more || !result->token.b.len ||
	    ++f->empty_pages == EMPTY_PAGES_MAX)
		return false;
	str_release(&f->token);
	f->token = result->token;
	result->token = (struct str){0};
	s3_list_release(result);
	s3_send_list(f, &query, str_text(&f->token), take);
	return true;
}

static void take(struct s3_flight *f)
{
	const struct s3_list_query query = query_of(f->req);
	struct err *err = &f->req->answer.err;
	struct s3_list_result result;
	int rc = s3_take_list(f, &query, &result, err);
	if (rc == 0) {
		log_unfit(f, &result);
		if (skip_empty_page(f, &result))
			return;
	}
	if (rc == 0 && f->empty_pages == EMPTY_PAGES_MAX)
		rc = err_set(err, -EIO, "listing of '%s' does not advance", query.prefix);
	else if (rc == 0 && result.page.more && result.page.n == 0)
		/* To take it for the end would lose what there is more. */
		rc = err_set(err, -EIO, "listing of '%s': more is promised, but not where",
			     query.prefix);
	else if (rc == 0 && give(&result, &f->req->answer.page))
		rc = err_set(err, -ENOMEM, "listing of '%s': out of memory", query.prefix);
	s3_list_release(&result);
	if (rc)
		s3_fail(f, rc);
	else
		s3_present(f);
}

void s3_list(struct s3_flight *f)
{
	const struct s3_list_query query = query_of(f->req);
	if (utf8_part(query.prefix) == strlen(query.prefix)) {
		s3_send_list(f, &query, NULL, take);
		return;
	}
	/* No key begins so. */
	if (page_init(&f->req->answer.page)) {
		err_set(&f->req->answer.err, -ENOMEM, "listing: out of memory");
		s3_fail(f, -ENOMEM);
	} else {
		s3_present(f);
	}
}
