/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of trees: one test for each kind of difference, and the size of the work. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/str.h>
#include <data/tree_diff.h>

#include "shape_arena.h"

enum { ALL = TREE_DIFF_TIMES | TREE_DIFF_FILTERS | TREE_DIFF_GRIDS | TREE_DIFF_ORDER };

struct fixture {
	struct tree *a, *b;
	struct str seen; /* "path: text\n" for each difference */
	int stop;	 /* the result of the callback */
};

static const struct dtype *int4(struct tree *t)
{
	return dtype_integer(tree_arena(t), 4, true, false, NULL);
}

static uint32_t add(struct tree *t, enum object_kind kind)
{
	uint32_t number;
	assert_int_equal(tree_add(t, &number, NULL), 0);
	*tree_edit(t, number) = (struct object){.kind = kind, .id = "id"};
	return number;
}

static struct link *add_link(struct tree *t, uint32_t group, const char *name, uint32_t target)
{
	struct object *o = tree_edit(t, group);
	struct link *links = arena_array(tree_arena(t), o->group.nlinks + 1, sizeof(*links));
	if (o->group.nlinks)
		memcpy(links, o->group.links, o->group.nlinks * sizeof(*links));
	o->group.links = links;
	links[o->group.nlinks] = (struct link){.name = name, .cls = LINK_HARD, .target = target};
	return &links[o->group.nlinks++];
}

static struct attribute *add_attribute(struct tree *t, uint32_t number, const char *name,
				       const struct dtype *type, const void *value)
{
	struct object *o = tree_edit(t, number);
	struct attribute *attrs = arena_array(tree_arena(t), o->nattrs + 1, sizeof(*attrs));
	if (o->nattrs)
		memcpy(attrs, o->attrs, o->nattrs * sizeof(*attrs));
	o->attrs = attrs;
	struct attribute *a = &attrs[o->nattrs++];
	*a = (struct attribute){.name = name, .type = type, .committed = OBJECT_NONE};
	dspace_scalar(&a->space);
	assert_int_equal(bytes_append(&a->value.fixed, value, type->size), 0);
	return a;
}

static uint32_t add_dataset(struct tree *t)
{
	static const uint64_t dims[] = {10, 20}, chunk[] = {5, 20};
	static const uint64_t max[] = {10, DSPACE_UNLIMITED};
	const uint32_t number = add(t, OBJECT_DATASET);
	struct dataset *d = &tree_edit(t, number)->dataset;
	d->type = int4(t);
	d->committed = OBJECT_NONE;
	assert_int_equal(dspace_simple(shape_arena(), &d->space, 2, dims, max, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &d->grid, 2, dims, chunk, NULL), 0);
	d->fill_defined = true;
	assert_int_equal(bytes_append(&d->fill.fixed, "\1\0\0\0", 4), 0);
	return number;
}

enum { ROOT, GROUP, DATASET, TYPE, OBJECTS };

/* /g, /g/d, /g/d2 (the same dataset), /t, /s (soft), /x (external); attributes of / and /g/d. */
static struct tree *make(void)
{
	static const uint8_t target[] = {DATASET + 1, 0, 0, 0, 0, 0, 0, 0};
	struct tree *t = tree_new(4 << 20);
	add(t, OBJECT_GROUP);
	add(t, OBJECT_GROUP);
	add_dataset(t);
	add(t, OBJECT_DATATYPE);
	tree_edit(t, TYPE)->datatype = int4(t);
	add_link(t, ROOT, "g", GROUP);
	add_link(t, ROOT, "t", TYPE);
	*add_link(t, ROOT, "s", 0) = (struct link){.name = "s", .cls = LINK_SOFT, .path = "/g"};
	*add_link(t, ROOT, "x", 0) =
		(struct link){.name = "x", .cls = LINK_EXTERNAL, .path = "/y", .domain = "f.h5"};
	add_link(t, GROUP, "d", DATASET);
	add_link(t, GROUP, "d2", DATASET);
	add_attribute(t, ROOT, "one", int4(t), "\1\0\0\0");
	add_attribute(t, ROOT, "two", int4(t), "\2\0\0\0");
	add_attribute(t, DATASET, "r", dtype_reference(tree_arena(t), DTYPE_REF_OBJECT, NULL),
		      target);
	tree_edit(t, ROOT)->attrs_ordered = true;
	tree_edit(t, ROOT)->comment = "a comment";
	for (uint32_t i = 0; i < OBJECTS; i++)
		tree_edit(t, i)->created_ns = tree_edit(t, i)->modified_ns = 5000000000;
	return t;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->a = make();
	f->b = make();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	tree_free(f->a);
	tree_free(f->b);
	str_release(&f->seen);
	free(f);
	return 0;
}

static int see(void *ctx, const char *path, const char *text)
{
	struct fixture *f = ctx;
	str_addf(&f->seen, "%s: %s\n", path, text);
	return f->stop;
}

static uint64_t run(struct fixture *f, unsigned int flags, uint32_t *map)
{
	const struct tree_diff_sink sink = {.difference = see, .ctx = f};
	struct err err = ERR_INIT;
	uint64_t n;
	assert_int_equal(tree_finish(f->a, NULL), 0);
	assert_int_equal(tree_finish(f->b, NULL), 0);
	assert_int_equal(tree_diff(f->a, f->b, flags, &sink, map, &n, &err), f->stop);
	return n;
}

/* text: "path: text\n" */
static void assert_only(struct fixture *f, unsigned int flags, const char *text)
{
	const uint64_t n = run(f, flags, NULL);
	assert_string_equal(str_text(&f->seen), text);
	assert_int_equal(n, 1);
}

static void equal_trees(void **state)
{
	struct fixture *f = *state;
	uint32_t map[OBJECTS];
	assert_int_equal(run(f, ALL, map), 0);
	for (uint32_t i = 0; i < OBJECTS; i++)
		assert_int_equal(map[i], i);
}

/* The same hierarchy with other numbers and another order. */
static void numbers_and_order_do_not_matter(void **state)
{
	static const uint8_t target[] = {3 + 1, 0, 0, 0, 0, 0, 0, 0};
	struct fixture *f = *state;
	uint32_t map[OBJECTS];
	tree_free(f->b);
	f->b = tree_new(1 << 20);
	add(f->b, OBJECT_GROUP);
	add(f->b, OBJECT_DATATYPE);
	tree_edit(f->b, 1)->datatype = int4(f->b);
	add(f->b, OBJECT_GROUP);
	add_dataset(f->b);
	*add_link(f->b, 0, "x", 0) = tree_edit(f->a, ROOT)->group.links[3];
	*add_link(f->b, 0, "s", 0) = tree_edit(f->a, ROOT)->group.links[2];
	add_link(f->b, 0, "t", 1);
	add_link(f->b, 0, "g", 2);
	add_link(f->b, 2, "d2", 3);
	add_link(f->b, 2, "d", 3);
	tree_edit(f->b, 0)->attrs_ordered = true;
	add_attribute(f->b, 0, "two", int4(f->b), "\2\0\0\0");
	add_attribute(f->b, 0, "one", int4(f->b), "\1\0\0\0");
	add_attribute(f->b, 3, "r", dtype_reference(tree_arena(f->b), DTYPE_REF_OBJECT, NULL),
		      target);
	tree_edit(f->b, ROOT)->comment = "a comment";
	assert_int_equal(run(f, 0, map), 0);
	assert_memory_equal(map, ((const uint32_t[]){0, 2, 3, 1}), sizeof(map));
	uint64_t n;
	assert_int_equal(tree_diff(f->a, f->b, TREE_DIFF_ORDER, NULL, NULL, &n, NULL), 0);
	assert_int_equal(n, 3); /* links of two groups, attributes of one object */
}

struct difference {
	const char *text;
	unsigned int flags; /* without them, there is no difference */
	void (*change)(struct tree *b);
};

static void other_kind(struct tree *b)
{
	*tree_edit(b, TYPE) = (struct object){.kind = OBJECT_GROUP, .id = "id"};
}
static void no_link(struct tree *b)
{
	tree_edit(b, GROUP)->group.nlinks--;
}
static void more_link(struct tree *b)
{
	*add_link(b, GROUP, "n\nw", 0) = (struct link){.name = "n\nw", .cls = LINK_SOFT};
}
static void other_class(struct tree *b)
{
	tree_edit(b, ROOT)->group.links[2].cls = LINK_EXTERNAL;
}
static void other_path(struct tree *b)
{
	tree_edit(b, ROOT)->group.links[2].path = "/h";
}
static void other_file(struct tree *b)
{
	tree_edit(b, ROOT)->group.links[3].domain = "e.h5";
}
static void other_target(struct tree *b)
{
	const uint32_t copy = add_dataset(b);
	tree_edit(b, GROUP)->group.links[1].target = copy;
}
static void same_target(struct tree *b)
{
	tree_edit(b, ROOT)->group.links[1].target = GROUP;
}
static void link_order(struct tree *b)
{
	struct link *links = tree_edit(b, GROUP)->group.links;
	const struct link first = links[0];
	links[0] = links[1];
	links[1] = first;
}
static void attribute_order(struct tree *b)
{
	struct attribute *attrs = tree_edit(b, ROOT)->attrs;
	const struct attribute first = attrs[0];
	attrs[0] = attrs[1];
	attrs[1] = first;
}
static void no_attribute(struct tree *b)
{
	elems_release(&tree_edit(b, ROOT)->attrs[1].value);
	tree_edit(b, ROOT)->nattrs--;
}
static void more_attribute(struct tree *b)
{
	add_attribute(b, DATASET, "z", int4(b), "\0\0\0\0");
}
static void attribute_value(struct tree *b)
{
	tree_edit(b, ROOT)->attrs[1].value.fixed.data[0] = 3;
}
static void attribute_type(struct tree *b)
{
	tree_edit(b, ROOT)->attrs[1].type = dtype_ieee(tree_arena(b), 4, false, NULL);
}
static void attribute_space(struct tree *b)
{
	static const uint64_t one[] = {1};
	dspace_simple(shape_arena(), &tree_edit(b, ROOT)->attrs[0].space, 1, one, NULL, NULL);
}
static void attribute_committed(struct tree *b)
{
	tree_edit(b, ROOT)->attrs[0].committed = TYPE;
}
static void reference_value(struct tree *b)
{
	tree_edit(b, DATASET)->attrs[0].value.fixed.data[0] = GROUP + 1;
}
static void dataset_type(struct tree *b)
{
	tree_edit(b, DATASET)->dataset.type = dtype_integer(tree_arena(b), 4, false, false, NULL);
}
static void dataset_committed(struct tree *b)
{
	tree_edit(b, DATASET)->dataset.committed = TYPE;
}
static void dataset_extent(struct tree *b)
{
	struct dspace *s = &tree_edit(b, DATASET)->dataset.space;
	s->dims = shape_with(s->rank, s->dims, 1, 19);
}
static void dataset_max(struct tree *b)
{
	struct dspace *s = &tree_edit(b, DATASET)->dataset.space;
	s->max = shape_with(s->rank, s->max, 1, 20);
}
static void dataset_raw(struct tree *b)
{
	tree_edit(b, DATASET)->dataset.raw = RAW_VIRTUAL;
}
static void dataset_chunk(struct tree *b)
{
	struct grid *g = &tree_edit(b, DATASET)->dataset.grid;
	g->chunk = shape_with_chunk(g->rank, g->chunk, 0, 10);
}
static void dataset_filters(struct tree *b)
{
	static const uint32_t level[] = {6};
	static const struct filter deflate = {.id = FILTER_DEFLATE, .nparams = 1, .params = level};
	tree_edit(b, DATASET)->dataset.nfilters = 1;
	tree_edit(b, DATASET)->dataset.filters = &deflate;
}
static void no_fill(struct tree *b)
{
	tree_edit(b, DATASET)->dataset.fill_defined = false;
}
static void other_fill(struct tree *b)
{
	tree_edit(b, DATASET)->dataset.fill.fixed.data[0] = 9;
}
static void committed_type(struct tree *b)
{
	tree_edit(b, TYPE)->datatype = dtype_integer(tree_arena(b), 2, true, false, NULL);
}
static void more_comment(struct tree *b)
{
	tree_edit(b, TYPE)->comment = "more";
}
static void no_comment(struct tree *b)
{
	tree_edit(b, ROOT)->comment = NULL;
}
static void other_comment(struct tree *b)
{
	tree_edit(b, ROOT)->comment = "other";
}
static void created(struct tree *b)
{
	tree_edit(b, GROUP)->created_ns = 4999999999;
}
static void modified(struct tree *b)
{
	tree_edit(b, GROUP)->modified_ns = 6000000000;
}

static const struct difference differences[] = {
	{"/t: is a group instead of a committed datatype", 0, other_kind},
	{"/g: link \"d2\" is missing", 0, no_link},
	{"/g: link \"n\\x0aw\" is additional", 0, more_link},
	{"/: link \"s\" is an external link instead of a soft link", 0, other_class},
	{"/: link \"s\" leads to \"/h\" instead of \"/g\"", 0, other_path},
	{"/: link \"x\" leads to the file \"e.h5\" instead of \"f.h5\"", 0, other_file},
	{"/g: link \"d2\" does not lead to the object /g/d", 0, other_target},
	{"/: link \"t\" leads to the object /g", 0, same_target},
	{"/g: link \"d2\" is at another position in the creation order", TREE_DIFF_ORDER,
	 link_order},
	{"/: attribute \"two\" is at another position in the creation order", TREE_DIFF_ORDER,
	 attribute_order},
	{"/: attribute \"two\" is missing", 0, no_attribute},
	{"/g/d: attribute \"z\" is additional", 0, more_attribute},
	{"/: attribute \"two\" has another value, from element 0 of 1 on", 0, attribute_value},
	{"/: attribute \"two\" type: float32 instead of int32", 0, attribute_type},
	{"/: attribute \"one\" dataspace: [1] instead of scalar", 0, attribute_space},
	{"/: attribute \"one\" uses a committed type instead of a type of its own", 0,
	 attribute_committed},
	{"/g/d: attribute \"r\" has another value, from element 0 of 1 on", 0, reference_value},
	{"/g/d: type: uint32 instead of int32", 0, dataset_type},
	{"/g/d: uses a committed type instead of a type of its own", 0, dataset_committed},
	{"/g/d: dataspace: [10,19/inf] instead of [10,20/inf]", 0, dataset_extent},
	{"/g/d: dataspace: [10,20] instead of [10,20/inf]", 0, dataset_max},
	{"/g/d: raw data are stored in another way", 0, dataset_raw},
	{"/g/d: chunks: [10,20] instead of [5,20]", TREE_DIFF_GRIDS, dataset_chunk},
	{"/g/d: filters: deflate(6) instead of none", TREE_DIFF_FILTERS, dataset_filters},
	{"/g/d: fill value: is missing", 0, no_fill},
	{"/g/d: fill value: is another one", 0, other_fill},
	{"/t: type: int16 instead of int32", 0, committed_type},
	{"/t: comment: is additional", 0, more_comment},
	{"/: comment: is missing", 0, no_comment},
	{"/: comment: is another one", 0, other_comment},
	{"/g: time of creation: 1970-01-01T00:00:04.999999Z instead of "
	 "1970-01-01T00:00:05.000000Z",
	 TREE_DIFF_TIMES, created},
	{"/g: time of modification: 1970-01-01T00:00:06.000000Z instead of "
	 "1970-01-01T00:00:05.000000Z",
	 TREE_DIFF_TIMES, modified},
};

static void each_difference(void **state)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		const struct difference *d = &differences[i];
		for (int with = 0; with < 2; with++) {
			auto_str struct str text = {0};
			assert_int_equal(setup(state), 0);
			struct fixture *f = *state;
			d->change(f->b);
			str_addf(&text, "%s\n", d->text);
			if (with || !d->flags)
				assert_only(f, d->flags, str_text(&text));
			else
				assert_int_equal(run(f, ALL & ~d->flags, NULL), 0);
			teardown(state);
		}
	}
}

static void unknown_times_are_not_compared(void **state)
{
	struct fixture *f = *state;
	tree_edit(f->b, GROUP)->modified_ns = tree_edit(f->b, GROUP)->created_ns = 0;
	assert_int_equal(run(f, ALL, NULL), 0);
}

/* A committed type to which no link leads is paired where it is used, and compared, too. */
static void committed_types_without_links(void **state)
{
	struct fixture *f = *state;
	for (int k = 0; k < 2; k++) {
		struct tree *t = k ? f->b : f->a;
		const uint32_t type = add(t, OBJECT_DATATYPE);
		tree_edit(t, type)->datatype = int4(t);
		tree_edit(t, DATASET)->dataset.committed = type;
		add_attribute(t, type, "n", int4(t), k ? "\1\0\0\0" : "\2\0\0\0");
	}
	assert_only(f, 0,
		    "(object 4): attribute \"n\" has another value, from element 0 of 1 on\n");
}

/* A reference may lead to a type without a link, and be compared before the type is used. */
static void references_to_types_without_links(void **state)
{
	struct fixture *f = *state;
	for (int k = 0; k < 2; k++) {
		struct tree *t = k ? f->b : f->a;
		uint32_t types[2];
		/* The numbers of the trees differ. */
		for (int i = 0; i < 2; i++) {
			types[i] = add(t, OBJECT_DATATYPE);
			tree_edit(t, types[i])->datatype = int4(t);
		}
		const uint32_t of_dataset = types[k], of_attribute = types[!k];
		const struct dtype *ref = dtype_reference(tree_arena(t), DTYPE_REF_OBJECT, NULL);
		for (int i = 0; i < 2; i++) {
			uint8_t value[8] = {(uint8_t)(types[i == k] + 1)};
			add_attribute(t, ROOT, i ? "to2" : "to1", ref, value);
		}
		tree_edit(t, DATASET)->dataset.committed = of_dataset;
		add_attribute(t, DATASET, "only", int4(t), "\1\0\0\0");
		add_attribute(t, DATASET, "typed", int4(t), "\1\0\0\0")->committed = of_attribute;
	}
	assert_int_equal(run(f, ALL, NULL), 0);
}

static void attributes_without_order(void **state)
{
	struct fixture *f = *state;
	attribute_order(f->b);
	tree_edit(f->b, ROOT)->attrs_ordered = false;
	assert_int_equal(run(f, ALL, NULL), 0);
}

static int other_name(void *ctx, const char *file, char *out, size_t room)
{
	assert_string_equal(file, "f.h5");
	return snprintf(out, room, "../f.h5") < 0 ? -EIO : 0;
}

static bool has_no_fill(void *ctx, uint32_t number)
{
	assert_int_equal(number, DATASET);
	return false;
}

static void the_caller_knows_other_file_names_and_fill_values(void **state)
{
	struct fixture *f = *state;
	const struct tree_diff_sink sink = {.file_name = other_name, .has_fill = has_no_fill};
	uint64_t n;
	other_fill(f->b);
	tree_edit(f->b, ROOT)->group.links[3].domain = "../f.h5";
	assert_int_equal(run(f, ALL, NULL), 2);
	assert_int_equal(tree_diff(f->a, f->b, ALL, &sink, NULL, &n, NULL), 0);
	assert_int_equal(n, 0);
	tree_edit(f->b, ROOT)->group.links[3].domain = "f.h5";
	assert_int_equal(tree_diff(f->a, f->b, ALL, &sink, NULL, &n, NULL), 0);
	assert_int_equal(n, 1);
}

static void circles_end(void **state)
{
	struct fixture *f = *state;
	for (int k = 0; k < 2; k++) {
		add_link(k ? f->b : f->a, GROUP, "up", ROOT);
		add_link(k ? f->b : f->a, GROUP, "self", GROUP);
	}
	assert_int_equal(run(f, ALL, NULL), 0);
}

static void a_callback_stops(void **state)
{
	struct fixture *f = *state;
	no_attribute(f->b);
	no_link(f->b);
	f->stop = -ECANCELED;
	assert_int_equal(run(f, 0, NULL), 1);
	assert_string_equal(str_text(&f->seen), "/g: link \"d2\" is missing\n");
}

/* A chain of groups as deep as the tree has objects. */
static struct tree *chain(uint32_t n)
{
	struct tree *t = tree_new(64 << 20);
	for (uint32_t i = 0; i < n; i++)
		add(t, OBJECT_GROUP);
	for (uint32_t i = 0; i + 1 < n; i++)
		add_link(t, i, "n", i + 1);
	return t;
}

static void deep_hierarchies(void **state)
{
	enum { DEPTH = 50000 };
	struct fixture *f = *state;
	tree_free(f->a);
	tree_free(f->b);
	f->a = chain(DEPTH);
	f->b = chain(DEPTH);
	add_attribute(f->b, DEPTH - 1, "z", int4(f->b), "\0\0\0\0");
	assert_int_equal(run(f, ALL, NULL), 1);
	assert_non_null(strstr(str_text(&f->seen), "/n/n/n: attribute \"z\" is additional\n"));
}

/* Two groups with many links in opposite orders: the comparison sorts them. */
static void wide_groups(void **state)
{
	enum { WIDTH = 50000, NAME = 12 };
	struct fixture *f = *state;
	tree_free(f->a);
	tree_free(f->b);
	struct tree *trees[] = {tree_new(64 << 20), tree_new(64 << 20)};
	for (int k = 0; k < 2; k++) {
		struct tree *t = trees[k];
		add(t, OBJECT_GROUP);
		add(t, OBJECT_GROUP);
		struct link *links = arena_array(tree_arena(t), WIDTH, sizeof(*links));
		for (int i = 0; i < WIDTH; i++) {
			char *name = arena_alloc(tree_arena(t), NAME);
			snprintf(name, NAME, "%d", k ? WIDTH - i : i);
			links[i] = (struct link){.name = name, .cls = LINK_HARD, .target = 1};
		}
		tree_edit(t, 0)->group.links = links;
		tree_edit(t, 0)->group.nlinks = WIDTH;
	}
	f->a = trees[0];
	f->b = trees[1];
	assert_int_equal(run(f, 0, NULL), 2);
	assert_non_null(strstr(str_text(&f->seen), "/: link \"0\" is missing\n"));
	assert_non_null(strstr(str_text(&f->seen), "/: link \"50000\" is additional\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_trees, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_and_order_do_not_matter, setup, teardown),
		cmocka_unit_test(each_difference),
		cmocka_unit_test_setup_teardown(unknown_times_are_not_compared, setup, teardown),
		cmocka_unit_test_setup_teardown(committed_types_without_links, setup, teardown),
		cmocka_unit_test_setup_teardown(references_to_types_without_links, setup, teardown),
		cmocka_unit_test_setup_teardown(attributes_without_order, setup, teardown),
		cmocka_unit_test_setup_teardown(the_caller_knows_other_file_names_and_fill_values,
						setup, teardown),
		cmocka_unit_test_setup_teardown(circles_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_callback_stops, setup, teardown),
		cmocka_unit_test_setup_teardown(deep_hierarchies, setup, teardown),
		cmocka_unit_test_setup_teardown(wide_groups, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
