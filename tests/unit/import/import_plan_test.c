/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of an import: what the scan of an index finds, and which chunks are joined. The reader
 * of files is replaced by one whose indexes are tables, and which counts its scans.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_internal.h"
#include "shape_arena.h"

/* ---- the reader ---- */

enum { KIB = 1 << 10, MIB = 1 << 20 };

struct h5file {
	struct h5file_dataset dataset; /* object 1 */
	const uint64_t *index;	       /* numbers of chunks in the order of the index */
	uint64_t n;
	uint64_t repeated; /* without an index: this many chunks, from 0 */
	uint64_t chunk_size;
	unsigned int scans;
};

const struct h5file_dataset *h5file_dataset(const struct h5file *f, uint32_t number)
{
	return number == 1 ? &f->dataset : NULL;
}

int h5file_chunks(struct h5file *f, uint32_t number, uint64_t first, uint64_t end,
		  h5file_chunk_fn fn, void *ctx, struct err *err)
{
	int rc = 0;
	assert_int_equal(number, 1);
	assert_int_equal(first, 0);
	assert_int_equal(end, f->dataset.grid.nchunks);
	f->scans++;
	for (uint64_t i = 0; !rc && i < (f->index ? f->n : f->repeated); i++) {
		const struct h5file_chunk chunk = {.number = f->index ? f->index[i] : i,
						   .size = f->chunk_size};
		rc = fn(ctx, &chunk, err);
	}
	return rc;
}

/* ---- an import of one dataset ---- */

struct world {
	struct env env;
	struct import_options opt;
	struct h5file file;
	struct import im;
	struct dataset *ds;
	const char *paths[2];
	unsigned int notes;
	char last[256];
};

static void take_note(void *ctx, const char *line)
{
	struct world *w = ctx;
	w->notes++;
	snprintf(w->last, sizeof(w->last), "%s", line);
}

/* /data of 4-byte integers. dims, chunk: rank numbers. */
static void setup(struct world *w, uint32_t rank, const uint64_t *dims, const uint64_t *chunk)
{
	struct tree *t = tree_new(1 << 20);
	uint32_t number;
	*w = (struct world){.paths = {"/", "/data"}};
	for (int i = 0; i < 2; i++)
		assert_int_equal(tree_add(t, &number, NULL), 0);
	struct object *root = tree_edit(t, 0), *o = tree_edit(t, 1);
	*root = (struct object){.kind = OBJECT_GROUP, .id = "/"};
	root->group.links = arena_array(tree_arena(t), 1, sizeof(struct link));
	root->group.links[0] = (struct link){.name = "data", .cls = LINK_HARD, .target = 1};
	root->group.nlinks = 1;
	*o = (struct object){.kind = OBJECT_DATASET, .id = "/data"};
	o->dataset.raw = RAW_STORED;
	o->dataset.type = dtype_integer(tree_arena(t), 4, true, false, NULL);
	assert_int_equal(grid_init(shape_arena(), &o->dataset.grid, rank, dims, chunk, NULL), 0);
	assert_int_equal(tree_finish(t, NULL), 0);
	/* tree_finish() moves the objects. */
	w->ds = &tree_edit(t, 1)->dataset;
	w->env = env_real(NULL, NULL);
	w->env.budget =
		budget_new(&(struct budget_limits){.bytes = 64 * MIB, .metadata_min = 64 * MIB});
	w->opt = (struct import_options){.env = &w->env, .note = take_note, .ctx = w};
	w->file.dataset.grid = w->ds->grid;
	w->file.chunk_size = 100;
	w->im = (struct import){
		.opt = &w->opt, .file = &w->file, .tree = t, .paths = w->paths, .npaths = 2};
}

static int plan(struct world *w, struct err *err)
{
	free(w->im.datasets);
	w->im.total = 0;
	*err = (struct err)ERR_INIT;
	return import_plan(&w->im, err);
}

static void teardown(struct world *w)
{
	struct budget_stats stats;
	budget_get_stats(w->env.budget, &stats);
	assert_int_equal(stats.used[BUDGET_TREES], 0);
	free(w->im.datasets);
	tree_free(w->im.tree);
	budget_free(w->env.budget);
}

/* ---- indexes ---- */

static void orders_of_an_index(void **state)
{
	static const struct {
		const char *name;
		uint64_t index[4], n;
		bool is_ascending;
		unsigned int scans;
		const char *error;
	} cases[] = {
		{"empty", {0}, 0, true, 1, NULL},
		{"only chunk 0", {0}, 1, true, 1, NULL},
		{"ascending, with gaps", {1, 3, 4, 7}, 4, true, 1, NULL},
		{"another order", {1, 0, 7, 3}, 4, false, 2, NULL},
		{"twice in a row",
		 {2, 2},
		 2,
		 false,
		 1,
		 "dataset /data: its index names chunk 2 twice"},
		{"chunk 0 twice in a row",
		 {0, 0},
		 2,
		 false,
		 1,
		 "dataset /data: its index names chunk 0 twice"},
		{"twice, not in a row",
		 {6, 1, 6},
		 3,
		 false,
		 2,
		 "dataset /data: its index names chunk 6 twice"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct err err;
		setup(&w, 1, (uint64_t[]){8}, (uint64_t[]){1});
		w.file.index = cases[i].index;
		w.file.n = cases[i].n;
		const int rc = plan(&w, &err);
		if (rc != (cases[i].error ? -EIO : 0) || w.file.scans != cases[i].scans)
			fail_msg("%s: %d, %u scans", cases[i].name, rc, w.file.scans);
		if (cases[i].error)
			assert_string_equal(err.msg, cases[i].error);
		else {
			assert_int_equal(w.im.datasets[1].is_ascending, cases[i].is_ascending);
			assert_int_equal(w.im.datasets[1].stored, cases[i].n);
			assert_int_equal(w.im.datasets[1].bytes, 100 * cases[i].n);
			assert_int_equal(w.im.total, 100 * cases[i].n);
		}
		teardown(&w);
	}
}

/* Without memory for a bit of each chunk, the second scan is left out. */
static void no_room_for_the_bits(void **state)
{
	static const uint64_t index[] = {6, 1, 6};
	static const struct {
		uint64_t chunks, budget;
		unsigned int scans;
		int rc;
	} cases[] = {
		{UINT64_C(8) * 128 * MIB, 64 * MIB, 1, 0}, /* more than 64 MiB of bits */
		{UINT64_C(8) * 32 * MIB, 16 * MIB, 1, 0},  /* more than the budget */
		{UINT64_C(8) * 8 * MIB, 64 * MIB, 2, -EIO},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct err err;
		setup(&w, 1, &cases[i].chunks, (uint64_t[]){1});
		budget_free(w.env.budget);
		w.env.budget = budget_new(&(struct budget_limits){.bytes = cases[i].budget,
								  .metadata_min = cases[i].budget});
		w.file.index = index;
		w.file.n = 3;
		assert_int_equal(plan(&w, &err), cases[i].rc);
		assert_int_equal(w.file.scans, cases[i].scans);
		teardown(&w);
	}
}

static void a_scan_is_cancelled(void **state)
{
	static const uint64_t index[] = {0, 1};
	atomic_bool cancelled = false;
	struct world w;
	struct err err;
	setup(&w, 1, (uint64_t[]){8}, (uint64_t[]){1});
	w.file.index = index;
	w.file.n = 2;
	w.opt.cancelled = &cancelled;
	assert_int_equal(plan(&w, &err), 0);
	cancelled = true;
	assert_int_equal(plan(&w, &err), -ECANCELED);
	assert_int_equal(w.file.scans, 2);
	teardown(&w);
}

static void datasets_without_chunks_are_not_scanned(void **state)
{
	struct world w;
	struct err err;
	setup(&w, 1, (uint64_t[]){0}, (uint64_t[]){1});
	assert_int_equal(plan(&w, &err), 0);
	assert_int_equal(w.file.scans, 0);
	teardown(&w);
	setup(&w, 1, (uint64_t[]){8}, (uint64_t[]){1});
	w.ds->raw = RAW_EXTERNAL;
	assert_int_equal(plan(&w, &err), 0);
	assert_int_equal(w.file.scans, 0);
	teardown(&w);
}

static void advice_for_many_small_chunks(void **state)
{
	static const struct {
		uint64_t chunks, size, min_chunk;
		unsigned int notes;
	} cases[] = {
		{100000, 100, 0, 0},
		{100001, 100, 0, 1},
		{100001, 64 * KIB, 0, 0},
		{100001, 100, 4, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct err err;
		setup(&w, 1, &cases[i].chunks, (uint64_t[]){1});
		w.file.repeated = cases[i].chunks;
		w.file.chunk_size = cases[i].size;
		w.opt.min_chunk = cases[i].min_chunk;
		assert_int_equal(plan(&w, &err), 0);
		assert_int_equal(w.notes, cases[i].notes);
		if (w.notes)
			assert_string_equal(w.last, "100001 chunks are smaller than 64 KiB, and "
						    "each becomes an object; --min-chunk=1M joins "
						    "neighbouring chunks");
		teardown(&w);
	}
}

/* ---- joining ---- */

static void chunks_are_joined(void **state)
{
	static const struct {
		const char *name;
		uint32_t rank;
		uint64_t dims[3], chunk[3], min_chunk;
		uint32_t want[3];
	} cases[] = {
		{"not asked for", 1, {1000}, {10}, 0, {10}},
		{"large enough", 1, {1000}, {10}, 40, {10}},
		{"one byte more", 1, {1000}, {10}, 41, {20}},
		{"whole multiples", 1, {1000}, {10}, 130, {40}},
		{"not more than there are", 1, {35}, {10}, MIB, {40}},
		{"the last dimension is enough", 2, {100, 100}, {1, 10}, 200, {1, 50}},
		{"the last dimension is not divided", 2, {100, 100}, {1, 10}, 800, {2, 100}},
		{"the last dimension is one chunk", 2, {100, 10}, {1, 10}, 400, {10, 10}},
		{"three dimensions", 3, {4, 4, 4}, {1, 1, 1}, 100, {2, 4, 4}},
		{"everything", 3, {4, 4, 4}, {1, 1, 1}, MIB, {4, 4, 4}},
		{"at most 256 MiB", 1, {1 << 28}, {1 << 20}, UINT64_C(1) << 40, {1 << 26}},
		{"a part of a dimension ends it",
		 2,
		 {4, 1 << 28},
		 {1, 1 << 20},
		 UINT64_C(1) << 40,
		 {1, 1 << 26}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct err err;
		bool joined = false;
		setup(&w, cases[i].rank, cases[i].dims, cases[i].chunk);
		w.opt.min_chunk = cases[i].min_chunk;
		assert_int_equal(plan(&w, &err), 0);
		for (uint32_t d = 0; d < cases[i].rank; d++) {
			if (w.ds->grid.chunk[d] != cases[i].want[d])
				fail_msg("%s: dimension %u: %u", cases[i].name, d,
					 w.ds->grid.chunk[d]);
			joined = joined || cases[i].want[d] != cases[i].chunk[d];
		}
		/* The chunk shape of the file is recorded. */
		assert_int_equal(w.ds->requested_chunk != NULL, joined);
		for (uint32_t d = 0; joined && d < cases[i].rank; d++)
			assert_int_equal(w.ds->requested_chunk[d], cases[i].chunk[d]);
		teardown(&w);
	}
}

static void an_index_in_another_order_is_not_joined(void **state)
{
	static const uint64_t index[] = {1, 0};
	struct world w;
	struct err err;
	setup(&w, 1, (uint64_t[]){100}, (uint64_t[]){10});
	w.opt.min_chunk = 80;
	w.file.index = index;
	w.file.n = 2;
	assert_int_equal(plan(&w, &err), 0);
	assert_int_equal(w.ds->grid.chunk[0], 10);
	teardown(&w);
}

static void a_recorded_chunk_shape_stays(void **state)
{
	static const uint32_t requested[] = {3};
	struct world w;
	struct err err;
	setup(&w, 1, (uint64_t[]){100}, (uint64_t[]){10});
	w.opt.min_chunk = 80;
	w.ds->requested_chunk = requested;
	assert_int_equal(plan(&w, &err), 0);
	assert_int_equal(w.ds->grid.chunk[0], 20);
	assert_ptr_equal(w.ds->requested_chunk, requested);
	teardown(&w);
}

/* Strings count as 16 bytes. With a fill value they are not joined. */
static void strings(void **state)
{
	static uint8_t bytes[16];
	for (int filled = 0; filled < 3; filled++) {
		struct world w;
		struct err err;
		setup(&w, 1, (uint64_t[]){100}, (uint64_t[]){1});
		w.ds->type = dtype_vlen_string(tree_arena(w.im.tree), DTYPE_PAD_NULLTERM,
					       DTYPE_CSET_ASCII, NULL);
		w.ds->fill_defined = filled > 0;
		if (filled == 2)
			w.ds->fill.fixed = (struct bytes){.data = bytes, .len = sizeof(bytes)};
		w.opt.min_chunk = 160;
		assert_int_equal(plan(&w, &err), 0);
		assert_int_equal(w.ds->grid.chunk[0], filled == 2 ? 1 : 10);
		w.ds->fill.fixed = (struct bytes){0};
		teardown(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_of_an_index),
		cmocka_unit_test(no_room_for_the_bits),
		cmocka_unit_test(a_scan_is_cancelled),
		cmocka_unit_test(datasets_without_chunks_are_not_scanned),
		cmocka_unit_test(advice_for_many_small_chunks),
		cmocka_unit_test(chunks_are_joined),
		cmocka_unit_test(an_index_in_another_order_is_not_joined),
		cmocka_unit_test(a_recorded_chunk_shape_stays),
		cmocka_unit_test(strings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
