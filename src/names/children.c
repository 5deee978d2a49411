/* SPDX-License-Identifier: Apache-2.0 */
/* See children.h. Any thread. */
#include "children.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <store/page.h>

#include "node.h"
#include "rules.h"

/* A domain may have several documents, such as catalogs: all of them are no further keys. */
enum { DOCUMENTS_MAX = 64 };

void names_children_prepare(const char *path, struct store_request *req)
{
	req->op = STORE_LIST;
	snprintf(req->key, req->room, "%s/", path);
	req->list.delimit = true;
	req->list.markers = true;
	req->list.whole = true;
	req->list.limit = DOCUMENTS_MAX;
}

void names_below_release(struct names_below *b)
{
	free(b->why);
	schema_document_unref(b->store);
	names_keys_free(b->keys);
	b->why = NULL;
	b->store = NULL;
	b->keys = NULL;
}

void names_doc_use_listing(struct names_doc *doc, struct names_below *b)
{
	if (doc->kind == NAMES_DOC_BROKEN && names_lacks_document(b) &&
	    (b->children == CHILDREN_MORE || b->marker == NAMES_MARKER_PRESENT))
		names_doc_release(doc);
	if (doc->kind == NAMES_DOC_NONE && b->marker == NAMES_MARKER_PRESENT)
		b->children = CHILDREN_MORE;
}

/* ---- marks ---- */

void names_doc_use_mark(struct names_doc *doc, const struct names_below *b)
{
	const bool is_refused =
		doc->kind == NAMES_DOC_BROKEN && doc->code == -EACCES && !b->has_document;
	if (!b->store ||
	    (doc->kind != NAMES_DOC_NONE && doc->kind != NAMES_DOC_FOLDER && !is_refused))
		return;
	names_doc_release(doc);
	*doc = (struct names_doc){.kind = NAMES_DOC_STORE,
				  .document = schema_document_ref(b->store)};
}

/* Uses the item if it is a mark that is better than *best. Fails with -ENOMEM. */
static int add_mark(struct names *ns, struct schema_mark *best, const struct store_item *item,
		    struct names_below *b)
{
	const char *name = names_last(item->key);
	if (item->is_prefix || !schema_mark_add(ns->schemas, name, best))
		return 0;
	atomic_store(&ns->has_marks, true);
	schema_document_unref(b->store);
	b->store = schema_mark_document(best, name, item->meta.etag, item->meta.mtime_ns,
					item->meta.size);
	return b->store ? 0 : -ENOMEM;
}

static int add_marks(struct names *ns, const struct store_page *page, struct names_below *b)
{
	struct schema_mark best = {0};
	int rc = 0;
	for (size_t i = 0; !rc && i < page->n; i++)
		rc = add_mark(ns, &best, &page->items[i], b);
	return rc;
}

/* Notes why it is not known what is below the path. */
static int fail_below(struct names_below *b, int code, const char *why)
{
	b->children = code;
	b->why = strdup(why);
	return b->why ? 0 : -ENOMEM;
}

static void prepare_marks(struct names *ns, const struct names_below *b,
			  struct store_request *const *reqs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		reqs[i]->op = STORE_HEAD;
		/* The store refuses an empty key. */
		if ((size_t)snprintf(reqs[i]->key, reqs[i]->room, "%s/%s", b->path,
				     schema_mark_name(ns->schemas, i)) >= reqs[i]->room)
			reqs[i]->key[0] = '\0';
	}
}

/* Takes the answers to the requests of the n marks of a path, which are in the order of preference.
 * If it is not known whether a mark exists, those after it do not count. But a service that refuses
 * a listing also refuses the requests of objects that do not exist: then a mark that is refused
 * counts as absent. */
static int take_marks(struct names *ns, struct names_below *b, struct store_request *const *reqs,
		      unsigned int n)
{
	struct schema_mark best = {0};
	for (unsigned int i = 0; i < n; i++) {
		const struct store_item item = {.key = reqs[i]->key, .meta = reqs[i]->answer.meta};
		const int failure = store_failure(&reqs[i]->answer, NULL);
		if (reqs[i]->answer.state == STORE_PRESENT)
			return add_mark(ns, &best, &item, b);
		if (failure && failure != -EINVAL && b->children != -EACCES)
			return fail_below(b, failure, reqs[i]->answer.err.msg);
		if (failure && failure != -EINVAL && failure != -EACCES)
			return 0;
	}
	return 0;
}

static bool needs_marks(const struct names_below *b)
{
	return !b->store && (b->children == CHILDREN_MANY || b->children == -EACCES);
}

int names_children_marks(struct names *ns, struct names_below *all, size_t n)
{
	unsigned int marks = 0;
	size_t count = 0, k = 0;
	int rc = 0;
	while (schema_mark_name(ns->schemas, marks))
		marks++;
	for (size_t i = 0; i < n; i++)
		count += needs_marks(&all[i]) ? marks : 0;
	struct store_request **reqs = count ? store_requests_new(ns->store, count) : NULL;
	if (!reqs)
		return count ? -ENOMEM : 0;
	for (size_t i = 0; i < n; i++)
		if (needs_marks(&all[i])) {
			prepare_marks(ns, &all[i], reqs + k, marks);
			k += marks;
		}
	store_run_all(ns->store, reqs, count);
	k = 0;
	for (size_t i = 0; !rc && i < n; i++)
		if (needs_marks(&all[i])) {
			rc = take_marks(ns, &all[i], reqs + k, marks);
			k += marks;
		}
	store_requests_free(reqs, count);
	return rc;
}

/* ---- listings ---- */

bool names_doc_is_overtaken(const struct names_doc *doc, const struct names_below *b)
{
	return doc->kind == NAMES_DOC_NONE && b->path && b->children == CHILDREN_DOC && !b->store;
}

/* What a page shows below a path, whose marker is not counted. */
static int children_of(const struct names *ns, const struct store_page *page)
{
	int children = CHILDREN_NONE;
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (item->is_prefix ||
		    (!store_item_is_marker(item) && !schema_is_document(ns->schemas, item->key)))
			return CHILDREN_MORE;
		if (!store_item_is_marker(item))
			children = CHILDREN_DOC;
	}
	return children;
}

static int children_in(const struct names *ns, const struct store_request *req)
{
	const int code = store_failure(&req->answer, NULL);
	switch (code) {
	case 0:
		return children_of(ns, &req->answer.page);
	case -E2BIG:
		return CHILDREN_MANY;
	case -EINVAL:
		return CHILDREN_NONE; /* no key can begin like this */
	default:
		return code;
	}
}

static bool has_document(const struct names *ns, const struct store_page *page)
{
	for (size_t i = 0; i < page->n; i++)
		if (!page->items[i].is_prefix &&
		    schema_is_document(ns->schemas, page->items[i].key))
			return true;
	return false;
}

/* The marker of a path is its least key. */
static enum names_marker marker_of(const struct store_page *page, const struct names_below *b)
{
	if (b->children == CHILDREN_MANY)
		return NAMES_MARKER_UNKNOWN; /* such a listing has no page */
	return page->n && store_item_is_marker(page->items) &&
			       strlen(page->items->key) == strlen(b->path) + 1
		       ? NAMES_MARKER_PRESENT
		       : NAMES_MARKER_ABSENT;
}

int names_children_take(struct names *ns, const struct store_request *req, struct names_below *b)
{
	b->children = children_in(ns, req);
	b->has_document = b->children == CHILDREN_MANY || has_document(ns, &req->answer.page);
	if (b->children >= 0) {
		b->marker = marker_of(&req->answer.page, b);
		return add_marks(ns, &req->answer.page, b);
	}
	if (b->children == -ENOMEM)
		return -ENOMEM;
	b->has_document = b->children != -EACCES;
	return fail_below(b, b->children, req->answer.err.msg);
}

static bool is_below(const char *key, const char *path, size_t n)
{
	return strncmp(key, path, n) == 0 && key[n] == '/';
}

int names_children_flat(struct names *ns, const struct store_page *flat, struct names_below *b)
{
	const size_t n = strlen(b->path);
	char first[STORE_KEY_MAX + 2];
	struct schema_mark best = {0};
	int rc = 0;
	b->children = CHILDREN_NONE;
	b->marker = NAMES_MARKER_ABSENT;
	snprintf(first, sizeof(first), "%s/", b->path);
	const struct store_item *item = store_page_from(flat, first), *end = flat->items + flat->n;
	for (; !rc && item < end && is_below(item->key, b->path, n); item++) {
		const bool is_direct = !strchr(item->key + n + 1, '/');
		if (!item->key[n + 1]) {
			b->marker = NAMES_MARKER_PRESENT;
			continue;
		}
		if (!is_direct || !schema_is_document(ns->schemas, item->key))
			b->children = CHILDREN_MORE;
		else if (b->children == CHILDREN_NONE)
			b->children = CHILDREN_DOC;
		b->has_document |= is_direct && schema_is_document(ns->schemas, item->key);
		if (is_direct)
			rc = add_mark(ns, &best, item, b);
	}
	return rc;
}

/* Finds at most NAMES_AT_ONCE prefixes. */
static int find_some(struct names *ns, struct names_below *some, size_t n)
{
	struct store_request **reqs = store_requests_new(ns->store, n);
	size_t made = 0;
	int rc = 0;
	if (!reqs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!some[i].is_listed)
			names_children_prepare(some[i].path, reqs[made++]);
	store_run_all(ns->store, reqs, made);
	for (size_t i = 0, k = 0; i < n && !rc; i++)
		if (!some[i].is_listed)
			rc = names_children_take(ns, reqs[k++], &some[i]);
	store_requests_free(reqs, n);
	return rc || !atomic_load(&ns->has_marks) ? rc : names_children_marks(ns, some, n);
}

int names_children_find(struct names *ns, struct names_below *all, size_t n)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i += NAMES_AT_ONCE)
		rc = find_some(ns, all + i, n - i < NAMES_AT_ONCE ? n - i : NAMES_AT_ONCE);
	return rc;
}

int names_check_listing(struct names *ns, const char *dir, struct err *err)
{
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	if (!req)
		return err_no_memory(err);
	names_children_prepare(dir, req);
	if (!dir[0])
		store_request_key(req, "");
	store_run(ns->store, req);
	int rc = store_failure(&req->answer, err);
	return rc == -E2BIG ? 0 : rc;
}

/* What a listing of `prefix` shows of the path. */
static int find_in(struct names *ns, const char *prefix, const char *path, struct err *err)
{
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	const size_t n = strlen(path);
	int found = LISTED_NOT;
	if (!req)
		return err_no_memory(err);
	store_request_key(req, prefix);
	req->list.delimit = true;
	req->list.complete = true;
	req->list.whole = true;
	req->list.limit = CHILDREN_LISTED_MAX;
	store_run(ns->store, req);
	const struct store_page *page = &req->answer.page;
	int rc = store_failure(&req->answer, err);
	for (size_t i = 0; !rc && i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (strncmp(item->key, path, n) != 0)
			continue;
		if (item->is_prefix && strcmp(item->key + n, "/") == 0)
			return LISTED_PREFIX;
		if (!item->is_prefix && item->key[n] == '\0')
			found = LISTED_OBJECT;
	}
	return rc ? rc : found;
}

/* Lists only the keys that begin with the path, which are few. If a policy allows the listing of
 * "home/" but not of "home/x", lists the whole directory. */
int names_is_listed(struct names *ns, const char *path, struct err *err)
{
	int rc = find_in(ns, path, path, err);
	if (rc != -EACCES)
		return rc;
	auto_free char *dir = strndup(path, (size_t)(names_last(path) - path));
	return dir ? find_in(ns, dir, path, err) : err_no_memory(err);
}
