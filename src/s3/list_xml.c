/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListBucketResult: <Contents><Key/><LastModified/><ETag/><Size/></Contents>… and
 * <CommonPrefixes><Prefix/></CommonPrefixes>…, <IsTruncated/>, <NextContinuationToken/>,
 * <EncodingType/>. The encoding may be named after the first keys, so keys are decoded at the end
 * of the document. A bad item is one item's matter, a bad frame (IsTruncated, the token, the XML)
 * that of all of them. Pure.
 */
#include "list_xml.h"

#include <store/page.h>
#include "etag.h"
#include <aws/time.h>
#include <aws/uri.h>
#include <aws/xml.h>

#include <errno.h>
#include <string.h>

/* Far more than any server gives at once. An item that is empty in the document, of ten bytes,
 * takes ten times as many here. */
enum { ITEMS_MAX = 10 * STORE_PAGE_MAX };

enum { TOLD_MAX = 200 }; /* of a bad key */

/* No object is that large, by far: an object's size is at most INT64_MAX, as a file's is. */
static const uint64_t size_unfit = UINT64_MAX;

struct reading {
	const struct s3_list_query *req;
	struct s3_list_result *out;
	struct store_page raw; /* as they come, keys as they are written */
	/* Of the item that is being read. */
	struct str key;
	bool key_cut;
	struct store_meta meta;
	/* Of the document. */
	unsigned int items;
	bool url, seen, truncated, truncated_said;
	/* Of what was taken: the last key and the last prefix, and whether one was less than its
	 * like before it. */
	const char *last[2];
	bool disordered;
	bool hides; /* an item that may be an object was left out */
};

/* Leaves an item out. key: as the document has it. */
static int leave_out(struct s3_list_result *out, const char *key, const char *why)
{
	struct str *first = &out->first_unfit;
	if (out->unfit++)
		return 0;
	for (size_t i = 0; key[i] && i < TOLD_MAX; i++) {
		if (key[i] > ' ' && key[i] < 0x7f)
			str_addn(first, &key[i], 1);
		else
			str_addf(first, "%%%02X", (unsigned char)key[i]);
	}
	str_addf(first, "%s (%s)", strlen(key) > TOLD_MAX ? "..." : "", why);
	return str_ok(first) ? 0 : -ENOMEM;
}

/* Likewise one that may be an object. Who wants all below a prefix (the chunks of a dataset) must
 * not take it for one that is not there. */
static int leave_out_of_directory(struct reading *r, const char *key, const char *why)
{
	const int rc = leave_out(r->out, key, why);
	r->hides = true;
	return rc || (r->req->delimit && !r->req->complete) ? rc : -EIO;
}

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
		r->key_cut = false;
		r->meta = (struct store_meta){.size = size_unfit};
	}
	return 0;
}

static uint64_t parse_size(const char *text)
{
	uint64_t v = 0;
	if (!*text)
		return size_unfit;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || !mul_u64(v, 10, &v) ||
		    !add_u64(v, (uint64_t)(*text - '0'), &v))
			return size_unfit;
	}
	return v <= INT64_MAX ? v : size_unfit;
}

static int end_of_member(struct reading *r, const struct xml_place *at, const char *text, size_t n)
{
	const bool item = named(at, 2, "Contents");
	if (item ? named(at, 3, "Key") : named(at, 2, "CommonPrefixes") && named(at, 3, "Prefix")) {
		str_release(&r->key);
		str_addn(&r->key, text, n);
		r->key_cut = at->cut;
		return str_ok(&r->key) ? 0 : -ENOMEM;
	}
	if (!item)
		return 0;
	if (named(at, 3, "Size"))
		r->meta.size = at->cut ? size_unfit : parse_size(text);
	if (named(at, 3, "ETag"))
		s3_etag_read(text, r->meta.etag);
	if (named(at, 3, "LastModified"))
		r->meta.mtime_ns = s3_time_iso(text) * 1000000000;
	return 0;
}

static int add_item(struct reading *r, const struct store_meta *meta)
{
	if (r->items++ == ITEMS_MAX)
		return -EIO;
	if (r->key_cut)
		return leave_out(r->out, str_text(&r->key), "the key is too long");
	return page_add(&r->raw, str_text(&r->key), meta);
}

static int end_of_frame(struct reading *r, const struct xml_place *at, const char *text, size_t n)
{
	if (named(at, 2, "IsTruncated")) {
		r->truncated = strcmp(text, "true") == 0;
		r->truncated_said = r->truncated || strcmp(text, "false") == 0;
	}
	if (named(at, 2, "EncodingType"))
		r->url = strcmp(text, "url") == 0;
	if (named(at, 2, "NextContinuationToken")) {
		if (at->cut)
			return -EBADMSG;
		str_addn(&r->out->token, text, n);
	}
	return 0;
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
	return end_of_frame(r, at, text, n);
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

static bool begins_right(const struct s3_list_query *req, const char *key)
{
	return strncmp(key, req->prefix, strlen(req->prefix)) == 0;
}

/* A prefix is longer than the one that was asked for: without that it has no name. */
static bool asked_for(const struct s3_list_query *req, const char *key, bool is_prefix)
{
	return (!req->start_after || strcmp(key, req->start_after) > 0) &&
	       (!is_prefix || (req->delimit && strcmp(key, req->prefix) != 0));
}

static void note_last(struct s3_list_result *out, const char *key)
{
	if (strlen(key) > STORE_KEY_MAX || strcmp(key, str_text(&out->last)) <= 0)
		return;
	str_release(&out->last);
	str_add(&out->last, key);
}

static int add(struct reading *r, const char *key, const struct store_item *item)
{
	struct store_page *page = &r->out->page;
	const char **last = &r->last[item->is_prefix];
	if (page_add(page, key, item->is_prefix ? NULL : &item->meta))
		return -ENOMEM;
	key = page->items[page->n - 1].key;
	r->disordered |= *last && strcmp(key, *last) < 0;
	*last = key;
	return 0;
}

/* raw: the key as the document has it. */
static int take(struct reading *r, const char *raw, const char *key, const struct store_item *item)
{
	struct s3_list_result *out = r->out;
	if (!begins_right(r->req, key))
		return 0;
	note_last(out, key);
	if (!asked_for(r->req, key, item->is_prefix))
		return 0;
	if (!key_ok(key, item->is_prefix)) {
		if (!item->is_prefix && key_ok(key, true))
			return 0; /* the marker of a directory */
		return leave_out(out, raw,
				 strlen(key) > STORE_KEY_MAX ? "the key is too long"
							     : "the key cannot be a path");
	}
	if (!item->is_prefix && item->meta.size == size_unfit)
		return leave_out_of_directory(r, raw, "the size is none");
	return add(r, key, item);
}

static int take_item(struct reading *r, const struct store_item *item)
{
	const char *raw = item->key;
	const size_t n = strlen(raw);
	if (n == 0)
		return leave_out_of_directory(r, raw, "there is no key");
	if (!r->url)
		return take(r, raw, raw, item);
	auto_free char *key = malloc(n + 1);
	if (!key)
		return -ENOMEM;
	const int rc = uri_decode(raw, n, key);
	if (rc == -EILSEQ)
		return leave_out(r->out, raw, "the key holds a NUL");
	return rc ? leave_out_of_directory(r, raw, "the key is badly encoded")
		  : take(r, raw, key, item);
}

/* Keys and common prefixes come in two runs; a listing is one. What a server lists
 * twice counts once. */
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
	if (!r->truncated_said)
		return err_set(err, -EBADMSG, "the answer does not say whether it is the last");
	for (size_t i = 0; i < r->raw.n; i++) {
		int rc = take_item(r, &r->raw.items[i]);
		if (rc == -EIO)
			return err_set(err, rc, "%u bad items, the first is %s", r->out->unfit,
				       str_text(&r->out->first_unfit));
		if (rc)
			return err_set(err, rc, "listing: out of memory");
	}
	if (r->hides && r->out->page.n == 0 && !r->req->start_after)
		return err_set(err, -EIO, "no item can be read, the first is %s",
			       str_text(&r->out->first_unfit));
	if (!str_ok(&r->out->last) || !str_ok(&r->out->token))
		return err_set(err, -ENOMEM, "listing: out of memory");
	/* What is less than the last key of this page, and has not come, would be taken for
	 * absent. */
	if (r->disordered && r->truncated)
		return err_set(err, -EIO, "the keys are not in order, and more follow");
	order(&r->out->page);
	r->out->page.more = r->truncated;
	return 0;
}

int s3_list_parse(const void *bytes, size_t n, const struct s3_list_query *req,
		  struct s3_list_result *out, struct err *err)
{
	struct reading r = {.req = req, .out = out};
	const struct xml_handler handler = {
		.start = start, .end = end, .arg = &r, .cuts_texts = true};
	memset(out, 0, sizeof(*out));
	int rc = page_init(&out->page);
	if (rc == 0)
		rc = page_init(&r.raw);
	if (rc) {
		err_set(err, rc, "listing: out of memory");
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
	str_release(&result->first_unfit);
}
