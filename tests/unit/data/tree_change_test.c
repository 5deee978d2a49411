/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed between two trees: each kind of change alone, broken preconditions, and many
 * links. tree_change_random_test.c has all kinds together. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/str.h>
#include <data/tree_change.h>

#include "shape_arena.h"
#include "tree_parts.h"

enum { ROOT, GROUP, DATASET, TYPE, OBJECTS };

struct fixture {
	struct tree *before, *after;
	uint32_t same[ROOM];
	struct arena *arena;
};

static const struct dtype *int4(struct tree *t)
{
	return dtype_integer(tree_arena(t), 4, true, false, NULL);
}

static void add_link(struct tree *t, uint32_t group, struct link link)
{
	struct object *o = tree_edit(t, group);
	assert_in_range(o->group.nlinks, 0, ROOM - 1);
	o->group.links[o->group.nlinks++] = link;
}

static void add_hard(struct tree *t, uint32_t group, const char *name, uint32_t target)
{
	add_link(t, group, (struct link){.name = name, .cls = LINK_HARD, .target = target});
}

static struct attribute *add_attr(struct tree *t, uint32_t number, const char *name,
				  const struct dtype *type, const void *value)
{
	struct object *o = tree_edit(t, number);
	assert_in_range(o->nattrs, 0, ROOM - 1);
	struct attribute *a = &o->attrs[o->nattrs++];
	*a = (struct attribute){.name = name, .type = type, .committed = OBJECT_NONE};
	dspace_scalar(&a->space);
	assert_int_equal(bytes_append(&a->value.fixed, value, type->size), 0);
	return a;
}

static void add_int(struct tree *t, uint32_t number, const char *name, int32_t value)
{
	add_attr(t, number, name, int4(t), &value);
}

static struct attribute *attr(struct tree *t, uint32_t number, uint32_t i)
{
	return &tree_edit(t, number)->attrs[i];
}

static struct link *linked(struct tree *t, uint32_t number, uint32_t i)
{
	return &tree_edit(t, number)->group.links[i];
}

/* /g, /s (soft), /x (external), /t, /g/d, /g/d2 (the same dataset); attributes a, b, c of /. */
static struct tree *make(void)
{
	static const uint64_t dims[] = {10, 20}, max[] = {DSPACE_UNLIMITED, 20};
	struct tree *t = tree_new(4 << 20);
	add(t, OBJECT_GROUP);
	add(t, OBJECT_GROUP);
	add(t, OBJECT_DATASET);
	add(t, OBJECT_DATATYPE);
	struct dataset *d = &tree_edit(t, DATASET)->dataset;
	d->type = int4(t);
	d->committed = OBJECT_NONE;
	assert_int_equal(dspace_simple(shape_arena(), &d->space, 2, dims, max, NULL), 0);
	tree_edit(t, TYPE)->datatype = int4(t);
	add_hard(t, ROOT, "g", GROUP);
	add_link(t, ROOT, (struct link){.name = "s", .cls = LINK_SOFT, .path = "/p"});
	add_link(t, ROOT,
		 (struct link){.name = "x", .cls = LINK_EXTERNAL, .path = "/p", .domain = "f"});
	add_hard(t, ROOT, "t", TYPE);
	add_hard(t, GROUP, "d", DATASET);
	add_hard(t, GROUP, "d2", DATASET);
	add_int(t, ROOT, "a", 1);
	add_int(t, ROOT, "b", 2);
	add_int(t, ROOT, "c", 3);
	return t;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->before = make();
	f->after = make();
	f->arena = arena_new(64 << 20);
	for (uint32_t i = 0; i < ROOM; i++)
		f->same[i] = i < OBJECTS ? i : OBJECT_NONE;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	tree_free(f->before);
	tree_free(f->after);
	arena_free(f->arena);
	free(f);
	return 0;
}

static void show_parts(struct str *s, char what, uint32_t n, const struct part_change *list)
{
	for (uint32_t i = 0; i < n; i++) {
		str_addf(s, " %c", what);
		if (list[i].before != CHANGE_NONE)
			str_addf(s, "%u", list[i].before);
		str_add(s, ">");
		if (list[i].after != CHANGE_NONE)
			str_addf(s, "%u", list[i].after);
	}
}

/* "BEFORE>AFTER: shape order aBEFORE>AFTER lBEFORE>AFTER\n", "added N\n", "removed N\n" */
static void show(struct str *s, const struct tree_change *c)
{
	for (uint32_t i = 0; i < c->nchanged; i++) {
		const struct object_change *o = &c->changed[i];
		str_addf(s, "%u>%u:%s%s%s", o->before, o->after, o->shape ? " shape" : "",
			 o->comment ? " comment" : "", o->reordered ? " order" : "");
		show_parts(s, 'a', o->nattrs, o->attrs);
		show_parts(s, 'l', o->nlinks, o->links);
		str_add(s, "\n");
	}
	for (uint32_t i = 0; i < c->nadded; i++)
		str_addf(s, "added %u\n", c->added[i]);
	for (uint32_t i = 0; i < c->nremoved; i++)
		str_addf(s, "removed %u\n", c->removed[i]);
}

static void assert_change(struct fixture *f, const char *text)
{
	auto_str struct str shown = {0};
	struct tree_change c;
	struct err err = ERR_INIT;
	assert_int_equal(tree_finish(f->before, NULL), 0);
	assert_int_equal(tree_finish(f->after, NULL), 0);
	assert_int_equal(tree_change(f->before, f->after, f->same, f->arena, &c, &err), 0);
	show(&shown, &c);
	str_add(&shown, "");
	assert_string_equal(shown.b.len ? str_text(&shown) : "", text);
}

static void nothing(void **state)
{
	assert_change(*state, "");
}

static void other_numbers(void **state)
{
	struct fixture *f = *state;
	add(f->after, OBJECT_GROUP);
	struct object *from = tree_edit(f->after, GROUP), *to = tree_edit(f->after, OBJECTS);
	to->group = from->group;
	from->group.nlinks = 0;
	linked(f->after, ROOT, 0)->target = OBJECTS;
	f->same[GROUP] = OBJECT_NONE;
	f->same[OBJECTS] = GROUP;
	assert_change(f, "");
	add_int(f->after, OBJECTS, "n", 1);
	assert_change(f, "1>4: a>0\n");
}

static void values(void **state)
{
	struct fixture *f = *state;
	attr(f->after, ROOT, 1)->value.fixed.data[3] = 9;
	assert_change(f, "0>0: a1>1\n");
}

static void nans_and_padding_are_compared_bit_by_bit(void **state)
{
	static const uint8_t nan[] = {1, 0, 0xc0, 0x7f};
	struct fixture *f = *state;
	for (int k = 0; k < 2; k++) {
		struct tree *t = k ? f->after : f->before;
		add_attr(t, GROUP, "f", dtype_ieee(tree_arena(t), 4, false, NULL), nan);
		add_attr(t, GROUP, "s",
			 dtype_string(tree_arena(t), 4, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL),
			 "a\0b");
	}
	assert_change(f, "");
	attr(f->after, GROUP, 0)->value.fixed.data[0] = 2;
	assert_change(f, "1>1: a0>0\n");
	attr(f->after, GROUP, 1)->value.fixed.data[2] = 'c';
	assert_change(f, "1>1: a0>0 a1>1\n");
}

static void types_and_spaces(void **state)
{
	static const uint64_t one[] = {1}, two[] = {2};
	struct fixture *f = *state;
	attr(f->after, ROOT, 0)->type = dtype_integer(tree_arena(f->after), 4, false, false, NULL);
	assert_int_equal(
		dspace_simple(shape_arena(), &attr(f->after, ROOT, 1)->space, 1, one, NULL, NULL),
		0);
	assert_int_equal(
		dspace_simple(shape_arena(), &attr(f->before, ROOT, 2)->space, 1, one, NULL, NULL),
		0);
	assert_int_equal(
		dspace_simple(shape_arena(), &attr(f->after, ROOT, 2)->space, 1, one, two, NULL),
		0);
	assert_change(f, "0>0: a0>0 a1>1 a2>2\n");
}

static void committed_types(void **state)
{
	struct fixture *f = *state;
	attr(f->after, ROOT, 0)->committed = TYPE;
	assert_change(f, "0>0: a0>0\n");
	attr(f->before, ROOT, 0)->committed = TYPE;
	assert_change(f, "");
	add(f->after, OBJECT_DATATYPE);
	tree_edit(f->after, OBJECTS)->datatype = int4(f->after);
	attr(f->after, ROOT, 0)->committed = OBJECTS;
	assert_change(f, "0>0: a0>0\nadded 4\n");
}

static void references(void **state)
{
	static const uint8_t target[8] = {DATASET + 1};
	struct fixture *f = *state;
	for (int k = 0; k < 2; k++) {
		struct tree *t = k ? f->after : f->before;
		add_attr(t, GROUP, "r", dtype_reference(tree_arena(t), DTYPE_REF_OBJECT, NULL),
			 target);
	}
	uint8_t *after = attr(f->after, GROUP, 0)->value.fixed.data;
	uint8_t *before = attr(f->before, GROUP, 0)->value.fixed.data;
	assert_change(f, "");
	after[0] = TYPE + 1;
	assert_change(f, "1>1: a0>0\n");
	after[0] = 0;
	assert_change(f, "1>1: a0>0\n");
	add(f->after, OBJECT_GROUP);
	add_hard(f->after, GROUP, "new", OBJECTS);
	before[0] = 0; /* null is not a new object */
	after[0] = OBJECTS + 1;
	assert_change(f, "1>1: a0>0 l>2\nadded 4\n");
}

static void attributes_of_every_object(void **state)
{
	struct fixture *f = *state;
	for (uint32_t i = 0; i < OBJECTS; i++)
		add_int(f->after, i, "new", 7);
	remove_attr(f->after, ROOT, 1);
	assert_change(f, "0>0: a1> a>2\n1>1: a>0\n3>3: a>0\n2>2: a>0\n");
}

static void an_attribute_is_renamed(void **state)
{
	struct fixture *f = *state;
	attr(f->after, ROOT, 1)->name = "new";
	assert_change(f, "0>0: a1>1\n");
}

/* At another position in the order it is not: its time of creation would be wrong. */
static void a_rename_keeps_its_place(void **state)
{
	struct fixture *f = *state;
	attr(f->after, ROOT, 1)->name = "new";
	move_attr(f->after, ROOT, 1);
	assert_change(f, "0>0: a1> a>2\n");
	for (int k = 0; k < 2; k++)
		tree_edit(k ? f->after : f->before, ROOT)->attrs_ordered = false;
	assert_change(f, "0>0: a1>2\n");
}

static void several_renames(void **state)
{
	struct fixture *f = *state;
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < 3; i++)
			attr(k ? f->after : f->before, ROOT, i)->value.fixed.data[0] = 5;
	attr(f->after, ROOT, 1)->name = "y";
	attr(f->after, ROOT, 0)->name = "z";
	assert_change(f, "0>0: a0>0 a1>1\n");
	/* Two are gone, and one is new. At the same position, it is the first one. */
	remove_attr(f->after, ROOT, 1);
	assert_change(f, "0>0: a1> a0>0\n");
	/* Without an order, it is not known which one. */
	tree_edit(f->after, ROOT)->attrs_ordered = false;
	assert_change(f, "0>0: a0> a1> a>0\n");
}

/* p = 1, q = 2 have become y = 2, x = 1: only one of them has kept its position. */
static void renames_that_cross(void **state)
{
	struct fixture *f = *state;
	remove_attr(f->before, ROOT, 2);
	remove_attr(f->after, ROOT, 2);
	attr(f->after, ROOT, 0)->name = "x";
	attr(f->after, ROOT, 1)->name = "y";
	move_attr(f->after, ROOT, 0);
	assert_change(f, "0>0: a0> a1>0 a>1\n");
}

static void a_rename_with_another_value_is_none(void **state)
{
	struct fixture *f = *state;
	attr(f->after, ROOT, 2)->name = "new";
	attr(f->after, ROOT, 2)->value.fixed.data[0] = 9;
	assert_change(f, "0>0: a2> a>2\n");
}

static void the_order_of_attributes(void **state)
{
	struct fixture *f = *state;
	move_attr(f->after, ROOT, 0);
	assert_change(f, "0>0: order\n");
	tree_edit(f->after, ROOT)->attrs_ordered = false;
	assert_change(f, "");
}

/* b was removed and made again, after the new attribute. */
static void an_added_part_before_one_that_stays(void **state)
{
	struct fixture *f = *state;
	add_int(f->after, ROOT, "new", 7);
	move_attr(f->after, ROOT, 2);
	assert_change(f, "0>0: order a>2\n");
}

static void links(void **state)
{
	struct fixture *f = *state;
	linked(f->after, ROOT, 1)->path = "/other";
	linked(f->after, ROOT, 2)->domain = "other";
	assert_change(f, "0>0: l1>1 l2>2\n");
	linked(f->after, ROOT, 2)->cls = LINK_SOFT;
	assert_change(f, "0>0: l1>1 l2>2\n");
	linked(f->after, GROUP, 0)->target = GROUP;
	linked(f->after, ROOT, 3)->target = GROUP;
	assert_change(f, "0>0: l1>1 l2>2 l3>3\n1>1: l0>0\nremoved 3\n");
}

static void links_are_renamed(void **state)
{
	struct fixture *f = *state;
	for (uint32_t i = 0; i < 4; i++)
		linked(f->after, ROOT, i)->name = &"wXYZ"[3 - i];
	linked(f->after, GROUP, 1)->name = "A";
	assert_change(f, "0>0: l0>0 l1>1 l2>2 l3>3\n1>1: l1>1\n");
}

/* H5Lmove() gives a link a new position in the order. */
static void links_are_moved(void **state)
{
	struct fixture *f = *state;
	linked(f->after, ROOT, 0)->name = "moved";
	move_link(f->after, ROOT, 0);
	assert_change(f, "0>0: l0> l>3\n");
	for (int k = 0; k < 2; k++)
		tree_edit(k ? f->after : f->before, ROOT)->group.links_ordered = false;
	assert_change(f, "0>0: l0>3\n");
	linked(f->after, ROOT, 3)->name = "g";
	assert_change(f, "");
}

static void the_order_of_links(void **state)
{
	struct fixture *f = *state;
	move_link(f->after, ROOT, 1);
	assert_change(f, "0>0: order\n");
}

static void shapes(void **state)
{
	struct fixture *f = *state;
	struct dspace *s = &tree_edit(f->after, DATASET)->dataset.space;
	s->dims = shape_with(s->rank, s->dims, 0, 11);
	assert_change(f, "2>2: shape\n");
}

static void comments(void **state)
{
	struct fixture *f = *state;
	tree_edit(f->before, ROOT)->comment = "stays";
	tree_edit(f->after, ROOT)->comment = "stays";
	assert_change(f, "");
	tree_edit(f->after, ROOT)->comment = NULL;
	tree_edit(f->before, GROUP)->comment = "old";
	tree_edit(f->after, GROUP)->comment = "new";
	tree_edit(f->after, DATASET)->comment = "\xff";
	tree_edit(f->after, TYPE)->comment = "t";
	assert_change(f, "0>0: comment\n1>1: comment\n3>3: comment\n2>2: comment\n");
}

static void objects(void **state)
{
	struct fixture *f = *state;
	add(f->after, OBJECT_GROUP);
	add(f->after, OBJECT_GROUP);
	add(f->after, OBJECT_GROUP); /* without a link */
	add_hard(f->after, ROOT, "n", OBJECTS);
	add_hard(f->after, OBJECTS, "n", OBJECTS + 1);
	add_int(f->after, OBJECTS, "n", 1);
	remove_link(f->after, ROOT, 3);
	assert_change(f, "0>0: l3> l>3\nadded 4\nadded 5\nremoved 3\n");
}

/* The same object, but only one of the trees has a link to it. */
static void objects_without_links(void **state)
{
	struct fixture *f = *state;
	remove_link(f->before, ROOT, 3);
	assert_change(f, "0>0: l>3\nadded 3\n");
	remove_link(f->before, ROOT, 0);
	remove_link(f->after, ROOT, 3);
	remove_link(f->after, ROOT, 0);
	add_int(f->after, GROUP, "n", 1);
	assert_change(f, "");
}

static void refused(struct fixture *f, const char *word)
{
	struct tree_change c;
	struct err err = ERR_INIT;
	assert_int_equal(tree_finish(f->before, NULL), 0);
	assert_int_equal(tree_finish(f->after, NULL), 0);
	assert_int_equal(tree_change(f->before, f->after, f->same, f->arena, &c, &err), -EINVAL);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" instead of \"%s\"", err.msg, word);
}

static void broken_relations_are_refused(void **state)
{
	static const struct {
		uint32_t at, number;
		const char *word;
	} broken[] = {
		{GROUP, OBJECTS, "no such object"}, {TYPE, UINT32_MAX - 1, "no such object"},
		{GROUP, DATASET, "another kind"},   {DATASET, GROUP, "another one is"},
		{ROOT, GROUP, "another one is"},    {ROOT, OBJECT_NONE, "root"},
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		const uint32_t old = f->same[broken[i].at];
		f->same[broken[i].at] = broken[i].number;
		refused(f, broken[i].word);
		f->same[broken[i].at] = old;
	}
	add(f->after, OBJECT_GROUP);
	f->same[OBJECTS] = GROUP;
	refused(f, "another one is");
	f->same[OBJECTS] = OBJECT_NONE;
	assert_change(f, "");
}

/* What is unread in the new tree has not changed. */
static void unread_datasets(void **state)
{
	struct fixture *f = *state;
	add_int(f->before, DATASET, "only before", 1);
	tree_leave_unread(f->after, DATASET);
	assert_change(f, "");
	tree_leave_unread(f->before, DATASET);
	assert_change(f, "");
	tree_mark_read(f->after, DATASET);
	refused(f, "not known");
}

static struct dataset *dataset(struct fixture *f)
{
	return &tree_edit(f->after, DATASET)->dataset;
}

static void other_types_and_ranks_are_refused(void **state)
{
	struct fixture *f = *state;
	const struct dataset good = *dataset(f);
	const struct dtype *other = dtype_integer(tree_arena(f->after), 2, true, false, NULL);
	dataset(f)->type = other;
	refused(f, "the type differs");
	*dataset(f) = good;
	dataset(f)->committed = TYPE;
	refused(f, "the type differs");
	*dataset(f) = good;
	dataset(f)->space.max = shape_with(2, good.space.max, 1, DSPACE_UNLIMITED);
	refused(f, "maximum dimensions");
	*dataset(f) = good;
	dspace_scalar(&dataset(f)->space);
	refused(f, "rank");
	*dataset(f) = good;
	assert_change(f, "");
	tree_edit(f->after, TYPE)->datatype = other;
	refused(f, "the type differs");
}

static void trees_that_are_not_whole_are_refused(void **state)
{
	struct fixture *f = *state;
	struct tree_change c;
	assert_int_equal(tree_change(f->before, f->after, f->same, f->arena, &c, NULL), -EINVAL);
	tree_break(f->after, DATASET, "d");
	refused(f, "could not be read");
}

static void memory_may_be_short(void **state)
{
	struct fixture *f = *state;
	struct tree_change c;
	struct arena *small = arena_new(64);
	add_int(f->after, ROOT, "n", 1);
	assert_int_equal(tree_finish(f->before, NULL), 0);
	assert_int_equal(tree_finish(f->after, NULL), 0);
	assert_non_null(arena_alloc(small, 16));
	while (arena_alloc(small, 1))
		;
	assert_int_equal(tree_change(f->before, f->after, f->same, small, &c, NULL), -ENOMEM);
	arena_free(small);
}

/* ---- many links ---- */

enum { MANY = 200000 };

/* Soft links with the names of first, first + 1, …; path: whether all have the same one. */
static struct tree *make_many(uint32_t first, bool same_path)
{
	struct tree *t = tree_new((size_t)1 << 30);
	add(t, OBJECT_GROUP);
	struct object *o = tree_edit(t, ROOT);
	o->group.links = arena_array(tree_arena(t), MANY, sizeof(struct link));
	for (uint32_t i = 0; i < MANY; i++) {
		char name[16], path[16];
		const int n = snprintf(name, sizeof(name), "%u", first + i);
		const int m = snprintf(path, sizeof(path), "/%u", same_path ? 0 : i);
		o->group.links[i].name = arena_strndup(tree_arena(t), name, (size_t)n);
		o->group.links[i].path = arena_strndup(tree_arena(t), path, (size_t)m);
		o->group.links[i].cls = LINK_SOFT;
	}
	o->group.nlinks = MANY;
	o->group.links_ordered = !same_path;
	assert_int_equal(tree_finish(t, NULL), 0);
	return t;
}

static uint32_t changed_links(const struct tree *before, const struct tree *after)
{
	static const uint32_t same[] = {0};
	struct arena *arena = arena_new(64 << 20);
	struct tree_change c;
	assert_int_equal(tree_change(before, after, same, arena, &c, NULL), 0);
	const uint32_t n = c.nchanged ? c.changed[0].nlinks : 0;
	arena_free(arena);
	return n;
}

/* With an order and without. */
static void many_links(void **state)
{
	for (int same_path = 0; same_path < 2; same_path++) {
		struct tree *before = make_many(1, same_path), *after = make_many(1, same_path);
		assert_int_equal(changed_links(before, after), 0);
		tree_free(after);
		/* Half of the names are new. Of the others, the path is another one or the same. */
		after = make_many(1 + MANY / 2, same_path);
		assert_int_equal(changed_links(before, after),
				 same_path ? MANY / 2 : MANY + MANY / 2);
		tree_free(after);
		tree_free(before);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing),
		CASE(other_numbers),
		CASE(values),
		CASE(nans_and_padding_are_compared_bit_by_bit),
		CASE(types_and_spaces),
		CASE(committed_types),
		CASE(references),
		CASE(attributes_of_every_object),
		CASE(an_attribute_is_renamed),
		CASE(a_rename_keeps_its_place),
		CASE(several_renames),
		CASE(renames_that_cross),
		CASE(a_rename_with_another_value_is_none),
		CASE(the_order_of_attributes),
		CASE(an_added_part_before_one_that_stays),
		CASE(links),
		CASE(links_are_renamed),
		CASE(links_are_moved),
		CASE(the_order_of_links),
		CASE(shapes),
		CASE(comments),
		CASE(objects),
		CASE(objects_without_links),
		CASE(broken_relations_are_refused),
		CASE(unread_datasets),
		CASE(other_types_and_ranks_are_refused),
		CASE(trees_that_are_not_whole_are_refused),
		CASE(memory_may_be_short),
		cmocka_unit_test(many_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
