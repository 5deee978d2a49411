/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has changed between two trees: see data/tree_change.h.
 *
 * The attributes of an object, and the links of a group, are paired by their names. What is left
 * over in both trees may have been renamed: such parts are paired by their content, which a key (a
 * hash) brings together. If the order is tracked, the order of the surviving parts, with the added
 * ones behind them, must then be that of the new tree; a rename that is at another position is an
 * addition and a removal instead, as libhdf5 gives a link that it moves a new position.
 *
 * Time is O(n log n) in the number of attributes and links, and O(n) where both trees have them in
 * the same order. One thread at a time.
 */
#include <data/tree_change.h>

#include <errno.h>
#include <string.h>

#include <base/checksum.h>
#include <data/tree_diff.h>

#include "named.h"

/* A part without a pair of the same name. */
struct candidate {
	uint64_t key; /* parts with equal content have the same key */
	uint32_t gap; /* pairs before it, if the order is tracked */
	uint32_t index;
	bool added;
};

/* Memory that is used again for each object. */
struct work {
	uint32_t room;			/* the length of these arrays */
	struct named *before, *after;	/* sorted by pair_names() */
	uint32_t *to_before, *to_after; /* by index: the index of the pair, or CHANGE_NONE */
	bool *differs;			/* by index in the new object */
	struct candidate *candidates;	/* twice as long */
};

struct change {
	const struct tree *before, *after;
	uint32_t *map; /* by number in the new tree: the number in the old one, or OBJECT_NONE */
	struct arena *arena;
	struct work work;
	struct err *err;
};

/* How to handle a kind of part: attributes or links. */
struct part_kind {
	const char *(*name)(const struct object *o, uint32_t i);
	bool (*equal)(const struct change *c, const struct object *before, uint32_t b,
		      const struct object *after, uint32_t a);
	/* map leads to numbers of the old tree; it is NULL if the object is of the old tree. */
	uint64_t (*key)(const struct object *o, uint32_t i, const uint32_t *map);
};

/* The parts of one object. */
struct parts {
	const struct part_kind *kind;
	const struct object *before, *after;
	uint32_t nbefore, nafter;
	bool ordered; /* both trees track the order */
};

static int no_memory(const struct change *c)
{
	return err_set(c->err, -ENOMEM, "out of memory: a comparison of %u objects",
		       tree_numbers(c->after));
}

/* Returns whether both numbers are of the same object, or both are OBJECT_NONE. */
static bool numbers_equal(const struct change *c, uint32_t before, uint32_t after)
{
	if (after == OBJECT_NONE)
		return before == OBJECT_NONE;
	return before != OBJECT_NONE && c->map[after] == before;
}

static uint64_t mix(uint64_t key, const void *bytes, size_t n)
{
	const uint32_t high = checksum_lookup3(bytes, n, (uint32_t)(key >> 32));
	return (uint64_t)high << 32 | checksum_crc32c(bytes, n, (uint32_t)key);
}

/* ---- links ---- */

static const char *link_name(const struct object *o, uint32_t i)
{
	return o->group.links[i].name;
}

static bool link_equal(const struct change *c, const struct object *before, uint32_t b,
		       const struct object *after, uint32_t a)
{
	const struct link *lb = &before->group.links[b], *la = &after->group.links[a];
	if (lb->cls != la->cls)
		return false;
	if (la->cls == LINK_HARD)
		return numbers_equal(c, lb->target, la->target);
	return texts_equal(lb->path, la->path) && texts_equal(lb->domain, la->domain);
}

static uint64_t link_key(const struct object *o, uint32_t i, const uint32_t *map)
{
	const struct link *l = &o->group.links[i];
	const uint32_t target = l->cls != LINK_HARD ? OBJECT_NONE
				: map		    ? map[l->target]
						    : l->target;
	const uint32_t numbers[] = {(uint32_t)l->cls, target};
	uint64_t key = mix(0, numbers, sizeof(numbers));
	if (l->cls == LINK_HARD)
		return key;
	key = mix(key, l->path ? l->path : "", l->path ? strlen(l->path) : 0);
	return mix(key, l->domain ? l->domain : "", l->domain ? strlen(l->domain) : 0);
}

static const struct part_kind link_kind = {link_name, link_equal, link_key};

/* ---- attributes ---- */

static const char *attr_name(const struct object *o, uint32_t i)
{
	return o->attrs[i].name;
}

static bool attr_equal(const struct change *c, const struct object *before, uint32_t b,
		       const struct object *after, uint32_t a)
{
	const struct attribute *ab = &before->attrs[b], *aa = &after->attrs[a];
	return dspace_equal(&ab->space, &aa->space) &&
	       numbers_equal(c, ab->committed, aa->committed) && dtype_equal(ab->type, aa->type) &&
	       elems_identical(aa->type, aa->space.nelems, &aa->value, &ab->value, c->map);
}

/* The key of a value with references or gaps has only its type and lengths: object numbers differ
 * between the trees, and the bytes in gaps do not count. */
static uint64_t attr_key(const struct object *o, uint32_t i, const uint32_t *map)
{
	const struct attribute *a = &o->attrs[i];
	const struct elems *v = &a->value;
	const uint64_t numbers[] = {a->type->cls, a->type->size, a->space.cls, a->space.rank,
				    v->fixed.len, v->heap.len,	 v->repeated};
	uint64_t key = mix(0, numbers, sizeof(numbers));
	for (uint32_t d = 0; d < a->space.rank; d++)
		key = mix(key, &a->space.dims[d], sizeof(a->space.dims[d]));
	if (a->type->has_ref || !a->type->is_packed)
		return key;
	key = mix(key, v->fixed.len ? v->fixed.data : (const uint8_t *)"", v->fixed.len);
	return mix(key, v->heap.len ? v->heap.data : (const uint8_t *)"", v->heap.len);
}

static const struct part_kind attr_kind = {attr_name, attr_equal, attr_key};

/* ---- pairs of one name ---- */

static void release_work(struct work *w)
{
	free(w->before);
	free(w->after);
	free(w->to_before);
	free(w->to_after);
	free(w->differs);
	free(w->candidates);
	*w = (struct work){0};
}

static int reserve(struct change *c, uint32_t n)
{
	struct work *w = &c->work;
	if (n <= w->room)
		return 0;
	const size_t room = max_u64(n, 2 * (uint64_t)w->room);
	release_work(w);
	w->before = calloc(room, sizeof(*w->before));
	w->after = calloc(room, sizeof(*w->after));
	w->to_before = calloc(room, sizeof(*w->to_before));
	w->to_after = calloc(room, sizeof(*w->to_after));
	w->differs = calloc(room, sizeof(*w->differs));
	w->candidates = calloc(room, 2 * sizeof(*w->candidates));
	if (!w->before || !w->after || !w->to_before || !w->to_after || !w->differs ||
	    !w->candidates)
		return no_memory(c);
	w->room = (uint32_t)min_u64(room, UINT32_MAX);
	return 0;
}

static void pair_names(struct work *w, const struct parts *p)
{
	for (uint32_t i = 0; i < p->nbefore; i++) {
		w->before[i] = (struct named){p->kind->name(p->before, i), i};
		w->to_after[i] = CHANGE_NONE;
	}
	for (uint32_t i = 0; i < p->nafter; i++) {
		w->after[i] = (struct named){p->kind->name(p->after, i), i};
		w->to_before[i] = CHANGE_NONE;
	}
	named_sort(w->before, p->nbefore, w->after, p->nafter);
	for (uint32_t b = 0, a = 0; b < p->nbefore && a < p->nafter;) {
		const int order = strcmp(w->before[b].name, w->after[a].name);
		if (order == 0) {
			w->to_after[w->before[b].index] = w->after[a].index;
			w->to_before[w->after[a].index] = w->before[b].index;
		}
		b += order <= 0;
		a += order >= 0;
	}
}

/* Returns whether the pairs are in the same order in both trees. */
static bool keeps_order(const struct work *w, const struct parts *p)
{
	uint32_t next = 0;
	for (uint32_t i = 0; i < p->nafter; i++) {
		if (w->to_before[i] == CHANGE_NONE)
			continue;
		if (w->to_before[i] < next)
			return false;
		next = w->to_before[i] + 1;
	}
	return true;
}

/* ---- renames ---- */

static int compare_candidates(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	if (a->gap != b->gap)
		return a->gap < b->gap ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->added != b->added)
		return a->added ? 1 : -1;
	return (a->index > b->index) - (a->index < b->index);
}

/* Appends the parts without a pair, of the object after or before, to the candidates, of which
 * there are n. Returns their new number. */
static size_t add_candidates(struct work *w, const struct parts *p, size_t n, bool added,
			     const uint32_t *map, bool in_gaps)
{
	const struct object *o = added ? p->after : p->before;
	const uint32_t *pairs = added ? w->to_before : w->to_after;
	uint32_t gap = 0;
	for (uint32_t i = 0; i < (added ? p->nafter : p->nbefore); i++) {
		if (pairs[i] == CHANGE_NONE)
			w->candidates[n++] = (struct candidate){.key = p->kind->key(o, i, map),
								.gap = gap,
								.index = i,
								.added = added};
		else
			gap += in_gaps;
	}
	return n;
}

/* Pairs parts that were removed with parts that were added and have the same key, in their order.
 * If in_gaps is true, only parts with the same number of pairs before them are paired. Otherwise as
 * many must have been removed as were added. */
static void pair_renamed(struct change *c, const struct parts *p, bool in_gaps)
{
	struct work *w = &c->work;
	const size_t removed = add_candidates(w, p, 0, false, NULL, in_gaps);
	const size_t n = add_candidates(w, p, removed, true, c->map, in_gaps);
	if (removed == 0 || removed == n)
		return;
	qsort(w->candidates, n, sizeof(*w->candidates), compare_candidates);
	for (size_t from = 0, mid, end; from < n; from = end) {
		const struct candidate *first = &w->candidates[from];
		for (mid = end = from; end < n && w->candidates[end].key == first->key &&
				       w->candidates[end].gap == first->gap;
		     end++)
			mid += !w->candidates[end].added;
		const size_t nremoved = mid - from, nadded = end - mid;
		const size_t pairs = nremoved == nadded || in_gaps ? min_u64(nremoved, nadded) : 0;
		for (size_t i = 0; i < pairs; i++) {
			const uint32_t b = first[i].index, a = w->candidates[mid + i].index;
			if (!p->kind->equal(c, p->before, b, p->after, a))
				continue;
			w->to_after[b] = a;
			w->to_before[a] = b;
		}
	}
}

/* Returns whether the new order differs from that of the surviving parts with the added ones behind
 * them. Undoes renames that would make it differ. */
static bool check_order(struct work *w, const struct parts *p)
{
	uint32_t next = 0;
	bool seen_added = false;
	for (uint32_t a = 0; a < p->nafter; a++) {
		const uint32_t b = w->to_before[a];
		const bool fits = b != CHANGE_NONE && !seen_added && b >= next;
		if (fits) {
			next = b + 1;
			continue;
		}
		if (b != CHANGE_NONE &&
		    strcmp(p->kind->name(p->before, b), p->kind->name(p->after, a)) == 0)
			return true;
		if (b != CHANGE_NONE)
			w->to_after[b] = w->to_before[a] = CHANGE_NONE;
		seen_added = true;
	}
	return false;
}

/* ---- objects ---- */

/* Lists in the arena the changes that the pairs mean. */
static int list_changes(struct change *c, const struct parts *p, uint32_t *n,
			const struct part_change **out)
{
	struct work *w = &c->work;
	uint32_t count = 0, filled = 0;
	for (uint32_t b = 0; b < p->nbefore; b++)
		count += w->to_after[b] == CHANGE_NONE;
	for (uint32_t a = 0; a < p->nafter; a++) {
		const uint32_t b = w->to_before[a];
		w->differs[a] =
			b == CHANGE_NONE ||
			strcmp(p->kind->name(p->before, b), p->kind->name(p->after, a)) != 0 ||
			!p->kind->equal(c, p->before, b, p->after, a);
		count += w->differs[a];
	}
	*n = count;
	*out = NULL;
	if (count == 0)
		return 0;
	struct part_change *list = arena_array(c->arena, count, sizeof(*list));
	if (!list)
		return no_memory(c);
	for (uint32_t b = 0; b < p->nbefore; b++)
		if (w->to_after[b] == CHANGE_NONE)
			list[filled++] = (struct part_change){b, CHANGE_NONE};
	for (uint32_t a = 0; a < p->nafter; a++)
		if (w->differs[a])
			list[filled++] = (struct part_change){w->to_before[a], a};
	*out = list;
	return 0;
}

static int compare_parts(struct change *c, const struct parts *p, uint32_t *n,
			 const struct part_change **out, bool *reordered)
{
	int rc = reserve(c, p->nbefore > p->nafter ? p->nbefore : p->nafter);
	if (rc)
		return rc;
	pair_names(&c->work, p);
	const bool kept = !p->ordered || keeps_order(&c->work, p);
	pair_renamed(c, p, p->ordered && kept);
	if (!kept || (p->ordered && check_order(&c->work, p)))
		*reordered = true;
	return list_changes(c, p, n, out);
}

static int unpaired(const struct change *c, uint32_t number, const char *why)
{
	return err_set(c->err, -EINVAL, "object %u of the new tree is not that of the old one: %s",
		       number, why);
}

static int compare_content(const struct change *c, const struct object *before,
			   const struct object *after, struct object_change *out)
{
	const struct dataset *b = &before->dataset, *a = &after->dataset;
	if (after->kind == OBJECT_DATATYPE && !dtype_equal(before->datatype, after->datatype))
		return unpaired(c, out->after, "the type differs");
	if (after->kind != OBJECT_DATASET)
		return 0;
	if (!dtype_equal(b->type, a->type) || !numbers_equal(c, b->committed, a->committed))
		return unpaired(c, out->after, "the type differs");
	if (!dspace_same_limits(&b->space, &a->space))
		return unpaired(c, out->after, "the rank or the maximum dimensions differ");
	out->shape = !dspace_same_dims(&b->space, &a->space);
	return 0;
}

static int compare_object(struct change *c, struct object_change *out)
{
	const struct object *before = &tree_object(c->before, out->before)->o;
	const struct object *after = &tree_object(c->after, out->after)->o;
	struct parts p = {.kind = &attr_kind, .before = before, .after = after};
	p.nbefore = before->nattrs;
	p.nafter = after->nattrs;
	p.ordered = before->attrs_ordered && after->attrs_ordered;
	if (tree_object(c->before, out->before)->unread)
		return unpaired(c, out->after, "its content in the old tree is not known");
	out->comment = !texts_equal(before->comment, after->comment);
	int rc = compare_content(c, before, after, out);
	if (!rc)
		rc = compare_parts(c, &p, &out->nattrs, &out->attrs, &out->reordered);
	if (rc || after->kind != OBJECT_GROUP)
		return rc;
	out->user_block = !user_block_equal(before->group.user_block, after->group.user_block);
	p.kind = &link_kind;
	p.nbefore = before->group.nlinks;
	p.nafter = after->group.nlinks;
	p.ordered = before->group.links_ordered && after->group.links_ordered;
	return compare_parts(c, &p, &out->nlinks, &out->links, &out->reordered);
}

/* Compares the objects of the new tree. */
static int compare_objects(struct change *c, struct tree_change *out)
{
	const uint32_t count = tree_count(c->after);
	auto_free struct object_change *changed = calloc(count, sizeof(*changed));
	auto_free uint32_t *added = calloc(count, sizeof(*added));
	int rc = changed && added ? 0 : no_memory(c);
	for (uint32_t i = 0; !rc && i < count; i++) {
		const uint32_t number = tree_nth(c->after, i);
		struct object_change *o = &changed[out->nchanged];
		*o = (struct object_change){.before = c->map[number], .after = number};
		if (o->before == OBJECT_NONE)
			added[out->nadded++] = number;
		else if (!tree_object(c->after, number)->unread)
			rc = compare_object(c, o);
		if (o->before != OBJECT_NONE)
			out->nchanged += o->shape || o->comment || o->user_block || o->reordered ||
					 o->nattrs > 0 || o->nlinks > 0;
	}
	if (rc)
		return rc;
	struct object_change *list = arena_array(c->arena, out->nchanged, sizeof(*list));
	uint32_t *numbers = arena_array(c->arena, out->nadded, sizeof(*numbers));
	if ((!list && out->nchanged) || (!numbers && out->nadded))
		return no_memory(c);
	if (out->nchanged)
		memcpy(list, changed, out->nchanged * sizeof(*list));
	if (out->nadded)
		memcpy(numbers, added, out->nadded * sizeof(*numbers));
	out->changed = list;
	out->added = numbers;
	return 0;
}

/* Finds the objects of the old tree that are not in the new one. */
static int find_removed(struct change *c, struct tree_change *out)
{
	const uint32_t numbers = tree_numbers(c->before), count = tree_count(c->before);
	auto_free bool *stays = calloc(numbers, sizeof(*stays));
	if (!stays)
		return no_memory(c);
	for (uint32_t i = 0; i < tree_numbers(c->after); i++)
		if (c->map[i] != OBJECT_NONE)
			stays[c->map[i]] = true;
	for (uint32_t i = 0; i < count; i++)
		out->nremoved += !stays[tree_nth(c->before, i)];
	uint32_t *removed = arena_array(c->arena, out->nremoved, sizeof(*removed)), n = 0;
	if (!removed && out->nremoved)
		return no_memory(c);
	for (uint32_t i = 0; i < count; i++)
		if (!stays[tree_nth(c->before, i)])
			removed[n++] = tree_nth(c->before, i);
	out->removed = removed;
	return 0;
}

/* Checks the relation and copies it, without the objects that are linked in one tree only: they
 * are added or removed. */
static int make_map(struct change *c, const uint32_t *same)
{
	auto_free bool *used = calloc(tree_numbers(c->before), sizeof(*used));
	c->map = calloc(tree_numbers(c->after), sizeof(*c->map));
	if (!used || !c->map)
		return no_memory(c);
	for (uint32_t i = 0; i < tree_numbers(c->after); i++) {
		c->map[i] = OBJECT_NONE;
		if (same[i] == OBJECT_NONE)
			continue;
		if (same[i] >= tree_numbers(c->before))
			return unpaired(c, i, "there is no such object");
		if (used[same[i]])
			return unpaired(c, i, "another one is");
		used[same[i]] = true;
		const struct tree_object *before = tree_object(c->before, same[i]);
		const struct tree_object *after = tree_object(c->after, i);
		if (!before->broken && !after->broken && before->o.kind != after->o.kind)
			return unpaired(c, i, "it is of another kind");
		if (before->linked == after->linked)
			c->map[i] = same[i];
	}
	if (c->map[0] != 0)
		return unpaired(c, 0, "the root groups are always the same");
	return 0;
}

int tree_change(const struct tree *before, const struct tree *after, const uint32_t *same,
		struct arena *arena, struct tree_change *out, struct err *err)
{
	struct change c = {.before = before, .after = after, .arena = arena, .err = err};
	*out = (struct tree_change){0};
	if (tree_count(before) == 0 || tree_count(after) == 0)
		return err_set(err, -EINVAL, "a tree is not finished");
	if (tree_missing(after) > 0)
		return err_set(err, -EINVAL, "an object of the new tree could not be read");
	int rc = make_map(&c, same);
	if (!rc)
		rc = compare_objects(&c, out);
	if (!rc)
		rc = find_removed(&c, out);
	release_work(&c.work);
	free(c.map);
	return rc;
}
