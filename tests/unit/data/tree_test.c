/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: order of objects, reference counts, dropped links, problems, and ownership. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <data/tree.h>

enum { ARENA_LIMIT = 16 << 20 };

static int setup(void **state)
{
	*state = tree_new(ARENA_LIMIT);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	tree_free(*state);
	return 0;
}

/* Adds an object with room for n links or attributes, which the test fills in. */
static struct object *add(struct tree *t, enum object_kind kind, const char *id, uint32_t n)
{
	uint32_t number;
	assert_int_equal(tree_add(t, &number, NULL), 0);
	struct object *o = tree_edit(t, number);
	*o = (struct object){.kind = kind, .id = id};
	if (kind == OBJECT_GROUP) {
		o->group.nlinks = n;
		o->group.links = arena_array(tree_arena(t), n ? n : 1, sizeof(struct link));
	} else {
		o->nattrs = n;
		o->attrs = arena_array(tree_arena(t), n ? n : 1, sizeof(struct attribute));
	}
	return o;
}

static struct link hard(const char *name, uint32_t target)
{
	return (struct link){.name = name, .cls = LINK_HARD, .target = target};
}

static void assert_order(const struct tree *t, uint32_t n, const uint32_t *numbers)
{
	assert_int_equal(tree_count(t), n);
	assert_memory_equal(tree_order(t), numbers, n * sizeof(*numbers));
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(tree_nth(t, i), numbers[i]);
}

/* 0 -> 3, 1; 3 -> 2, 0; 1 -> 2; no link leads to 4, which has a link to 1. */
static void breadth_first_with_a_cycle(void **state)
{
	struct tree *t = *state;
	struct object *o = add(t, OBJECT_GROUP, "root", 2);
	o->group.links[0] = hard("b", 3);
	o->group.links[1] = hard("a", 1);
	add(t, OBJECT_GROUP, "one", 1)->group.links[0] = hard("c", 2);
	add(t, OBJECT_GROUP, "two", 0);
	o = add(t, OBJECT_GROUP, "three", 2);
	o->group.links[0] = hard("c", 2);
	o->group.links[1] = hard("up", 0);
	add(t, OBJECT_GROUP, "orphan", 1)->group.links[0] = hard("a", 1);
	assert_int_equal(tree_finish(t, NULL), 0);
	assert_order(t, 4, (const uint32_t[]){0, 3, 1, 2});
	assert_int_equal(tree_numbers(t), 5);
	assert_int_equal(tree_object(t, 0)->refcount, 2);
	assert_int_equal(tree_object(t, 1)->refcount, 1);
	assert_int_equal(tree_object(t, 2)->refcount, 2);
	assert_int_equal(tree_object(t, 4)->refcount, 0);
	assert_null(tree_problem(t, 0));
}

static void links_to_broken_objects_are_left_out(void **state)
{
	struct tree *t = *state;
	struct object *o = add(t, OBJECT_GROUP, "root", 4);
	o->group.links[0] = hard("first", 1);
	o->group.links[1] = (struct link){.name = "soft", .cls = LINK_SOFT, .path = "/x"};
	o->group.links[2] = hard("far", 9);
	o->group.links[3] = hard("last", 2);
	o = add(t, OBJECT_DATASET, "one", 1);
	assert_int_equal(bytes_append_zero(&o->attrs[0].value.fixed, 100), 0);
	tree_break(t, 1, "the id");
	add(t, OBJECT_GROUP, "two", 0);
	assert_int_equal(tree_finish(t, NULL), 0);
	assert_order(t, 2, (const uint32_t[]){0, 2});
	assert_true(tree_object(t, 1)->broken);
	o = tree_edit(t, 0);
	assert_int_equal(o->group.nlinks, 2);
	assert_string_equal(o->group.links[0].name, "soft");
	assert_string_equal(o->group.links[1].name, "last");
	assert_int_equal(tree_problems(t), 2);
	assert_string_equal(tree_problem(t, 0),
			    "group root: hard link \"first\" is left out: no usable object the id");
	assert_non_null(strstr(tree_problem(t, 1), "\"far\""));
}

/* An object is broken after the tree was finished: what only it leads to is not reachable any more,
 * and all counts are those of the second call. */
static void finished_again(void **state)
{
	struct tree *t = *state;
	struct object *o = add(t, OBJECT_GROUP, "root", 2);
	o->group.links[0] = hard("a", 1);
	o->group.links[1] = hard("b", 2);
	o = add(t, OBJECT_GROUP, "one", 2);
	o->group.links[0] = hard("only", 3);
	o->group.links[1] = hard("both", 2);
	add(t, OBJECT_GROUP, "two", 0);
	add(t, OBJECT_GROUP, "three", 0);
	assert_int_equal(tree_finish(t, NULL), 0);
	assert_order(t, 4, (const uint32_t[]){0, 1, 2, 3});
	assert_int_equal(tree_object(t, 2)->refcount, 2);
	tree_break(t, 1, "one");
	assert_int_equal(tree_finish(t, NULL), 0);
	assert_order(t, 2, (const uint32_t[]){0, 2});
	assert_int_equal(tree_object(t, 2)->refcount, 1);
	assert_false(tree_object(t, 3)->linked);
	assert_int_equal(tree_missing(t), 1);
	assert_int_equal(tree_edit(t, 0)->group.nlinks, 1);
}

/* An equal committed type is shared and thereby reachable; a different one is not. */
static void committed_types(void **state)
{
	struct tree *t = *state;
	struct arena *a = tree_arena(t);
	const struct dtype *i4 = dtype_integer(a, 4, true, false, NULL);
	const struct dtype *i8 = dtype_integer(a, 8, true, false, NULL);
	add(t, OBJECT_GROUP, "root", 1)->group.links[0] = hard("d", 1);
	struct object *o = add(t, OBJECT_DATASET, "data", 2);
	o->dataset =
		(struct dataset){.type = dtype_integer(a, 4, true, false, NULL), .committed = 2};
	o->attrs[0] = (struct attribute){.name = "same", .type = i4, .committed = 2};
	o->attrs[1] = (struct attribute){.name = "other", .type = i8, .committed = 2};
	add(t, OBJECT_DATATYPE, "type", 0)->datatype = i4;
	assert_int_equal(tree_finish(t, NULL), 0);
	assert_order(t, 3, (const uint32_t[]){0, 1, 2});
	assert_int_equal(tree_object(t, 2)->refcount, 2);
	const struct object *data = &tree_object(t, 1)->o;
	assert_int_equal(data->dataset.committed, 2);
	assert_int_equal(data->attrs[0].committed, 2);
	assert_int_equal(data->attrs[1].committed, OBJECT_NONE);
	assert_int_equal(tree_problems(t), 1);
	assert_non_null(strstr(tree_problem(t, 0), "other"));
}

static void no_root_group(void **state)
{
	struct tree *t = *state;
	assert_int_equal(tree_finish(t, NULL), -EIO);
	add(t, OBJECT_DATATYPE, "root", 0);
	assert_int_equal(tree_finish(t, NULL), -EIO);
}

/* All problems are counted, the first ones are kept, and control characters are escaped. */
static void problems(void **state)
{
	struct tree *t = *state;
	tree_note(t, TREE_DAMAGE, "a\nb");
	for (int i = 0; i < 2 * TREE_MAX_PROBLEMS; i++)
		tree_note(t, TREE_DAMAGE, "problem %d", i);
	assert_int_equal(tree_problems(t), 2 * TREE_MAX_PROBLEMS + 1);
	assert_null(strchr(tree_problem(t, 0), '\n'));
	assert_string_equal(tree_problem(t, TREE_MAX_PROBLEMS - 1), "problem 998");
	assert_null(tree_problem(t, TREE_MAX_PROBLEMS));
}

/* The array of objects moves while the tree grows; their contents do not change. */
static void many_objects(void **state)
{
	enum { MANY = 5000 };
	struct tree *t = *state;
	struct object *root = add(t, OBJECT_GROUP, "root", MANY);
	struct link *links = root->group.links;
	const uint64_t before = tree_memory(t);
	for (uint32_t i = 1; i <= MANY; i++) {
		links[i - 1] = hard("x", i);
		add(t, OBJECT_GROUP, "child", 0)->created_ns = i;
	}
	assert_int_equal(tree_finish(t, NULL), 0);
	assert_int_equal(tree_count(t), MANY + 1);
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_equal(tree_object(t, i)->o.created_ns, i);
	assert_true(tree_memory(t) > before + MANY * sizeof(struct object));
}

static void take_first(void *ctx, uint32_t i, struct object *o)
{
	struct elems *taken = ctx;
	assert_int_equal(i, 1);
	assert_string_equal(o->id, "d");
	taken[0] = o->attrs[0].value;
	o->attrs[0].value = (struct elems){0};
}

static void skip_root(void *ctx, uint32_t i, struct object *o)
{
	if (i)
		take_first(ctx, i, o);
}

static void attributes_are_dropped(void **state)
{
	struct tree *t = *state;
	struct elems taken = {0};
	add(t, OBJECT_GROUP, "root", 1)->group.links[0] = hard("d", 1);
	for (uint32_t i = 1; i <= 2; i++) { /* nothing leads to the second one */
		struct object *o = add(t, OBJECT_DATATYPE, i == 1 ? "d" : "lost", 0);
		o->nattrs = 2;
		o->attrs = arena_array(tree_attributes_arena(t), 2, sizeof(*o->attrs));
		for (uint32_t k = 0; k < 2; k++) {
			o->attrs[k].name = "a";
			o->attrs[k].committed = OBJECT_NONE;
			assert_int_equal(bytes_append(&o->attrs[k].value.fixed, "xyz", 3), 0);
		}
	}
	assert_int_equal(tree_finish(t, NULL), 0);
	const uint64_t before = tree_memory(t);
	tree_drop_attributes(t, skip_root, &taken);
	for (uint32_t i = 0; i <= 2; i++)
		assert_int_equal(tree_object(t, i)->o.nattrs, 0);
	assert_int_equal(tree_memory(t), before - 4 * sizeof(struct attribute));
	assert_memory_equal(taken.fixed.data, "xyz", 3);
	elems_release(&taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(breadth_first_with_a_cycle, setup, teardown),
		cmocka_unit_test_setup_teardown(links_to_broken_objects_are_left_out, setup,
						teardown),
		cmocka_unit_test_setup_teardown(finished_again, setup, teardown),
		cmocka_unit_test_setup_teardown(committed_types, setup, teardown),
		cmocka_unit_test_setup_teardown(no_root_group, setup, teardown),
		cmocka_unit_test_setup_teardown(problems, setup, teardown),
		cmocka_unit_test_setup_teardown(many_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(attributes_are_dropped, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
