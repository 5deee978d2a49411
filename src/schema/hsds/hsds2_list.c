/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings of a schema v2 domain: which objects they show, and whether the domain has changed.
 *
 * Whether a domain counts as listed whole depends on the number of its keys alone, not on which
 * listings were requested. So the same domain always has the same image. The exception is a domain
 * with an entry that cannot be examined: it does not count as listed whole, and every open lists it
 * again. Pure.
 */
#include "hsds2_load.h"

#include <stdlib.h>
#include <string.h>

/* ---- objects ---- */

/* Returns a copy in the arena of the tree, or NULL if out of memory. */
static const char *copy_etag(struct hsds2_loader *l, const char *etag)
{
	return etag[0] ? arena_strndup(tree_arena(l->hsds.base.load.tree), etag, strlen(etag)) : "";
}

static int add(struct hsds2_loader *l, const struct schema_id *id, const char *etag,
	       struct err *err)
{
	const char *copy = copy_etag(l, etag);
	if (!copy)
		return err_no_memory(err);
	if (l->nfound == TREE_MAX_OBJECTS)
		return err_set(err, -E2BIG, "the domain has more than %u objects",
			       TREE_MAX_OBJECTS);
	struct hsds_entry *found = array_grow(l->found, l->nfound, sizeof(*found));
	if (!found)
		return err_set(err, -ENOMEM, "out of memory: %u objects", l->nfound + 1);
	l->found = found;
	l->found[l->nfound++] = (struct hsds_entry){.id = *id, .etag = copy};
	return 0;
}

static int add_or_root(struct hsds2_loader *l, const struct schema_id *id, const char *etag,
		       struct err *err)
{
	if (!schema_id_equal(id, &l->hsds.space->root))
		return add(l, id, etag, err);
	l->found[0].etag = copy_etag(l, etag);
	return l->found[0].etag ? 0 : err_no_memory(err);
}

static bool is_object(const struct schema_item *item, struct schema_id *id)
{
	struct hsds2_key key;
	hsds2_key_classify(item->key, &key);
	*id = key.id;
	return key.cls == HSDS2_KEY_OBJECT;
}

static bool has_name(const char *key, const char *name)
{
	const char *slash = strrchr(key, '/');
	return slash && strcmp(slash + 1, name) == 0;
}

static struct schema_listed describe(const struct schema_answer *answer)
{
	struct schema_listed out = {.version = UINT64_C(0x9e3779b97f4a7c15)};
	for (size_t i = 0; i < answer->nitems; i++) {
		struct schema_item item;
		struct hsds2_key key;
		answer->item(answer->items, i, &item);
		hsds2_key_classify(item.key, &key);
		if (key.cls == HSDS2_KEY_OTHER) {
			if (has_name(item.key, HSDS2_NAMES))
				out.names = schema_digest(1, item.etag, strlen(item.etag) + 1);
			out.has_copy |= has_name(item.key, HSDS2_COPY);
			if (has_name(item.key, HSDS2_SUMMARY))
				out.summary = schema_digest(1, item.etag, strlen(item.etag) + 1);
			continue;
		}
		out.version = schema_digest(out.version, item.key, strlen(item.key) + 1);
		out.version = schema_digest(out.version, item.etag, strlen(item.etag) + 1);
		out.version = schema_digest(out.version, &item.size, sizeof(item.size));
		out.version = schema_digest(out.version, &item.mtime_ns, sizeof(item.mtime_ns));
		if (item.mtime_ns > out.modified_ns)
			out.modified_ns = item.mtime_ns;
		if (key.cls == HSDS2_KEY_OBJECT)
			out.documents += item.size;
	}
	return out;
}

int hsds2_take_listed(struct hsds2_loader *l, const struct schema_answer *answer, bool prefixes,
		      struct err *err)
{
	struct schema_item item;
	struct schema_id id;
	/* The root group is always the first object, whether it is listed or not. */
	int rc = l->nfound ? 0 : add(l, &l->hsds.space->root, "", err);
	for (size_t i = 0; !rc && i < answer->nitems; i++) {
		answer->item(answer->items, i, &item);
		if (!prefixes && is_object(&item, &id))
			rc = add_or_root(l, &id, item.etag, err);
		else if (prefixes && item.is_prefix && hsds2_object_of_prefix(item.key, &id))
			rc = add(l, &id, "", err);
	}
	return rc;
}

int hsds2_take_whole(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err)
{
	const bool is_all = l->nfound == 0 && !answer->next;
	const int rc = hsds2_take_listed(l, answer, false, err);
	l->hsds.space->base.listed_whole = is_all && answer->nitems <= l->hsds.base.load.list_limit;
	if (rc || !l->hsds.space->base.listed_whole)
		return rc;
	l->hsds.space->base.listed = describe(answer);
	const struct schema_load *load = &l->hsds.base.load;
	return load->listed ? load->listed(load->ctx, &l->hsds.space->base.listed) : 0;
}

int hsds2_take_expected(struct hsds2_loader *l, struct err *err)
{
	const struct hsds_space *old = l->hsds.previous;
	uint32_t n;
	const uint32_t *compared = hsds_compared(old, &n);
	int rc = 0;
	l->nfound = 0;
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = add(l, &old->entries[compared[i]].id, old->entries[compared[i]].etag, err);
	l->hsds.space->listing_code = old->listing_code;
	l->only_expected = true;
	return rc;
}

/* The key of the root group precedes all others. */
static int by_key(const void *a, const void *b)
{
	static const int order[] = {
		[OBJECT_DATASET] = 0, [OBJECT_GROUP] = 1, [OBJECT_DATATYPE] = 2};
	const struct schema_id *x = &((const struct hsds_entry *)a)->id;
	const struct schema_id *y = &((const struct hsds_entry *)b)->id;
	const int kinds = order[x->kind] - order[y->kind];
	return kinds ? kinds : memcmp(x->b, y->b, sizeof(x->b));
}

int hsds2_number_found(struct hsds2_loader *l, struct err *err)
{
	struct hsds_space *s = l->hsds.space;
	struct tree *tree = l->hsds.base.load.tree;
	uint32_t number;
	int rc = 0;
	/* The root group stays the first object. Duplicates go. */
	uint32_t n = min_u64(l->nfound, 1);
	if (l->nfound > 2)
		qsort(l->found + 1, l->nfound - 1, sizeof(*l->found), by_key);
	for (uint32_t i = 1; i < l->nfound; i++)
		if (n == 1 || by_key(&l->found[n - 1], &l->found[i]))
			l->found[n++] = l->found[i];
	l->nfound = n;
	if (hsds_space_reserve(s, tree_arena(tree), l->nfound))
		return err_set(err, -ENOMEM, "out of memory: %u objects", l->nfound);
	for (uint32_t i = 0; !rc && i < l->nfound; i++) {
		rc = hsds_space_add(s, tree_arena(tree), &l->found[i]);
		rc = rc ? err_set(err, rc, "out of memory") : tree_add(tree, &number, err);
	}
	return rc;
}

/* ---- changes ---- */

/* Finds the objects that must be compared by HEAD. Some services write ETags differently in
 * listings and in other answers. So an object whose version in the listing differs counts as
 * changed only after a HEAD has confirmed it. */
static int find_suspects(struct hsds2_loader *l, struct err *err)
{
	uint32_t all;
	const uint32_t *compared = hsds_compared(l->hsds.previous, &all);
	l->suspects = calloc(all, sizeof(*l->suspects));
	if (!l->suspects)
		return err_set(err, -ENOMEM, "out of memory: %u objects", all);
	for (uint32_t i = 0; i < all; i++)
		if (!l->seen[compared[i]])
			l->suspects[l->hsds.nheads++] = compared[i];
	l->hsds.heads = l->suspects;
	return 0;
}

static int see(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err)
{
	const struct hsds_space *old = l->hsds.previous;
	if (!l->seen)
		l->seen = calloc(old->n, sizeof(*l->seen));
	if (!l->seen)
		return err_set(err, -ENOMEM, "out of memory: %u objects", old->n);
	for (size_t i = 0; i < answer->nitems; i++) {
		struct schema_item item;
		struct schema_id id;
		answer->item(answer->items, i, &item);
		const uint32_t number = is_object(&item, &id) ? hsds_number(old, &id) : OBJECT_NONE;
		if (number != OBJECT_NONE)
			l->seen[number] |= hsds_same_version(item.etag, old->entries[number].etag);
	}
	return 0;
}

int hsds2_compare(struct hsds2_loader *l, const struct schema_answer *answer, bool is_last,
		  struct err *err)
{
	const struct hsds_space *old = l->hsds.previous;
	const int rc = old->base.listed_whole ? 0 : see(l, answer, err);
	if (rc || !is_last)
		return rc;
	const bool whole = l->nlisted <= l->hsds.base.load.list_limit;
	if (whole && old->base.listed_whole) {
		const struct schema_listed now = describe(answer);
		l->hsds.space->base.listed.has_copy = now.has_copy;
		l->hsds.space->base.listed.summary = now.summary;
		l->hsds.changed = l->expected || now.version != old->base.listed.version;
	} else {
		l->hsds.changed = whole != old->base.listed_whole;
	}
	return l->hsds.changed || whole ? 0 : find_suspects(l, err);
}

/* ---- ranges ---- */

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Gets the keys of the documents that are compared and that come after the key `after`, in
 * order. */
static int known_keys(struct hsds2_loader *l, const char *after, const char **keys, uint32_t *n)
{
	const struct hsds_space *old = l->hsds.previous;
	char key[SCHEMA_KEY_MAX + 1];
	uint32_t all;
	const uint32_t *compared = hsds_compared(old, &all);
	*n = 0;
	for (uint32_t i = 0; i < all; i++) {
		const int len = hsds_object_key(&old->entries[compared[i]].id, key, sizeof(key));
		if (len < 0 || strcmp(key, after) <= 0)
			continue;
		keys[*n] = arena_strndup(l->ranges.arena, key, (size_t)len);
		if (!keys[(*n)++])
			return -ENOMEM;
	}
	qsort(keys, *n, sizeof(*keys), compare_keys);
	return 0;
}

int hsds2_divide(struct hsds2_loader *l, const char *after, struct err *err)
{
	struct hsds2_ranges *r = &l->ranges;
	uint32_t all, n = 0;
	hsds_compared(l->hsds.previous, &all);
	*r = (struct hsds2_ranges){.arena = arena_new(SIZE_MAX)};
	auto_free const char **keys = calloc(all, sizeof(*keys));
	if (!r->arena || !keys)
		return err_set(err, -ENOMEM, "out of memory: %u objects", all);
	r->after = arena_strndup(r->arena, after, strlen(after));
	r->ends = arena_array(r->arena, all / HSDS2_RANGE + 1, sizeof(*r->ends));
	if (!r->after || !r->ends || known_keys(l, after, keys, &n))
		return err_set(err, -ENOMEM, "out of memory: %u objects", all);
	for (r->n = 1; r->n * HSDS2_RANGE < n; r->n++)
		r->ends[r->n - 1] = keys[r->n * HSDS2_RANGE - 1];
	return 0;
}
