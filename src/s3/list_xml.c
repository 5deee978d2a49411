/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListBucketResult: <Contents><Key/><LastModified/><ETag/><Size/></Contents>… and
 * <CommonPrefixes><Prefix/></CommonPrefixes>…, <IsTruncated/>, <NextContinuationToken/>,
 * <EncodingType/>. The encoding may follow the first keys, so keys are decoded at the end of the
 * document. A bad item is left out; a document that is bad otherwise (IsTruncated, the token, the
 * XML) fails as a whole. Pure.
 */
#include "list_xml.h"

#include <store/page.h>
#include "etag.h"
#include <aws/time.h>
#include <aws/uri.h>
#include <aws/xml.h>
#include <base/utf8.h>

#include <errno.h>
#include <string.h>

/* Far more than any server sends. An empty item has ten bytes in the document and takes ten times
 * as many in memory. */
enum { ITEMS_MAX = 10 * STORE_PAGE_MAX };

enum { SHOWN_MAX = 200 }; /* of a bad key, in messages */

/* Sizes are at most INT64_MAX, as those of files. */
static const uint64_t bad_size = UINT64_MAX;

struct reading {
	const struct s3_list_query *req;
	struct s3_list_result *out;
	struct store_page raw; /* items in the document's order, keys not decoded */
	/* The current item. */
	struct str key;
	bool key_cut;
	struct store_meta meta;
	/* The document. */
	unsigned int items;
	bool url, is_listing, truncated, has_truncated;
	bool is_repaired; /* by xml_make_valid() */
	/* The last key and the last prefix so far, and whether one was less than its predecessor.
	 */
	const char *last[2];
	bool disordered;
	bool object_left_out; /* or what may be an object */
};

/* Counts an item that is left out. key is as in the document. */
static int leave_out(struct s3_list_result *out, const char *key, const char *why)
{
	struct str *first = &out->first_left_out;
	if (out->n_left_out++)
		return 0;
	for (size_t i = 0; key[i] && i < SHOWN_MAX; i++) {
		if (key[i] > ' ' && key[i] < 0x7f)
			str_addn(first, &key[i], 1);
		else
			str_addf(first, "%%%02X", (unsigned char)key[i]);
	}
	str_addf(first, "%s (%s)", strlen(key) > SHOWN_MAX ? "..." : "", why);
	return str_ok(first) ? 0 : -ENOMEM;
}

/* Leaves out an item that may be an object. If the caller needs all objects of a prefix (the chunks
 * of a dataset), the listing fails, because otherwise the object would seem to be absent. */
static int leave_out_object(struct reading *r, const char *key, const char *why)
{
	const int rc = leave_out(r->out, key, why);
	r->object_left_out = true;
	return rc || (r->req->delimit && !r->req->complete) ? rc : -EIO;
}

static bool named(const struct xml_path *at, unsigned int depth, const char *name)
{
	return strcmp(at->name[depth], name) == 0;
}

static int start(void *arg, const struct xml_path *at)
{
	struct reading *r = arg;
	if (at->depth == 1)
		r->is_listing = named(at, 1, "ListBucketResult");
	if (at->depth == 2) {
		str_release(&r->key);
		r->key_cut = false;
		r->meta = (struct store_meta){.size = bad_size};
	}
	return 0;
}

static uint64_t parse_size(const char *text)
{
	uint64_t v = 0;
	if (!*text)
		return bad_size;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || !mul_u64(v, 10, &v) ||
		    !add_u64(v, (uint64_t)(*text - '0'), &v))
			return bad_size;
	}
	return v <= INT64_MAX ? v : bad_size;
}

static int end_of_member(struct reading *r, const struct xml_path *at, const char *text, size_t n)
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
		r->meta.size = at->cut ? bad_size : parse_size(text);
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
	return store_page_add(&r->raw, str_text(&r->key), meta);
}

static int end_of_frame(struct reading *r, const struct xml_path *at, const char *text, size_t n)
{
	if (named(at, 2, "IsTruncated")) {
		r->truncated = strcmp(text, "true") == 0;
		r->has_truncated = r->truncated || strcmp(text, "false") == 0;
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

static int end(void *arg, const struct xml_path *at, const char *text, size_t n)
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

/* Common prefixes are longer than the prefix of the query: otherwise they have no name. */
static bool matches(const struct s3_list_query *req, const char *key, bool is_prefix)
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

/* Takes an item of the listing. raw is its key as in the document. */
static int take(struct reading *r, const char *raw, const char *key, const struct store_item *item)
{
	struct s3_list_result *out = r->out;
	if (strncmp(key, r->req->prefix, strlen(r->req->prefix)) != 0)
		return 0;
	note_last(out, key);
	if (!matches(r->req, key, item->is_prefix))
		return 0;
	/* A common prefix has the form of a marker. */
	if (!(item->is_prefix ? store_key_is_marker(key) : store_key_ok(key))) {
		const bool is_marker = !item->is_prefix && store_key_is_marker(key);
		if (is_marker && !r->req->markers)
			return 0;
		if (!is_marker)
			return leave_out(out, raw,
					 strlen(key) > STORE_KEY_MAX ? "the key is too long"
								     : "the key cannot be a path");
	}
	if (!item->is_prefix && item->meta.size == bad_size)
		return leave_out_object(r, raw, "the size is not valid");
	struct store_page *page = &r->out->page;
	const char **last = &r->last[item->is_prefix];
	if (store_page_add(page, key, item->is_prefix ? NULL : &item->meta))
		return -ENOMEM;
	key = page->items[page->n - 1].key;
	r->disordered |= *last && strcmp(key, *last) < 0;
	*last = key;
	return 0;
}

static int take_item(struct reading *r, const struct store_item *item)
{
	const char *raw = item->key;
	const size_t n = strlen(raw);
	if (n == 0)
		return leave_out_object(r, raw, "there is no key");
	/* An encoded key does not contain this character. */
	if (r->is_repaired && strchr(raw, XML_REPLACEMENT))
		return leave_out_object(r, raw, "XML does not allow a character of the key");
	if (!r->url)
		return take(r, raw, raw, item);
	auto_free char *key = malloc(n + 1);
	if (!key)
		return -ENOMEM;
	const int rc = uri_decode(raw, n, key);
	if (rc == -EILSEQ)
		return leave_out(r->out, raw, "the key contains a NUL");
	return rc ? leave_out_object(r, raw, "the key is badly encoded") : take(r, raw, key, item);
}

/* Merges keys and common prefixes, which the document lists separately, and drops duplicates. */
static void order(struct store_page *page)
{
	size_t n = 0;
	store_page_sort(page);
	for (size_t i = 0; i < page->n; i++)
		if (i == 0 || strcmp(page->items[i].key, page->items[n - 1].key) != 0)
			page->items[n++] = page->items[i];
	page->n = n;
}

static int finish(struct reading *r, struct err *err)
{
	if (!r->is_listing)
		return err_set(err, -EBADMSG, "the answer is not a ListBucketResult");
	if (!r->has_truncated)
		return err_set(err, -EBADMSG, "the answer does not say whether more items follow");
	for (size_t i = 0; i < r->raw.n; i++) {
		int rc = take_item(r, &r->raw.items[i]);
		if (rc == -EIO)
			return err_set(err, rc, "%u bad items, the first is %s", r->out->n_left_out,
				       str_text(&r->out->first_left_out));
		if (rc)
			return err_set(err, rc, "listing: out of memory");
	}
	if (r->object_left_out && r->out->page.n == 0 && !r->req->start_after)
		return err_set(err, -EIO, "all items are bad, the first is %s",
			       str_text(&r->out->first_left_out));
	if (!str_ok(&r->out->last) || !str_ok(&r->out->token))
		return err_set(err, -ENOMEM, "listing: out of memory");
	/* The next page begins after the last key of this one, so lesser keys that follow would
	 * seem to be absent. */
	if (r->disordered && r->truncated)
		return err_set(err, -EIO, "the keys are not in order, and more follow");
	order(&r->out->page);
	r->out->page.more = r->truncated;
	return 0;
}

static int parse(const void *bytes, size_t n, const struct s3_list_query *req, bool is_repaired,
		 struct s3_list_result *out, struct err *err)
{
	struct reading r = {.req = req, .out = out, .is_repaired = is_repaired};
	const struct xml_handler handler = {
		.start = start, .end = end, .arg = &r, .cuts_texts = true};
	memset(out, 0, sizeof(*out));
	int rc = store_page_init(&out->page);
	if (rc == 0)
		rc = store_page_init(&r.raw);
	if (rc) {
		err_set(err, rc, "listing: out of memory");
	} else {
		rc = xml_walk(bytes, n, &handler, err);
		/* Handlers set no message. */
		if (rc && err && !err->code)
			err_set(err, rc, "a malformed listing");
	}
	if (rc == 0)
		rc = finish(&r, err);
	str_release(&r.key);
	store_page_release(&r.raw);
	return rc;
}

int s3_list_parse(const void *bytes, size_t n, const struct s3_list_query *req,
		  struct s3_list_result *out, struct err *err)
{
	auto_bytes struct bytes valid = {0};
	struct err why = ERR_INIT;
	int rc = parse(bytes, n, req, false, out, &why);
	/* Ceph repeats these two as references that XML does not allow. */
	if (rc == -EBADMSG &&
	    (!utf8_in_xml(req->prefix) || (req->start_after && !utf8_in_xml(req->start_after)))) {
		s3_list_release(out);
		err_clear(&why);
		rc = xml_make_valid(bytes, n, &valid);
		rc = rc ? err_no_memory(&why) : parse(valid.data, valid.len, req, true, out, &why);
	}
	if (rc)
		err_copy(err, &why);
	return rc;
}

void s3_list_release(struct s3_list_result *result)
{
	store_page_release(&result->page);
	str_release(&result->token);
	str_release(&result->last);
	str_release(&result->first_left_out);
}
