/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListBucketResult: <Contents><Key/><LastModified/><ETag/><Size/></Contents>… and
 * <CommonPrefixes><Prefix/></CommonPrefixes>…, <IsTruncated/>, <NextContinuationToken/>,
 * <EncodingType/>. The encoding may be named after the first keys, so keys are decoded at the end
 * of the document. Pure.
 */
#include "s3_list_xml.h"

#include "page.h"
#include "s3_etag.h"
#include "s3_time.h"
#include "uri.h"
#include "xml.h"

#include <errno.h>
#include <string.h>

/* Far more than any server gives at once. An item that is empty in the document, of ten bytes,
 * takes ten times as many here. */
enum { ITEMS_MAX = 10 * STORE_PAGE_MAX };

struct reading {
	const struct store_list *req;
	struct s3_list_result *out;
	struct store_page raw; /* as they come, keys as they are written */
	struct str key;	       /* of the item that is being read */
	struct store_meta meta;
	bool url, truncated, seen;
};

static bool named(const struct xml_place *at, unsigned int depth, const char *name)
{
	return strcmp(at->name[depth], name) == 0;
}

static int start(void *arg, const struct xml_place *at)
{
	struct reading *r = arg;
	if (at->depth == 1)
		r->seen = named(at, 1, "ListBucketResult");
	if (at->depth == 2) {
		str_release(&r->key);
		r->meta = (struct store_meta){0};
	}
	return 0;
}

static int parse_size(const char *text, uint64_t *size)
{
	uint64_t v = 0;
	if (!*text)
		return -EBADMSG;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || !mul_u64(v, 10, &v) ||
		    !add_u64(v, (uint64_t)(*text - '0'), &v))
			return -EBADMSG;
	}
	*size = v;
	return 0;
}

static int end_of_member(struct reading *r, const struct xml_place *at, const char *text, size_t n)
{
	const bool item = named(at, 2, "Contents");
	if (item ? named(at, 3, "Key") : named(at, 2, "CommonPrefixes") && named(at, 3, "Prefix")) {
		str_release(&r->key);
		str_addn(&r->key, text, n);
		return str_ok(&r->key) ? 0 : -ENOMEM;
	}
	if (!item)
		return 0;
	if (named(at, 3, "Size"))
		return parse_size(text, &r->meta.size);
	if (named(at, 3, "ETag"))
		s3_etag_read(text, r->meta.etag);
	if (named(at, 3, "LastModified"))
		r->meta.mtime_ns = s3_time_iso(text) * 1000000000;
	return 0;
}

static int add_item(struct reading *r, const struct store_meta *meta)
{
	return r->raw.n < ITEMS_MAX ? page_add(&r->raw, str_text(&r->key), meta) : -EIO;
}

static int end(void *arg, const struct xml_place *at, const char *text, size_t n)
{
	struct reading *r = arg;
	if (at->depth == 3)
		return end_of_member(r, at, text, n);
	if (at->depth != 2)
		return 0;
	if (named(at, 2, "Contents"))
		return add_item(r, &r->meta);
	if (named(at, 2, "CommonPrefixes"))
		return add_item(r, NULL);
	if (named(at, 2, "IsTruncated"))
		r->truncated = strcmp(text, "true") == 0;
	if (named(at, 2, "EncodingType"))
		r->url = strcmp(text, "url") == 0;
	if (named(at, 2, "NextContinuationToken"))
		str_addn(&r->out->token, text, n);
	return 0;
}

/* A prefix ends with the delimiter; without that it is a key. */
static bool key_ok(const char *key, bool is_prefix)
{
	char component[STORE_KEY_MAX + 1];
	size_t n = strlen(key);
	if (!is_prefix)
		return store_key_ok(key);
	if (n < 2 || n > STORE_KEY_MAX || key[n - 1] != '/')
		return false;
	memcpy(component, key, n - 1);
	component[n - 1] = '\0';
	return store_key_ok(component);
}

static int take_item(struct reading *r, const struct store_item *item)
{
	const struct store_list *req = r->req;
	struct s3_list_result *out = r->out;
	const size_t n = strlen(item->key);
	auto_free char *key = malloc(n + 1);
	if (!key)
		return -ENOMEM;
	if (!r->url)
		memcpy(key, item->key, n + 1);
	else if (uri_decode(item->key, n, key))
		return -EBADMSG;
	if (strcmp(key, str_text(&out->last)) > 0) {
		str_release(&out->last);
		str_add(&out->last, key);
	}
	if (!key_ok(key, item->is_prefix) || (item->is_prefix && !req->delimit) ||
	    strncmp(key, req->prefix, strlen(req->prefix)) != 0 ||
	    (req->start_after && strcmp(key, req->start_after) <= 0))
		return 0;
	return page_add(&out->page, key, item->is_prefix ? NULL : &item->meta);
}

/* Keys and common prefixes come in two runs; a listing is one. A server that repeats itself is
 * not believed twice. */
static void order(struct store_page *page)
{
	size_t n = 0;
	page_sort(page);
	for (size_t i = 0; i < page->n; i++)
		if (i == 0 || strcmp(page->items[i].key, page->items[n - 1].key) != 0)
			page->items[n++] = page->items[i];
	page->n = n;
}

static int finish(struct reading *r, struct err *err)
{
	if (!r->seen)
		return err_set(err, -EBADMSG, "the answer is no ListBucketResult");
	for (size_t i = 0; i < r->raw.n; i++) {
		int rc = take_item(r, &r->raw.items[i]);
		if (rc)
			return err_set(err, rc, "%s in a listing",
				       rc == -ENOMEM ? "no memory" : "a malformed key");
	}
	if (!str_ok(&r->out->last) || !str_ok(&r->out->token))
		return err_set(err, -ENOMEM, "no memory in a listing");
	order(&r->out->page);
	r->out->page.more = r->truncated;
	return 0;
}

int s3_list_parse(const void *bytes, size_t n, const struct store_list *req,
		  struct s3_list_result *out, struct err *err)
{
	struct reading r = {.req = req, .out = out};
	const struct xml_handler handler = {.start = start, .end = end, .arg = &r};
	memset(out, 0, sizeof(*out));
	int rc = page_init(&out->page);
	if (rc == 0)
		rc = page_init(&r.raw);
	if (rc) {
		err_set(err, rc, "listing: no memory");
	} else {
		rc = xml_walk(bytes, n, &handler, err);
		/* A handler gives no words. */
		if (rc && err && !err->code)
			err_set(err, rc, "a malformed listing");
	}
	if (rc == 0)
		rc = finish(&r, err);
	str_release(&r.key);
	store_page_release(&r.raw);
	return rc;
}

void s3_list_release(struct s3_list_result *result)
{
	store_page_release(&result->page);
	str_release(&result->token);
	str_release(&result->last);
}
