/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists a domain of many objects in ranges, which are requested side by side. A page of S3 has at
 * most 1,000 keys, and the pages of one listing can only be requested one after the other.
 *
 * The ids of objects are random, so the keys of one kind of objects are spread evenly. The first
 * round divides the keys of each kind into ranges of about a page. If a range has more keys, the
 * keys that the page does not show are divided again in the next round, by the density that the
 * page shows. If ids are not spread evenly, there are more rounds, and the result is the same.
 *
 * All keys are listed, because this shows the versions of the documents. If a page has more than a
 * few keys for each object, the rest of its range is listed with a delimiter: then the objects are
 * known, but not their versions.
 *
 * Invariant: the ranges of a round do not overlap, and whatever is in none of them was listed
 * before. Pure.
 */
#include "hsds2_load.h"

#include <stdio.h>
#include <string.h>

#include <base/mem.h>
#include <data/number.h>

enum {
	PAGE = 1000,	     /* keys, in S3 */
	FIRST_PARTS = 16,    /* ranges of one kind in the first round */
	PARTS_MAX = 16,	     /* ranges into which one is divided */
	ROUND_MAX = 512,     /* with more ranges in a round, none is divided */
	KEYS_PER_OBJECT = 4, /* with more keys, a delimiter is used */
	KEYS_MAX = 2 * KEYS_PER_OBJECT * TREE_MAX_OBJECTS, /* of a listing that goes on */
	ALL_KINDS = UINT32_MAX, /* kind of the range that precedes all objects */
};

/* ---- positions: the last 64 bits of an id ---- */

/* Gets the position of the object to which a key, or a prefix of keys, belongs. */
static bool position_of(const struct hsds2_loader *l, uint32_t kind, const char *key, uint64_t *out)
{
	enum { ID = sizeof("0000-000000-000000/") - 1 };
	char prefix[SCHEMA_KEY_MAX + 1];
	struct schema_id id;
	const int n = hsds2_object_prefix(&l->hsds.space->root, kind, prefix, sizeof(prefix));
	if (n <= 0 || strncmp(key, prefix, (size_t)n) != 0 || strlen(key + n) + 1 < ID)
		return false;
	memcpy(prefix + n, key + n, ID - 1);
	strcpy(prefix + n + ID - 1, "/");
	if (!hsds2_object_of_prefix(prefix, &id))
		return false;
	*out = number_get_int(id.b + 8, sizeof(*out), true);
	return true;
}

/* Returns a text that precedes all keys of the object at this position, and follows those of the
 * objects before it. Returns NULL if out of memory. */
static const char *text_of(struct hsds2_loader *l, uint32_t kind, uint64_t position)
{
	char text[SCHEMA_KEY_MAX + 1];
	const int n = hsds2_object_prefix(&l->hsds.space->root, kind, text, sizeof(text));
	if (n <= 0)
		return NULL;
	snprintf(text + n, sizeof(text) - (size_t)n, "%04x-%06x-%06x", (unsigned)(position >> 48),
		 (unsigned)(position >> 24 & 0xffffff), (unsigned)(position & 0xffffff));
	return arena_strndup(l->walk.arena, text, strlen(text));
}

/* ---- ranges ---- */

static int add_part(struct hsds2_loader *l, const struct hsds2_part *part, struct err *err)
{
	return bytes_append(&l->walk.later, part, sizeof(*part)) ? err_no_memory(err) : 0;
}

/* Adds the range as n ranges. The first n - 1 ends are positions of this kind, `width` apart,
 * beginning at `from`. */
static int add_divided(struct hsds2_loader *l, struct hsds2_part part, uint32_t kind, uint32_t n,
		       uint64_t from, uint64_t width, struct err *err)
{
	const char *const until = part.until;
	int rc = 0;
	for (uint32_t i = 1; !rc && i <= n; i++) {
		part.until = i < n ? text_of(l, kind, from + i * width) : until;
		if (i < n && !part.until)
			return err_no_memory(err);
		rc = add_part(l, &part, err);
		part.after = part.until;
	}
	return rc;
}

/* Adds what follows a page of a range. */
static int add_rest(struct hsds2_loader *l, const struct hsds2_part *part,
		    const struct schema_answer *answer, bool delimit, struct err *err)
{
	struct hsds2_part rest = *part;
	struct schema_item first;
	uint64_t from, at, end = UINT64_MAX;
	const char *next = answer->next;
	rest.delimit = delimit;
	rest.after = arena_strndup(l->walk.arena, next, strlen(next));
	if (!rest.after)
		return err_no_memory(err);
	answer->item(answer->items, 0, &first);
	uint32_t kind = part->kind == ALL_KINDS ? 0 : part->kind;
	while (part->kind == ALL_KINDS && kind < HSDS2_OBJECT_PREFIXES &&
	       !position_of(l, kind, next, &at))
		kind++;
	if (kind == HSDS2_OBJECT_PREFIXES || l->walk.later.len >= ROUND_MAX * sizeof(rest) ||
	    !position_of(l, kind, next, &at) || !position_of(l, kind, first.key, &from))
		return add_part(l, &rest, err);
	/* If the end is not a key of this kind, it is behind all keys of this kind. */
	if (part->until && !position_of(l, kind, part->until, &end))
		end = UINT64_MAX;
	if (from >= at || at >= end)
		return add_part(l, &rest, err);
	/* A little less than the page has shown, so that few ranges have more than a page. */
	const uint64_t page = max_u64((at - from) / 10 * 9, 1);
	const uint64_t parts = min_u64(min_u64((end - at) / page + 1, PARTS_MAX), end - at);
	return add_divided(l, rest, kind, (uint32_t)parts, at, min_u64((end - at) / parts, page),
			   err);
}

/* ---- rounds ---- */

static const struct hsds2_part *nth(const struct hsds2_loader *l, uint32_t i)
{
	return (const struct hsds2_part *)(const void *)l->walk.now.data + i;
}

void hsds2_walk_note(struct hsds2_loader *l, uint32_t kind, const struct schema_answer *answer)
{
	uint64_t at;
	l->walk.has[kind] = answer->nitems;
	if (!answer->next)
		return;
	l->walk.needed = true;
	l->walk.parts[kind] = FIRST_PARTS;
	if (position_of(l, kind, answer->next, &at) && at) {
		const uint64_t parts = UINT64_MAX / at * answer->nitems / (PAGE / 10 * 9) + 1;
		l->walk.parts[kind] = (uint32_t)min_u64(parts, FIRST_PARTS);
	}
}

static int begin(struct hsds2_loader *l, struct err *err)
{
	struct hsds2_walk *w = &l->walk;
	struct hsds2_part part = {.kind = ALL_KINDS};
	char text[SCHEMA_KEY_MAX + 1];
	w->arena = arena_new(SIZE_MAX);
	if (!w->arena ||
	    hsds2_object_prefix(&l->hsds.space->root, OBJECT_DATASET, text, sizeof(text)) <= 0)
		return err_no_memory(err);
	l->nfound = 0;
	/* A domain with an entry that cannot be examined. */
	part.delimit = l->hsds.space->listing_code != -E2BIG;
	w->delimited = part.delimit;
	part.until = arena_strndup(w->arena, text, strlen(text));
	int rc = part.until ? add_part(l, &part, err) : err_no_memory(err);
	for (uint32_t kind = 0; !rc && kind < HSDS2_OBJECT_PREFIXES; kind++) {
		const uint32_t n = w->parts[kind] ? w->parts[kind] : 1;
		part = (struct hsds2_part){.kind = kind, .delimit = w->delimited};
		if (w->has[kind])
			rc = add_divided(l, part, kind, n, 0, UINT64_MAX / n, err);
	}
	return rc;
}

bool hsds2_walk_goes_on(const struct hsds2_loader *l)
{
	return l->walk.later.len && !(l->walk.by_pages && l->walk.delimited);
}

int hsds2_walk_round(struct hsds2_loader *l, uint32_t *n, struct err *err)
{
	struct hsds2_walk *w = &l->walk;
	const int rc = w->arena ? 0 : begin(l, err);
	const struct bytes spare = w->now;
	w->now = w->later;
	w->later = spare;
	w->later.len = 0;
	*n = (uint32_t)(w->now.len / sizeof(struct hsds2_part));
	return rc;
}

bool hsds2_walk_request(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	const struct hsds2_part *part = nth(l, i);
	const struct schema_id *root = &l->hsds.space->root;
	req->op = SCHEMA_LIST;
	req->is_page = true;
	req->delimit = part->delimit;
	req->limit = UINT32_MAX;
	req->after = part->after;
	req->until = part->until;
	return (part->kind == ALL_KINDS
			? hsds2_storage_prefix(root, req->key, req->room)
			: hsds2_object_prefix(root, part->kind, req->key, req->room)) > 0;
}

int hsds2_walk_answer(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
		      struct err *err)
{
	const struct hsds2_part *part = nth(l, i);
	const uint32_t before = l->nfound;
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "listing the objects of the domain");
	}
	const bool prefixes = part->delimit && part->kind != ALL_KINDS;
	const int rc = hsds2_take_listed(l, answer, prefixes, err);
	l->walk.nkeys += answer->nitems;
	if (rc || !answer->next)
		return rc;
	if (l->walk.nkeys > KEYS_MAX)
		return err_set(err, -E2BIG, "the domain has more than %d keys for its objects",
			       KEYS_MAX);
	if (answer->nitems == 0 || (part->after && strcmp(answer->next, part->after) <= 0))
		return err_set(err, -EIO, "a listing of the domain does not advance");
	/* With so many keys for each object, a delimiter is better. */
	const uint64_t many = KEYS_PER_OBJECT * ((uint64_t)l->nfound - before + 4);
	const bool delimit = part->delimit || answer->nitems > many;
	l->walk.delimited |= delimit;
	return add_rest(l, part, answer, delimit, err);
}

/* ---- the pages of an earlier listing ---- */

/* Makes a range for each page. Returns false if the pages are not valid, or if out of memory. */
static bool add_pages(struct hsds2_loader *l)
{
	const struct schema_load *load = &l->hsds.base.load;
	struct hsds2_part part = {.kind = ALL_KINDS};
	char prefix[SCHEMA_KEY_MAX + 1];
	const int n = hsds2_storage_prefix(&l->hsds.space->root, prefix, sizeof(prefix));
	for (uint32_t i = 0; i < load->npages; i++) {
		part.until = load->pages[i];
		if (n <= 0 || strncmp(part.until, prefix, (size_t)n) != 0 ||
		    (i && strcmp(part.after, part.until) >= 0) || add_part(l, &part, NULL))
			return false;
		part.after = part.until;
	}
	part.until = NULL;
	return load->npages && add_part(l, &part, NULL) == 0;
}

static void drop(struct hsds2_walk *w)
{
	hsds2_walk_release(w);
	*w = (struct hsds2_walk){0};
}

bool hsds2_walk_by_pages(struct hsds2_loader *l)
{
	struct hsds2_walk *w = &l->walk;
	if (l->hsds.base.load.whole_only || !l->hsds.base.load.npages)
		return false;
	w->arena = arena_new(SIZE_MAX);
	w->by_pages = w->arena && add_pages(l);
	if (w->by_pages)
		return true;
	drop(w);
	return false;
}

bool hsds2_walk_is_void(struct hsds2_loader *l)
{
	struct hsds2_walk *w = &l->walk;
	if (!w->by_pages || (!w->later.len && w->nkeys > l->hsds.base.load.list_limit))
		return false;
	drop(w);
	l->nfound = 0;
	return true;
}

void hsds2_walk_release(struct hsds2_walk *w)
{
	arena_free(w->arena);
	bytes_release(&w->now);
	bytes_release(&w->later);
}
