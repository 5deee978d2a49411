/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of new domains: what is emitted is loaded as the same tree. */
#include "schema_test.h"

#include <stdatomic.h>

#include "emitted.h"
#include "random_tree.h"
#include "sampling.h"
#include "shape_arena.h"

#include <data/tree_diff.h>
#include <bucket/schemas.h>
#include "storages.h"

#define DOMAIN UINT64_C(0x0011223344556677)
#define NOW    (INT64_C(1700000000) * 1000000000 + 123456789)

static int show(void *ctx, const char *path, const char *text)
{
	print_error("%s: %s\n", path, text);
	return 0;
}

static int no_refusal(void *ctx, const struct schema_refusal *r)
{
	fail_msg("object %u: %s", r->object, r->why);
	return 0;
}

/* Emits and loads a tree, and compares both. */
static void check_round_trip(struct tree *t)
{
	const struct tree_diff_sink sink = {.difference = show};
	const unsigned int flags =
		TREE_DIFF_TIMES | TREE_DIFF_FILTERS | TREE_DIFF_GRIDS | TREE_DIFF_ORDER;
	const struct schema_ops *ops = schema_all()[0];
	struct err err = ERR_INIT;
	struct emitted e;
	struct tree *again;
	uint64_t n;
	assert_int_equal(ops->writer->refusals(t, no_refusal, NULL), 0);
	assert_int_equal(ops->writer->adopt(t, STORAGE(DOMAIN), NOW, &err), 0);
	if (emitted_init(&e, t, &err))
		fail_msg("%s", err.msg);
	if (emitted_load(&e, &again, &err))
		fail_msg("%s", err.msg);
	if (tree_problems(again))
		fail_msg("%s", tree_problem(again, 0));
	assert_int_equal(tree_diff(t, again, flags, &sink, NULL, &n, &err), 0);
	for (uint32_t i = 0; n && i < e.n; i++)
		fprintf(stderr, "%.*s\n", (int)e.docs[i].text.len, (char *)e.docs[i].text.data);
	assert_int_equal(n, 0);
	tree_free(again);
	emitted_release(&e);
}

static void random_trees_are_loaded_again(void **state)
{
	for (uint64_t seed = 0; seed < 2000 / sampling_step(8); seed++) {
		struct tree *t = random_tree("", 0, seed);
		check_round_trip(t);
		tree_free(t);
	}
}

/* A tree with one dataset, /x, of two numbers. */
static struct tree *tree_of_dataset(struct object **ds)
{
	static const uint64_t dims[] = {2};
	struct tree *t = tree_new(64 << 20);
	struct arena *a = tree_arena(t);
	uint32_t number;
	assert_int_equal(tree_add(t, &number, NULL), 0);
	assert_int_equal(tree_add(t, &number, NULL), 0);
	struct object *root = tree_edit(t, 0), *o = tree_edit(t, 1);
	root->group.nlinks = 1;
	root->group.links = arena_alloc(a, sizeof(struct link));
	root->group.links[0] = (struct link){.name = "x", .target = 1};
	o->kind = OBJECT_DATASET;
	o->dataset.type = dtype_integer(a, 4, true, false, NULL);
	o->dataset.committed = OBJECT_NONE;
	o->dataset.alloc_time = ALLOC_TIME_INCR;
	o->dataset.requested = LAYOUT_CHUNKED;
	dspace_simple(shape_arena(), &o->dataset.space, 1, dims, NULL, NULL);
	grid_init(shape_arena(), &o->dataset.grid, 1, dims, dims, NULL);
	*ds = o;
	return t;
}

/* The loader adds terminators to the texts that hsload writes, but not to those of new domains. */
static void null_padded_dimension_scales_stay(void **state)
{
	static const char *const names[] = {"CLASS", "NAME"};
	struct object *ds;
	struct tree *t = tree_of_dataset(&ds);
	struct arena *a = tree_arena(t);
	ds->nattrs = 2;
	ds->attrs = arena_array(a, 2, sizeof(*ds->attrs));
	for (uint32_t i = 0; i < 2; i++) {
		ds->attrs[i] = (struct attribute){.name = names[i], .committed = OBJECT_NONE};
		ds->attrs[i].type = dtype_string(a, 15, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII, NULL);
		dspace_scalar(&ds->attrs[i].space);
		assert_int_equal(bytes_append(&ds->attrs[i].value.fixed, "DIMENSION_SCALE", 15), 0);
	}
	assert_int_equal(tree_finish(t, NULL), 0);
	check_round_trip(t);
	tree_free(t);
}

/* Two strings: one that is no text, and one that has no value. */
static void set_fill(struct tree *t, struct object *ds)
{
	static const uint32_t two = 2;
	struct arena *a = tree_arena(t);
	struct elems *fill = &ds->dataset.fill;
	uint64_t offset;
	const struct dtype *text = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	ds->dataset.type = dtype_array(a, text, 1, &two, NULL);
	ds->dataset.fill_defined = true;
	assert_int_equal(elems_heap_add(fill, "\xff", 1, &offset), 0);
	assert_int_equal(bytes_append_zero(&fill->fixed, 2 * (size_t)DTYPE_VLEN_SIZE), 0);
	elems_put_vlen(fill->fixed.data, 1, offset);
}

/* What the service does not know is in the member "hsmount", which is there only if it is needed.
 */
static void only_what_the_service_does_not_know(void **state)
{
	static const uint32_t requested[] = {1};
	static const uint64_t small[] = {1};
	static const char both[] = "\"layout\": {\"class\": \"H5D_CHUNKED\", \"dims\": [1]}";
	for (int i = 0; i < 5; i++) {
		struct object *ds;
		struct tree *t = tree_of_dataset(&ds);
		if (i == 1)
			ds->dataset.requested = LAYOUT_COMPACT;
		if (i == 2)
			set_fill(t, ds);
		if (i == 3)
			ds->dataset.requested_chunk = requested;
		if (i == 4) {
			ds->dataset.requested = LAYOUT_CONTIGUOUS;
			grid_init(shape_arena(), &ds->dataset.grid, 1, ds->dataset.space.dims,
				  small, NULL);
		}
		assert_int_equal(tree_finish(t, NULL), 0);
		check_round_trip(t);
		struct bytes text = {0};
		assert_int_equal(schema_all()[0]->writer->emit_object(t, 1, &text, NULL), 0);
		assert_int_equal(memmem(text.data, text.len, "\"hsmount\"", 9) != NULL, i > 0);
		/* HSDS 1.0 takes the shape of the chunks from the creation properties. */
		if (i == 4) {
			const uint8_t *first = memmem(text.data, text.len, both, strlen(both));
			assert_non_null(first);
			first++;
			assert_non_null(memmem(first, text.len - (size_t)(first - text.data), both,
					       strlen(both)));
		}
		bytes_release(&text);
		tree_free(t);
	}
}

static bool has(const struct bytes *text, const char *part)
{
	return memmem(text->data, text->len, part, strlen(part)) != NULL;
}

/* Clients of the service read any NaN as NaN, and none in base64. */
static void a_nan_with_a_sign_is_a_nan(void **state)
{
	static const uint8_t nan[] = {0, 0, 0, 0, 0, 0, 0xf8, 0xff};
	static const uint8_t two[] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0, 0, 0, 0, 0, 0, 0xf8, 0xff};
	static const uint64_t dims[] = {2};
	struct object *ds;
	struct tree *t = tree_of_dataset(&ds);
	struct arena *a = tree_arena(t);
	struct bytes text = {0};
	ds->dataset.type = dtype_ieee(a, 8, false, NULL);
	ds->dataset.fill_defined = true;
	assert_int_equal(bytes_append(&ds->dataset.fill.fixed, nan, sizeof(nan)), 0);
	ds->nattrs = 1;
	ds->attrs = arena_array(a, 1, sizeof(*ds->attrs));
	ds->attrs[0] = (struct attribute){
		.name = "mean", .committed = OBJECT_NONE, .type = ds->dataset.type};
	dspace_simple(a, &ds->attrs[0].space, 1, dims, NULL, NULL);
	assert_int_equal(bytes_append(&ds->attrs[0].value.fixed, two, sizeof(two)), 0);
	assert_int_equal(tree_finish(t, NULL), 0);
	check_round_trip(t);
	assert_int_equal(schema_all()[0]->writer->emit_object(t, 1, &text, NULL), 0);
	assert_true(has(&text, "\"value\": [NaN, NaN], "
			       "\"hsmount\": {\"value\": \"AAAAAAAA+H8AAAAAAAD4/w==\"}"));
	assert_true(has(&text, "\"fillValue\": NaN"));
	assert_true(has(&text, "\"fillValue\": \"AAAAAAAA+P8=\""));
	assert_false(has(&text, "ncoding\": \"base64\""));
	bytes_release(&text);
	tree_free(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_trees_are_loaded_again),
		cmocka_unit_test(null_padded_dimension_scales_stay),
		cmocka_unit_test(only_what_the_service_does_not_know),
		cmocka_unit_test(a_nan_with_a_sign_is_a_nan),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
