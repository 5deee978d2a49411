/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See document_record.h. The index and the parts are records of the disk cache
 * (diskcache/record.h):
 *
 *   "documents\n" ROOT   the index: the first key of each part with the version "part", in order;
 *                        keys that divide a listing, with the version "page", in order
 *   "documents\n" KEY    the part whose first key this is: an item for each document
 *
 * A part keeps its range of keys when the record is written again, so that a new object changes one
 * part only.
 */
#include "document_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/search.h>
#include <diskcache/diskcache.h>

enum {
	PART_BYTES = 1 << 20, /* a part is closed when it has more … */
	PART_ITEMS = 1000,    /* … or so many documents */
	ITEM_MAX = 1 << 18,   /* bytes of a document; larger ones are kept as objects */
	PART_MAX = 4 << 20,   /* bytes of a part that is read */
	INDEX_MAX = 16 << 20, /* bytes of an index that is read */
	PAGE = 1000,	      /* keys of a page of S3 */
	GRAIN = 20,	      /* keys; pages are divided at every GRAIN-th key at most */
	WINDOW = 1024,	      /* requests of a round in progress */
};

static const char format[] = "1", part_word[] = "part", page_word[] = "page";

/* Texts in order. They are borrowed, or in the arena `own`. */
struct keys {
	const char **v;
	uint32_t n;
};

/* A part in memory. */
struct part {
	const char *first; /* of the index; NULL if none was read */
	struct bytes text;
	struct record_item *items;
	uint32_t n, at; /* `at` is probably the next one that is needed */
};

/* GRAIN keys of a listing, or fewer. */
struct grain {
	const char *last;
	uint32_t n;
};

struct document_record {
	struct store *disk;
	char *name; /* of the index */
	struct bytes index;
	struct keys parts, pages;  /* of the index */
	struct part ahead, behind; /* for requests, and for answers */
	char versions[WINDOW][STORE_ETAG_MAX];

	/* What is written. `last` is the key of the last document, and `first` that of the first
	 * one of the current part. The part ends before the key `end` at the latest, if that is not
	 * NULL. */
	struct bytes text;  /* of the current part */
	uint32_t n;	    /* its documents */
	uint32_t unchanged; /* those that are on disk */
	char first[STORE_KEY_MAX + 1], last[STORE_KEY_MAX + 1];
	const char *end;
	struct bytes written; /* the new index */
	bool changed, failed;
	struct arena *arena; /* of the grains */
	struct grain *grains;
	size_t ngrains;
};

/* ---- reading ---- */

static int push(struct keys *k, const char *key)
{
	const char **v = array_grow(k->v, k->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	k->v = v;
	k->v[k->n++] = key;
	return 0;
}

/* An index that is damaged, or that is not in order, is as none. */
static void read_index(struct document_record *r)
{
	struct record_item item;
	if (store_diskcache_recall(r->disk, r->name, format, INDEX_MAX, &r->index))
		return;
	struct cursor c = cursor_of(r->index.data, r->index.len);
	bool ok = true;
	while (ok && record_next(&c, &item)) {
		struct keys *k = strcmp(item.version, part_word) == 0 ? &r->parts : &r->pages;
		ok = (k->n == 0 || strcmp(k->v[k->n - 1], item.name) < 0) &&
		     push(k, item.name) == 0;
	}
	if (!ok || !cur_ok(&c))
		r->parts.n = r->pages.n = 0;
}

static int name_of(const char *key, char *name, size_t room)
{
	const int n = snprintf(name, room, "documents\n%s", key);
	return n < 0 || (size_t)n >= room ? -1 : 0;
}

struct document_record *document_record_new(struct store *disk, const char *root)
{
	char name[STORE_KEY_MAX + 1];
	struct document_record *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->disk = disk;
	r->arena = arena_new(SIZE_MAX);
	r->name = name_of(root, name, sizeof(name)) ? NULL : strdup(name);
	if (!r->arena || !r->name) {
		document_record_free(r);
		return NULL;
	}
	read_index(r);
	return r;
}

static void drop_part(struct part *p)
{
	bytes_release(&p->text);
	free(p->items);
	*p = (struct part){0};
}

void document_record_free(struct document_record *r)
{
	if (!r)
		return;
	drop_part(&r->ahead);
	drop_part(&r->behind);
	bytes_release(&r->index);
	bytes_release(&r->text);
	bytes_release(&r->written);
	free(r->parts.v);
	free(r->pages.v);
	free(r->grains);
	free(r->name);
	arena_free(r->arena);
	free(r);
}

const char *const *document_record_pages(const struct document_record *r, uint32_t *n)
{
	*n = r->pages.n;
	return r->pages.v;
}

/* Returns the index of the part that has a key, or -1 if there is none. */
static int64_t part_of(const struct document_record *r, const char *key)
{
	return (int64_t)LOWER_BOUND(i, r->parts.n, strcmp(r->parts.v[i], key) <= 0) - 1;
}

/* Reads the items of a part that was recalled. If they are not in order, it has none. */
static void read_items(struct part *p)
{
	struct cursor c = cursor_of(p->text.data, p->text.len);
	struct record_item item;
	bool ok = true;
	while (ok && record_next(&c, &item)) {
		struct record_item *items = array_grow(p->items, p->n, sizeof(*items));
		p->items = items ? items : p->items;
		ok = items && (p->n == 0 || strcmp(items[p->n - 1].name, item.name) < 0);
		if (ok)
			items[p->n++] = item;
	}
	if (!ok || !cur_ok(&c))
		p->n = 0;
}

/* Returns the document of a key on disk, or NULL. */
static const struct record_item *find(struct document_record *r, struct part *p, const char *key)
{
	if (p->at < p->n && strcmp(p->items[p->at].name, key) == 0)
		return &p->items[p->at++];
	const int64_t part = part_of(r, key);
	if (part < 0)
		return NULL;
	if (p->first != r->parts.v[part]) {
		char name[STORE_KEY_MAX + 1];
		drop_part(p);
		p->first = r->parts.v[part];
		if (name_of(p->first, name, sizeof(name)) == 0 &&
		    store_diskcache_recall(r->disk, name, format, PART_MAX, &p->text) == 0)
			read_items(p);
	}
	p->at = LOWER_BOUND(i, p->n, strcmp(p->items[i].name, key) < 0);
	if (p->at == p->n || strcmp(p->items[p->at].name, key) != 0)
		return NULL;
	return &p->items[p->at++];
}

/* ---- answers ---- */

/* Puts a document into the answer. Returns false if out of memory. */
static bool set_answer(struct store_request *req, const struct record_item *item)
{
	struct store_answer *a = &req->answer;
	if (bytes_append(&a->body, item->bytes, item->n))
		return false;
	a->state = STORE_PRESENT;
	a->unchanged = false;
	a->meta = (struct store_meta){.size = item->n};
	strcpy(a->meta.etag, item->version);
	return true;
}

bool document_record_answer(struct document_record *r, size_t i, const char *listed,
			    struct store_request *req)
{
	const struct record_item *item = find(r, &r->ahead, req->key);
	req->is_kept = true;
	if (!item) {
		store_diskcache_note_miss(r->disk);
		return false;
	}
	if (listed && strcmp(listed, item->version) == 0 && set_answer(req, item)) {
		store_diskcache_note_hit(r->disk, item->n);
		return true;
	}
	/* Some services write ETags differently in listings. So another version than the listed one
	 * may be the current one. */
	if (!req->cond.if_none_match && item->version[0]) {
		strcpy(r->versions[i % WINDOW], item->version);
		req->cond.if_none_match = r->versions[i % WINDOW];
	}
	return false;
}

static bool is_own_condition(const struct document_record *r, const struct store_request *req)
{
	const char *version = req->cond.if_none_match;
	const char *first = r->versions[0], *end = (const char *)r->versions + sizeof(r->versions);
	return version >= first && version < end;
}

bool document_record_take(struct document_record *r, struct store_request *req)
{
	if (!req->answer.unchanged || !is_own_condition(r, req))
		return true;
	const struct record_item *item = find(r, &r->behind, req->key);
	return item && strcmp(item->version, req->cond.if_none_match) == 0 && set_answer(req, item);
}

/* ---- writing ---- */

/* Ends the current part, and writes it unless it is on disk. */
static void end_part(struct document_record *r)
{
	char name[STORE_KEY_MAX + 1];
	if (r->n == 0)
		return;
	const struct record_item item = {.name = r->first, .version = part_word};
	const int64_t old = part_of(r, r->first);
	const bool is_same =
		r->unchanged == r->n && old >= 0 && strcmp(r->parts.v[old], r->first) == 0;
	r->failed |= record_add(&r->written, &item) || name_of(r->first, name, sizeof(name));
	if (!is_same && !r->failed) {
		store_diskcache_remember(r->disk, name, format, 0, r->text.data, r->text.len);
		r->changed = true;
	}
	r->n = r->unchanged = 0;
	r->text.len = 0;
}

void document_record_add(struct document_record *r, const struct store_request *req)
{
	const struct store_answer *a = &req->answer;
	const struct record_item item = {req->key, a->meta.etag, a->body.data, a->body.len};
	const bool is_same = !req->done || (is_own_condition(r, req) &&
					    strcmp(req->cond.if_none_match, a->meta.etag) == 0);
	if (!a->meta.etag[0] || a->body.len > ITEM_MAX || strcmp(r->last, req->key) >= 0 ||
	    (!is_same && !store_diskcache_is_settled(r->disk, a->meta.mtime_ns)))
		return;
	if (r->n == PART_ITEMS || r->text.len >= PART_BYTES ||
	    (r->n && r->end && strcmp(r->end, req->key) <= 0))
		end_part(r);
	if (record_add(&r->text, &item))
		return;
	if (r->n++ == 0) {
		const int64_t old = part_of(r, req->key);
		snprintf(r->first, sizeof(r->first), "%s", req->key);
		r->end = old + 1 < r->parts.n ? r->parts.v[old + 1] : NULL;
	}
	snprintf(r->last, sizeof(r->last), "%s", req->key);
	r->unchanged += is_same;
}

/* ---- pages ---- */

static int add_grain(struct document_record *r, const char *last, uint32_t n)
{
	struct grain *grains = array_grow(r->grains, r->ngrains, sizeof(*grains));
	if (!grains)
		return -ENOMEM;
	r->grains = grains;
	const char *copy = arena_strndup(r->arena, last, strlen(last));
	if (!copy)
		return -ENOMEM;
	r->grains[r->ngrains++] = (struct grain){copy, n};
	return 0;
}

void document_record_add_keys(struct document_record *r, const struct store_page *page)
{
	for (size_t i = 0; i < page->n; i += GRAIN) {
		const size_t n = min_u64(GRAIN, page->n - i);
		r->failed |= add_grain(r, page->items[i + n - 1].key, (uint32_t)n) != 0;
	}
}

static int by_key(const void *a, const void *b)
{
	const struct grain *x = a, *y = b;
	return strcmp(x->last, y->last);
}

/* Divides the keys of the listing into pages. */
static void add_pages(struct document_record *r)
{
	struct record_item item = {.version = page_word};
	uint32_t sum = 0, n = 0;
	if (r->ngrains)
		qsort(r->grains, r->ngrains, sizeof(*r->grains), by_key);
	for (size_t i = 0; i < r->ngrains && !r->failed; i++) {
		if (sum + r->grains[i].n > PAGE) {
			item.name = r->grains[i - 1].last;
			r->failed |= record_add(&r->written, &item) != 0;
			sum = 0;
			n++;
		}
		sum += r->grains[i].n;
	}
	r->changed |= n > r->pages.n + r->pages.n / 8 + 2;
}

/* Keeps the pages of the earlier index. */
static void keep_pages(struct document_record *r)
{
	struct record_item item = {.version = page_word};
	for (uint32_t i = 0; i < r->pages.n && !r->failed; i++) {
		item.name = r->pages.v[i];
		r->failed |= record_add(&r->written, &item) != 0;
	}
}

void document_record_finish(struct document_record *r, bool has_pages)
{
	end_part(r);
	if (has_pages)
		add_pages(r);
	else
		keep_pages(r);
	if (r->changed && !r->failed)
		store_diskcache_remember(r->disk, r->name, format, 0, r->written.data,
					 r->written.len);
}
