/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed between two trees, on random trees with all kinds of changes: the old tree with
 * the change applied is the new one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <data/tree_change.h>
#include <data/tree_diff.h>

#include "random_tree.h"
#include "tree_parts.h"

/* New numbers of the objects of a tree that is copied. */
struct numbering {
	uint32_t *to; /* by number */
};

static uint32_t translated(const struct numbering *n, uint32_t number)
{
	return number == OBJECT_NONE ? OBJECT_NONE : n->to[number];
}

static int translate_elem(void *ctx, const struct dtype *t, uint8_t *elem, struct err *err)
{
	const struct numbering n = {ctx};
	const uint64_t ref = elem[0];
	assert_int_equal(t->reference.kind, DTYPE_REF_OBJECT);
	if (ref)
		elem[0] = (uint8_t)(translated(&n, (uint32_t)ref - 1) + 1);
	return 0;
}

static void visit(const struct dtype *t, struct elems *e, const struct elems_visitor *v)
{
	assert_int_equal(elems_visit(t, e->fixed.data, e->fixed.len / t->size, e->heap.data,
				     e->heap.len, v, NULL),
			 0);
}

static struct elems copy_value(const struct dtype *t, const struct elems *e,
			       const struct numbering *n)
{
	struct elems out = {0};
	const struct elems_visitor v = {.reference = translate_elem, .ctx = n->to};
	assert_int_equal(bytes_append(&out.fixed, e->fixed.data, e->fixed.len), 0);
	assert_int_equal(bytes_append(&out.heap, e->heap.data, e->heap.len), 0);
	assert_int_equal(e->repeated, 0);
	visit(t, &out, &v);
	return out;
}

static struct attribute copy_attr(const struct attribute *a, const struct numbering *n)
{
	struct attribute out = *a;
	out.committed = translated(n, a->committed);
	out.value = copy_value(a->type, &a->value, n);
	return out;
}

static struct link copy_link(const struct link *l, const struct numbering *n)
{
	struct link out = *l;
	if (l->cls == LINK_HARD)
		out.target = translated(n, l->target);
	return out;
}

/* Types and names stay where they are. */
static void copy_object(struct tree *t, uint32_t number, const struct object *from,
			const struct numbering *n)
{
	enum { SPARE = 16 };
	struct object *o = tree_edit(t, number);
	*o = *from;
	o->attrs = arena_array(tree_arena(t), from->nattrs + SPARE, sizeof(*o->attrs));
	for (uint32_t i = 0; i < from->nattrs; i++)
		o->attrs[i] = copy_attr(&from->attrs[i], n);
	if (from->kind == OBJECT_GROUP) {
		o->group.links = arena_array(tree_arena(t), from->group.nlinks + SPARE,
					     sizeof(*o->group.links));
		for (uint32_t i = 0; i < from->group.nlinks; i++)
			o->group.links[i] = copy_link(&from->group.links[i], n);
	} else if (from->kind == OBJECT_DATASET) {
		o->dataset.committed = translated(n, from->dataset.committed);
		if (from->dataset.fill_defined)
			o->dataset.fill = copy_value(from->dataset.type, &from->dataset.fill, n);
	}
}

static int by_link_name(const void *a, const void *b)
{
	return strcmp(((const struct link *)a)->name, ((const struct link *)b)->name);
}

static int by_attr_name(const void *a, const void *b)
{
	return strcmp(((const struct attribute *)a)->name, ((const struct attribute *)b)->name);
}

static int drop_unlinked(void *ctx, const struct dtype *t, uint8_t *elem, struct err *err)
{
	if (elem[0] && !tree_object(ctx, elem[0] - 1)->linked)
		elem[0] = 0;
	return 0;
}

static bool has_hard_link(const struct tree *t, uint32_t number)
{
	for (uint32_t i = 0; i < tree_numbers(t); i++) {
		const struct object *o = &tree_object(t, i)->o;
		for (uint32_t k = 0; o->kind == OBJECT_GROUP && k < o->group.nlinks; k++)
			if (o->group.links[k].cls == LINK_HARD &&
			    o->group.links[k].target == number && tree_object(t, i)->linked)
				return true;
	}
	return false;
}

/* tree_diff() finds objects by their links: gives one to each committed type that is only used. */
static void link_types(struct tree *t)
{
	for (uint32_t i = 0; i < tree_numbers(t); i++) {
		const struct tree_object *o = tree_object(t, i);
		char name[16];
		if (!o->linked || o->o.kind != OBJECT_DATATYPE || has_hard_link(t, i))
			continue;
		const int n = snprintf(name, sizeof(name), "type %u", i);
		struct object *root = tree_edit(t, 0);
		root->group.links[root->group.nlinks++] =
			(struct link){.name = arena_strndup(tree_arena(t), name, (size_t)n),
				      .cls = LINK_HARD,
				      .target = i};
	}
}

/* Makes of a tree what a reader gives: without tracking the parts are in the order of their names,
 * and a reference to an object without a link is null. */
static void as_read(struct tree *t)
{
	const struct elems_visitor v = {.reference = drop_unlinked, .ctx = t};
	assert_int_equal(tree_finish(t, NULL), 0);
	link_types(t);
	for (uint32_t i = 0; i < tree_numbers(t); i++) {
		struct object *o = tree_edit(t, i);
		if (!o->attrs_ordered && o->nattrs)
			qsort(o->attrs, o->nattrs, sizeof(*o->attrs), by_attr_name);
		if (o->kind == OBJECT_GROUP && !o->group.links_ordered && o->group.nlinks)
			qsort(o->group.links, o->group.nlinks, sizeof(struct link), by_link_name);
		for (uint32_t k = 0; k < o->nattrs; k++)
			visit(o->attrs[k].type, &o->attrs[k].value, &v);
		if (o->kind == OBJECT_DATASET && o->dataset.fill_defined)
			visit(o->dataset.type, &o->dataset.fill, &v);
	}
	assert_int_equal(tree_finish(t, NULL), 0);
}

static void change_attrs(struct rnd *r, struct tree *t, uint32_t number)
{
	struct object *o = tree_edit(t, number);
	const uint32_t i = o->nattrs ? rnd_below(r, o->nattrs) : 0;
	if (o->nattrs && rnd_one_in(r, 3))
		o->attrs[i].name = rnd_name(r, true);
	if (o->nattrs && rnd_one_in(r, 3))
		move_attr(t, number, i);
	if (o->nattrs && rnd_one_in(r, 3))
		remove_attr(t, number, rnd_below(r, o->nattrs));
	if (rnd_one_in(r, 3)) {
		struct attribute *a = &o->attrs[o->nattrs++];
		*a = (struct attribute){.name = rnd_name(r, true), .committed = OBJECT_NONE};
		a->type = rnd_held_type(r);
		rnd_space(r, &a->space);
		rnd_value(r, a->type, a->space.nelems, &a->value);
	}
	if (o->nattrs && rnd_one_in(r, 3)) {
		struct attribute *a = &o->attrs[rnd_below(r, o->nattrs)];
		elems_release(&a->value);
		a->value = (struct elems){0};
		rnd_value(r, a->type, a->space.nelems, &a->value);
	}
}

static void change_links(struct rnd *r, struct tree *t, uint32_t number)
{
	struct object *o = tree_edit(t, number);
	const uint32_t i = o->group.nlinks ? rnd_below(r, o->group.nlinks) : 0;
	if (o->group.nlinks && rnd_one_in(r, 3))
		o->group.links[i].name = rnd_name(r, false);
	if (o->group.nlinks && rnd_one_in(r, 3))
		move_link(t, number, i);
	if (o->group.nlinks && rnd_one_in(r, 4))
		remove_link(t, number, rnd_below(r, o->group.nlinks));
	if (rnd_one_in(r, 2))
		rnd_link(r, &o->group.links[o->group.nlinks++],
			 rnd_below(r, 3) ? rnd_below(r, tree_numbers(t)) : OBJECT_NONE);
	if (o->group.nlinks && rnd_one_in(r, 4)) {
		struct link *l = &o->group.links[rnd_below(r, o->group.nlinks)];
		const char *name = l->name;
		rnd_link(r, l, rnd_below(r, tree_numbers(t)));
		l->name = name;
	}
}

/* The first dimension becomes one longer. */
static void grow(struct tree *t, struct dspace *s)
{
	uint64_t *dims = arena_array(tree_arena(t), s->rank, sizeof(*dims));
	memcpy(dims, s->dims, s->rank * sizeof(*dims));
	dims[0]++;
	s->dims = dims;
}

/* A copy with other numbers, new objects and changes. Sets same, and *numbers of the copy. */
static struct tree *changed_copy(struct rnd *r, const struct tree *before, uint32_t *same)
{
	enum { NEW = 3 };
	const uint32_t n = tree_numbers(before), all = n + NEW;
	uint32_t to[64];
	struct tree *t = tree_new((size_t)1 << 30);
	r->tree = t;
	for (uint32_t i = 0; i < all; i++) {
		same[i] = OBJECT_NONE;
		to[i] = i;
		add(t, OBJECT_GROUP);
	}
	for (uint32_t i = all - 1; i > 1; i--) {
		const uint32_t k = 1 + rnd_below(r, i), swap = to[i];
		to[i] = to[k];
		to[k] = swap;
	}
	for (uint32_t i = 0; i < n; i++) {
		copy_object(t, to[i], &tree_object(before, i)->o, &(struct numbering){to});
		same[to[i]] = i;
	}
	for (uint32_t i = n; i < all; i++)
		if (rnd_below(r, 2)) {
			tree_edit(t, to[i])->kind = OBJECT_DATASET;
			rnd_dataset(r, &tree_edit(t, to[i])->dataset);
		}
	for (uint32_t i = 0; i < all; i++) {
		struct object *o = tree_edit(t, i);
		change_attrs(r, t, i);
		if (o->kind == OBJECT_GROUP)
			change_links(r, t, i);
		else if (o->kind == OBJECT_DATASET && o->dataset.space.rank && rnd_below(r, 2))
			grow(t, &o->dataset.space);
	}
	as_read(t);
	return t;
}

/* What applies a change. */
struct application {
	const struct tree *before, *after;
	struct tree *result;
	struct numbering old, new; /* to numbers of the result */
};

static const struct part_change *find_change(uint32_t n, const struct part_change *list, uint32_t b)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].before == b)
			return &list[i];
	return NULL;
}

static void apply_attrs(struct application *p, const struct object_change *c)
{
	const struct object *b = &tree_object(p->before, c->before)->o;
	const struct object *a = &tree_object(p->after, c->after)->o;
	struct object *o = tree_edit(p->result, c->before);
	for (uint32_t i = 0; i < o->nattrs; i++)
		elems_release(&o->attrs[i].value);
	o->nattrs = 0;
	for (uint32_t i = 0; i < b->nattrs; i++) {
		const struct part_change *e = find_change(c->nattrs, c->attrs, i);
		if (!e)
			o->attrs[o->nattrs++] = copy_attr(&b->attrs[i], &p->old);
		else if (e->after != CHANGE_NONE)
			o->attrs[o->nattrs++] = copy_attr(&a->attrs[e->after], &p->new);
	}
	for (uint32_t i = 0; i < c->nattrs; i++)
		if (c->attrs[i].before == CHANGE_NONE)
			o->attrs[o->nattrs++] = copy_attr(&a->attrs[c->attrs[i].after], &p->new);
	for (uint32_t i = 0; c->reordered && i < a->nattrs; i++)
		for (uint32_t k = 0; k < o->nattrs; k++)
			if (strcmp(o->attrs[k].name, a->attrs[i].name) == 0) {
				move_attr(p->result, c->before, k);
				break;
			}
}

static void apply_links(struct application *p, const struct object_change *c)
{
	const struct object *b = &tree_object(p->before, c->before)->o;
	const struct object *a = &tree_object(p->after, c->after)->o;
	struct object *o = tree_edit(p->result, c->before);
	o->group.nlinks = 0;
	for (uint32_t i = 0; i < b->group.nlinks; i++) {
		const struct part_change *e = find_change(c->nlinks, c->links, i);
		struct link *l = &o->group.links[o->group.nlinks];
		o->group.nlinks += !e || e->after != CHANGE_NONE;
		if (!e)
			*l = copy_link(&b->group.links[i], &p->old);
		else if (e->after != CHANGE_NONE)
			*l = copy_link(&a->group.links[e->after], &p->new);
	}
	for (uint32_t i = 0; i < c->nlinks; i++)
		if (c->links[i].before == CHANGE_NONE)
			o->group.links[o->group.nlinks++] =
				copy_link(&a->group.links[c->links[i].after], &p->new);
	for (uint32_t i = 0; c->reordered && i < a->group.nlinks; i++)
		for (uint32_t k = 0; k < o->group.nlinks; k++)
			if (strcmp(o->group.links[k].name, a->group.links[i].name) == 0) {
				move_link(p->result, c->before, k);
				break;
			}
}

/* The old tree with the change. Objects keep the numbers of the old tree; new ones follow. to: by
 * number in the new tree: number in the result. */
static struct tree *applied(const struct tree *before, const struct tree *after,
			    const struct tree_change *c, const uint32_t *same, uint32_t *to)
{
	const uint32_t nb = tree_numbers(before), na = tree_numbers(after);
	uint32_t identity[64];
	struct application p = {before, after, tree_new((size_t)1 << 30), {identity}, {to}};
	for (uint32_t i = 0; i < nb + na; i++) {
		identity[i] = i;
		add(p.result, OBJECT_GROUP);
	}
	for (uint32_t i = 0; i < na; i++)
		to[i] = same[i];
	for (uint32_t i = 0; i < c->nadded; i++)
		to[c->added[i]] = nb + c->added[i];
	for (uint32_t i = 0; i < nb; i++)
		copy_object(p.result, i, &tree_object(before, i)->o, &p.old);
	for (uint32_t i = 0; i < c->nadded; i++)
		copy_object(p.result, nb + c->added[i], &tree_object(after, c->added[i])->o,
			    &p.new);
	for (uint32_t i = 0; i < c->nchanged; i++) {
		const struct object_change *o = &c->changed[i];
		apply_attrs(&p, o);
		if (tree_object(before, o->before)->o.kind == OBJECT_GROUP)
			apply_links(&p, o);
		if (o->shape)
			tree_edit(p.result, o->before)->dataset.space =
				tree_object(after, o->after)->o.dataset.space;
	}
	as_read(p.result);
	return p.result;
}

static void assert_applies(const struct tree *before, const struct tree *after,
			   const struct tree_change *c, const uint32_t *same, struct arena *arena)
{
	uint32_t to[64];
	uint64_t n;
	struct tree_change none;
	struct tree *result = applied(before, after, c, same, to);
	assert_int_equal(tree_diff(result, after, TREE_DIFF_ORDER, NULL, NULL, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(tree_change(result, after, to, arena, &none, NULL), 0);
	assert_int_equal(none.nchanged + none.nadded + none.nremoved, 0);
	uint32_t removed = 0;
	for (uint32_t i = 0; i < tree_count(before); i++)
		if (!tree_object(result, tree_nth(before, i))->linked)
			assert_int_equal(c->removed[removed++], tree_nth(before, i));
	assert_int_equal(removed, c->nremoved);
	tree_free(result);
}

static void random_trees(void **state)
{
	uint32_t kinds[6] = {0};
	for (uint64_t seed = 0; seed < 2000; seed++) {
		uint32_t same[64];
		struct tree_change c;
		struct rnd r = {.seed = seed + 1000000, .names = 1000};
		struct arena *arena = arena_new(16 << 20);
		struct tree *before = random_tree(NULL, 0, seed);
		for (uint32_t i = 0; i < tree_numbers(before); i++)
			if (tree_object(before, i)->o.kind == OBJECT_GROUP)
				tree_edit(before, i)->group.links_ordered = rnd_below(&r, 2);
		as_read(before);
		struct tree *after = changed_copy(&r, before, same);
		struct err err = ERR_INIT;
		const int rc = tree_change(before, after, same, arena, &c, &err);
		if (rc)
			fail_msg("seed %d: %s", (int)seed, err.msg);
		assert_applies(before, after, &c, same, arena);
		for (uint32_t i = 0; i < c.nchanged; i++) {
			kinds[0] += c.changed[i].shape;
			kinds[1] += c.changed[i].reordered;
			kinds[2] += c.changed[i].nattrs;
			kinds[3] += c.changed[i].nlinks;
		}
		kinds[4] += c.nadded;
		kinds[5] += c.nremoved;
		tree_free(before);
		tree_free(after);
		arena_free(arena);
	}
	for (int i = 0; i < 6; i++)
		assert_in_range(kinds[i], 100, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_trees)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
