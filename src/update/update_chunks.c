/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks of a file have changed, and which have been removed. Chunks are compared by their
 * coordinates, because their numbers depend on the shape.
 *
 * A chunk is in a run of slots or has a record, in either state (struct chunk_set):
 *
 *   now      before    how it is compared
 *   record   any       one by one: update_changed.c
 *   run      record    one by one
 *   run      run       the record is the same. The written bytes of the slots and of the items
 *                      lead to the chunks that have changed
 *   -        record    removed
 *   -        run       removed
 *
 * So the work is in proportion to what was written. There is one exception: if the shape is smaller
 * than that of the image, or was, a slot may be outside of one of the shapes, so it is no chunk
 * there. Then all slots are looked at.
 */
#include "update_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding a chunk ---- */

/* Finds out what a state says of a chunk. `grid` is that of the state. Returns false if the state
 * does not have the chunk. */
static bool find(const struct pair *p, const struct chunk_set *set, const struct grid *grid,
		 uint64_t number, struct chunk_record *out)
{
	const struct chunk_record *r = chunk_set_find(set, number);
	uint64_t chunk, slot;
	if (r) {
		*out = *r;
		return true;
	}
	if (!set->nruns || !update_renumber(grid, p->slots.grid, number, &chunk) ||
	    !slots_find(&p->slots, chunk, &slot) || !chunk_set_has_slot(set, slot))
		return false;
	*out = slots_record(&p->slots, slot);
	out->number = number;
	return true;
}

/* `number` is in the shape of before. */
static bool is_there(const struct pair *p, uint64_t number)
{
	struct chunk_record r;
	uint64_t now;
	return update_renumber(p->grid_before, p->grid, number, &now) &&
	       find(p, p->new, p->grid, now, &r);
}

/* Finds the chunk in a slot, as one state says. Returns false if it is outside of the shape of that
 * state. */
static bool slot_in(const struct pair *p, const struct grid *grid, uint64_t slot,
		    struct chunk_record *out)
{
	*out = slots_record(&p->slots, slot);
	return update_renumber(p->slots.grid, grid, out->number, &out->number);
}

/* ---- changes ---- */

static int add(struct update *u, const struct chunk_change *change, struct err *err)
{
	return bytes_append(&u->chunks, change, sizeof(*change)) ? err_no_memory(err) : 0;
}

/* `number` is in the shape of now. `old` is what was before, or NULL. */
static int add_changed(const struct pair *p, uint64_t number, const struct chunk_record *old,
		       struct err *err)
{
	const struct chunk_change c = {
		.dataset = p->now,
		.number = number,
		.is_new = !old,
		.version = old ? chunk_versions_find(&p->old->versions, old->number) : NULL};
	return add(p->u, &c, err);
}

/* `number` is in the shape of before. */
static int add_gone(const struct pair *p, uint64_t number, struct err *err)
{
	const struct chunk_change c = {.dataset = p->now,
				       .number = number,
				       .is_gone = true,
				       .version = chunk_versions_find(&p->old->versions, number)};
	return add(p->u, &c, err);
}

static int compare_one(const struct pair *p, const struct chunk_record *r, struct err *err)
{
	struct chunk_record before;
	uint64_t number; /* in the shape of before */
	const bool is_old = update_renumber(p->grid, p->grid_before, r->number, &number) &&
			    find(p, p->old, p->grid_before, number, &before);
	const struct chunk_record *old = is_old ? &before : NULL;
	const int changed = chunk_has_changed(p, old, r, err);
	return changed > 0 ? add_changed(p, r->number, old, err) : changed;
}

/* Adds a chunk of a slot whose record is the same. compare_shapes() handles slots that are outside
 * of one of the shapes. */
static int add_slot(const struct pair *p, uint64_t slot, struct err *err)
{
	struct chunk_record now, old;
	if (!slot_in(p, p->grid, slot, &now) || !slot_in(p, p->grid_before, slot, &old))
		return 0;
	return add_changed(p, now.number, &old, err);
}

/* ---- runs ---- */

typedef int (*slot_fn)(const struct pair *p, uint64_t slot, struct err *err);

static int for_each(const struct pair *p, uint64_t first, uint64_t end, slot_fn fn, struct err *err)
{
	int rc = 0;
	for (uint64_t slot = first; !rc && slot < end; slot++)
		rc = fn(p, slot, err);
	return rc;
}

/* Calls fn for each slot that is in a run of a, but not of b. */
static int for_each_only(const struct pair *p, const struct chunk_set *a, const struct chunk_set *b,
			 slot_fn fn, struct err *err)
{
	size_t k = 0;
	int rc = 0;
	for (size_t i = 0; i < a->nruns; i++) {
		uint64_t at = a->runs[i].first;
		while (!rc && at < a->runs[i].end) {
			while (k < b->nruns && b->runs[k].end <= at)
				k++;
			const bool any = k < b->nruns && b->runs[k].first < a->runs[i].end;
			const uint64_t stop = any ? b->runs[k].first : a->runs[i].end;
			rc = for_each(p, at, stop, fn, err);
			at = any ? b->runs[k].end : a->runs[i].end;
		}
	}
	return rc;
}

/* Calls fn for the parts of runs that both states have. */
static int for_each_common(const struct pair *p,
			   int (*fn)(const struct pair *p, uint64_t first, uint64_t end,
				     struct err *err),
			   struct err *err)
{
	const struct chunk_set *a = p->old, *b = p->new;
	int rc = 0;
	for (size_t i = 0, k = 0; !rc && i < a->nruns && k < b->nruns;) {
		const uint64_t first = max_u64(a->runs[i].first, b->runs[k].first);
		const uint64_t end = min_u64(a->runs[i].end, b->runs[k].end);
		if (first < end)
			rc = fn(p, first, end, err);
		if (a->runs[i].end == end)
			i++;
		else
			k++;
	}
	return rc;
}

static int new_slot(const struct pair *p, uint64_t slot, struct err *err)
{
	struct chunk_record r;
	return slot_in(p, p->grid, slot, &r) ? compare_one(p, &r, err) : 0;
}

static int gone_slot(const struct pair *p, uint64_t slot, struct err *err)
{
	struct chunk_record old;
	if (!slot_in(p, p->grid_before, slot, &old) || is_there(p, old.number))
		return 0;
	return add_gone(p, old.number, err);
}

/* Calls fn for each slot of [first, end) with bytes that `next` finds. */
static int for_each_found(const struct pair *p, uint64_t first, uint64_t end,
			  uint64_t (*next)(const struct update *u, uint64_t start, uint64_t end),
			  slot_fn fn, struct err *err)
{
	uint64_t at, stop, start, slot_end;
	int rc = 0;
	slots_range(&p->slots, first, &at, &slot_end);
	slots_range(&p->slots, end - 1, &start, &stop);
	while (!rc && at < stop && (at = next(p->u, at, stop)) < stop) {
		const uint64_t slot = slots_at(&p->slots, at);
		slots_range(&p->slots, slot, &start, &slot_end);
		if (at < slot_end)
			rc = fn(p, slot, err);
		at = start + p->slots.at.stride;
	}
	return rc;
}

/* Adds the chunk of a slot if its items have changed. */
static int check_items(const struct pair *p, uint64_t slot, struct err *err)
{
	struct chunk_record r;
	if (!slot_in(p, p->grid, slot, &r))
		return 0;
	const int changed = chunk_has_new_items(p, &r, err);
	return changed > 0 ? add_slot(p, slot, err) : changed;
}

static int compare_written(const struct pair *p, uint64_t first, uint64_t end, struct err *err)
{
	int rc = for_each_found(p, first, end, update_next_written, add_slot, err);
	if (!rc && p->has_items && !p->u->base->is_image)
		rc = for_each_found(p, first, end, update_next_replaced, check_items, err);
	return rc;
}

/* Looks for written items where the image has them: the slots tell whose they are. */
static int compare_items(const struct pair *p, struct err *err)
{
	const struct image *image = p->u->base->image;
	uint64_t at = p->slots.at.heap, start, end;
	int rc = 0;
	while (!rc && at < p->slots.at.heap_end) {
		at = update_next_written(p->u, at, p->slots.at.heap_end);
		if (at >= p->slots.at.heap_end)
			break;
		const uint64_t slot = image_item_slot(image, p->slots.dataset, at);
		const uint64_t chunk = slots_chunk(&p->slots, slot);
		if (!image_items(image, p->slots.dataset, chunk, &start, &end) || end <= at)
			return err_set(err, -EINVAL, "the image has no chunk at %llu",
				       (unsigned long long)at);
		at = end;
		if (chunk_set_has_slot(p->old, slot) && chunk_set_has_slot(p->new, slot))
			rc = check_items(p, slot, err);
	}
	return rc;
}

/* ---- shapes that are smaller than that of the image ---- */

static bool contains(const struct grid *outer, const struct grid *inner)
{
	for (uint32_t i = 0; i < inner->rank; i++)
		if (outer->count[i] < inner->count[i])
			return false;
	return true;
}

static int compare_shape(const struct pair *p, uint64_t slot, struct err *err)
{
	struct chunk_record now, old;
	const bool is_now = slot_in(p, p->grid, slot, &now);
	const bool was_before = slot_in(p, p->grid_before, slot, &old);
	if (is_now == was_before)
		return 0;
	return is_now ? add_changed(p, now.number, NULL, err) : add_gone(p, old.number, err);
}

static int compare_shapes(const struct pair *p, uint64_t first, uint64_t end, struct err *err)
{
	return for_each(p, first, end, compare_shape, err);
}

/* ---- datasets ---- */

static int compare_changes(const void *a, const void *b)
{
	const struct chunk_change *x = a, *y = b;
	if (x->is_gone != y->is_gone)
		return x->is_gone ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Sorts the changes of a dataset. Both the bytes and the items of a chunk may have changed. */
static void sort_changes(struct update *u, size_t from)
{
	struct chunk_change *all = (void *)(u->chunks.data + from);
	const size_t n = (u->chunks.len - from) / sizeof(*all);
	size_t kept = 0;
	if (n)
		qsort(all, n, sizeof(*all), compare_changes);
	for (size_t i = 0; i < n; i++)
		if (!kept || compare_changes(&all[kept - 1], &all[i]))
			all[kept++] = all[i];
	u->chunks.len = from + kept * sizeof(*all);
}

/* Copies the known versions of chunks, because the old state of the file ends before the new
 * one. */
static int keep_versions(const struct pair *p, struct err *err)
{
	const struct chunk_versions *old = &p->old->versions;
	struct chunk_record r;
	for (size_t i = 0; i < old->n; i++) {
		const char *version = old->v[i].version;
		uint64_t number;
		if (!update_renumber(p->grid_before, p->grid, old->v[i].number, &number) ||
		    !find(p, p->new, p->grid, number, &r))
			continue;
		version = arena_strndup(p->u->now->arena, version, strlen(version));
		if (!version || chunk_versions_add(&p->new->versions, number, version))
			return err_no_memory(err);
	}
	chunk_versions_sort(&p->new->versions);
	return 0;
}

static int compare_runs(const struct pair *p, struct err *err)
{
	int rc = for_each_only(p, p->new, p->old, new_slot, err);
	if (!rc)
		rc = for_each_only(p, p->old, p->new, gone_slot, err);
	if (!rc)
		rc = for_each_common(p, compare_written, err);
	if (!rc && p->has_items)
		rc = compare_items(p, err);
	if (!rc && !(contains(p->grid, p->slots.grid) && contains(p->grid_before, p->slots.grid)))
		rc = for_each_common(p, compare_shapes, err);
	return rc;
}

static int compare_records(const struct pair *p, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < p->new->n; i++)
		rc = compare_one(p, &p->new->v[i], err);
	for (size_t i = 0; !rc && i < p->old->n; i++)
		if (!is_there(p, p->old->v[i].number))
			rc = add_gone(p, p->old->v[i].number, err);
	return rc;
}

static int compare(struct update *u, uint32_t now, struct err *err)
{
	const size_t from = u->chunks.len;
	const struct pair p = pair_of(u, now);
	int rc = compare_records(&p, err);
	if (!rc && (p.old->nruns || p.new->nruns))
		rc = compare_runs(&p, err);
	if (!rc)
		rc = keep_versions(&p, err);
	if (rc)
		return err_wrap(err, rc, "dataset %s", u->now->paths[now]);
	sort_changes(u, from);
	return 0;
}

/* A new dataset has no runs. */
static int add_all(struct update *u, uint32_t now, struct err *err)
{
	const struct chunk_set *set = &u->now->chunks[now];
	int rc = 0;
	for (size_t i = 0; !rc && i < set->n; i++) {
		const struct chunk_change c = {
			.dataset = now, .number = set->v[i].number, .is_new = true};
		rc = add(u, &c, err);
	}
	return rc;
}

/* Refuses changes of a dataset whose data are elsewhere than in the domain. */
static int check_place(const struct update *u, uint32_t now, size_t changes_before, struct err *err)
{
	const struct dataset *ds = &tree_object(u->now->tree, now)->o.dataset;
	const bool is_elsewhere = ds->reference || ds->initializer != INITIALIZER_NONE;
	if (!is_elsewhere || u->chunks.len == changes_before)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "dataset %s: its data cannot be changed, because the domain refers to them "
		       "in another file or computes them",
		       u->now->paths[now]);
}

static int find_in(struct update *u, uint32_t now, struct err *err)
{
	const size_t changes = u->chunks.len;
	if (u->same[now] == OBJECT_NONE)
		return add_all(u, now, err);
	const int rc = compare(u, now, err);
	return rc ? rc : check_place(u, now, changes, err);
}

int update_find_chunks(struct update *u, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(u->now->tree); i++) {
		const uint32_t now = tree_nth(u->now->tree, i);
		const bool is_read = !scan_is_unread(u->now, now);
		if (is_read && tree_object(u->now->tree, now)->o.kind == OBJECT_DATASET)
			rc = find_in(u, now, err);
	}
	return rc;
}
