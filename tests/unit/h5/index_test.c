/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunk indexes of files of HDF5 1.10.8 (tests/data/indexes.py): every range of small datasets,
 * and what a range of a large one reads. Version 1 B-trees are rendered.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <h5/btree1.h>
#include <h5/claims.h>
#include <h5/index.h>
#include "mem_src.h"

#include "index_fixture.h"
#include "shape_arena.h"

enum { BT1_ADDR = 4096, RANGES = 200 };

/* As tests/data/indexes.py computes them. */
static uint16_t value_of(uint64_t number)
{
	return (uint16_t)(number * 7 % 65521 + 1);
}

struct found {
	const struct mem_src *m;
	uint8_t *seen; /* for each chunk of the grid */
	uint64_t n;
};

static int note(void *ctx, const struct h5_chunk *chunk, struct err *err)
{
	struct found *found = ctx;
	struct cursor c = cursor_of(found->m->bytes + chunk->addr, 2);
	assert_int_equal(chunk->size, 2);
	assert_int_equal(chunk->filter_mask, 0);
	uint16_t value = cur_u16(&c);
	if (value && value != value_of(chunk->number)) /* 0: allocated early, but not written */
		fail_msg("chunk %llu has the value %u", (unsigned long long)chunk->number, value);
	found->seen[chunk->number]++;
	found->n++;
	return 0;
}

static int walk(const struct mem_src *m, const struct chunked *d, uint64_t first, uint64_t end,
		struct found *found, struct err *err)
{
	*found = (struct found){.m = m, .seen = calloc(1, (size_t)d->grid.nchunks + 1)};
	assert_non_null(found->seen);
	return h5_index_walk(&m->file, &d->layout, &d->space, &d->grid, d->filtered, first, end,
			     note, found, err);
}

static const struct row {
	const char *group, *name;
	enum h5_index_type index;
	uint64_t chunks;
} rows[] = {
	{"simple", "one", H5_INDEX_SINGLE, 1},
	{"simple, filtered", "one", H5_INDEX_SINGLE, 1},
	{"simple", "exact", H5_INDEX_IMPLICIT, 12},
	{"simple", "larger", H5_INDEX_IMPLICIT, 12},
	{"fixed", "small", H5_INDEX_FIXED_ARRAY, 24},
	{"fixed, filtered", "small", H5_INDEX_FIXED_ARRAY, 24},
	{"fixed", "larger", H5_INDEX_FIXED_ARRAY, 30},
	{"fixed, filtered", "larger", H5_INDEX_FIXED_ARRAY, 30},
	{"fixed", "paged", H5_INDEX_FIXED_ARRAY, 1500},
	{"fixed, filtered", "paged", H5_INDEX_FIXED_ARRAY, 1500},
	{"fixed", "unwritten", H5_INDEX_FIXED_ARRAY, 0},
	{"fixed, filtered", "unwritten", H5_INDEX_FIXED_ARRAY, 0},
	{"extensible", "small", H5_INDEX_EXTENSIBLE_ARRAY, 8},
	{"extensible, filtered", "small", H5_INDEX_EXTENSIBLE_ARRAY, 8},
	{"extensible", "middle", H5_INDEX_EXTENSIBLE_ARRAY, 466},
	{"extensible, filtered", "middle", H5_INDEX_EXTENSIBLE_ARRAY, 466},
	{"extensible", "second", H5_INDEX_EXTENSIBLE_ARRAY, 210},
	{"extensible, filtered", "second", H5_INDEX_EXTENSIBLE_ARRAY, 210},
	{"extensible", "first", H5_INDEX_EXTENSIBLE_ARRAY, 210},
	{"extensible, filtered", "first", H5_INDEX_EXTENSIBLE_ARRAY, 210},
	{"extensible", "paged", H5_INDEX_EXTENSIBLE_ARRAY, 10},
	{"extensible, filtered", "paged", H5_INDEX_EXTENSIBLE_ARRAY, 10},
	{"extensible", "third", H5_INDEX_EXTENSIBLE_ARRAY, 54},
	{"extensible, filtered", "third", H5_INDEX_EXTENSIBLE_ARRAY, 54},
	{"tree", "small", H5_INDEX_BTREE2, 8},
	{"tree, filtered", "small", H5_INDEX_BTREE2, 8},
	{"tree", "two levels", H5_INDEX_BTREE2, 514},
	{"tree, filtered", "two levels", H5_INDEX_BTREE2, 514},
};

/* Each chunk is found once in the whole index, and in a range if and only if it is in it. */
static void check_dataset(struct mem_src *m, const struct row *row)
{
	const struct chunked d = open_chunked(&m->file, row->group, row->name);
	struct err err = ERR_INIT;
	struct found all, part;
	uint32_t seed = 1;
	assert_int_equal(d.layout.index, row->index);
	m->file.claims = h5_claims_new(NULL);
	if (walk(m, &d, 0, UINT64_MAX, &all, &err) || h5_claims_check(m->file.claims, &err))
		fail_msg("%s/%s: %s", row->group, row->name, err.msg);
	h5_claims_free(m->file.claims);
	m->file.claims = NULL;
	if (all.n != row->chunks)
		fail_msg("%s/%s: %llu chunks", row->group, row->name, (unsigned long long)all.n);
	for (int i = 0; i < RANGES; i++) {
		seed = seed * 1103515245 + 12345;
		uint64_t first = (seed >> 8) % (d.grid.nchunks + 1);
		seed = seed * 1103515245 + 12345;
		uint64_t end = first + (seed >> 8) % (i % 2 ? 9 : d.grid.nchunks + 2);
		if (walk(m, &d, first, end, &part, &err))
			fail_msg("%s/%s: %s", row->group, row->name, err.msg);
		for (uint64_t k = 0; k < d.grid.nchunks; k++)
			if (part.seen[k] != (k >= first && k < end ? all.seen[k] : 0))
				fail_msg("%s/%s: chunk %d of [%d, %d)", row->group, row->name,
					 (int)k, (int)first, (int)end);
		free(part.seen);
	}
	for (uint64_t k = 0; k < d.grid.nchunks; k++)
		assert_true(all.seen[k] <= 1);
	free(all.seen);
}

static void test_indexes_of_libhdf5(void **state)
{
	struct bytes image = data_file("indexes.h5");
	struct mem_src m;
	mem_src_init(&m, image.data, image.len);
	assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_dataset(&m, &rows[i]);
	bytes_release(&image);
}

/* A range reads the blocks that can hold its chunks, and nothing else. */
static void test_reads(void **state)
{
	static const struct {
		const char *group, *name;
		uint64_t first, end, reads;
	} ranges[] = {
		{"fixed", "paged", 0, 3300, 5},	       /* header, block, 3 of 4 pages are in use */
		{"fixed", "paged", 1024, 2048, 2},     /* no page of them is in use */
		{"fixed", "paged", 2048, 2049, 3},     /* header, block, page */
		{"fixed", "paged", 0, 1, 3},	       /* header, block, page */
		{"extensible", "middle", 0, 4, 2},     /* header, index block */
		{"extensible", "middle", 3, 5, 3},     /* and a data block */
		{"extensible", "middle", 500, 501, 4}, /* and a super block */
		{"extensible", "paged", 131061, 131062, 5}, /* super and data block, page */
		{"extensible", "paged", 137000, 137001, 3}, /* the super block has no data block */
		{"extensible", "second", 0, 1, 2},	    /* header, index block */
		{"tree", "two levels", 0, 600, 9},	    /* header, root, leaves */
		{"tree", "two levels", 300, 301, 3},	    /* header, root, leaf */
		{"tree", "two levels", 0, 0, 0},
		{"simple", "exact", 0, 12, 0},
	};
	struct bytes image = data_file("indexes.h5");
	struct mem_src m;
	mem_src_init(&m, image.data, image.len);
	assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct chunked d = open_chunked(&m.file, ranges[i].group, ranges[i].name);
		struct found found;
		m.reads = 0;
		assert_int_equal(walk(&m, &d, ranges[i].first, ranges[i].end, &found, NULL), 0);
		if (m.reads != ranges[i].reads)
			fail_msg("%s [%d, %d): %zu reads", ranges[i].name, (int)ranges[i].first,
				 (int)ranges[i].end, m.reads);
		free(found.seen);
	}
	bytes_release(&image);
}

/* Chunks outside of the extent are left out. */
static void test_smaller_extent(void **state)
{
	struct bytes image = data_file("indexes.h5");
	struct mem_src m;
	mem_src_init(&m, image.data, image.len);
	assert_int_equal(h5_file_open(&m.file, &m.source, NULL), 0);
	for (size_t i = 2; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct chunked d = open_chunked(&m.file, rows[i].group, rows[i].name);
		struct chunked small = d;
		uint64_t dims[DSPACE_MAX_RANK], chunk[DSPACE_MAX_RANK], expected = 0;
		struct found all, part;
		for (uint32_t k = 0; k < d.grid.rank; k++) {
			chunk[k] = d.grid.chunk[k];
			dims[k] = d.space.dims[k] - (d.space.dims[k] > 1);
		}
		small.space.dims = dims;
		/* The values in the file have the numbers of the first dimension only. */
		if (d.grid.rank > 1)
			continue;
		assert_int_equal(
			grid_init(shape_arena(), &small.grid, d.grid.rank, dims, chunk, NULL), 0);
		assert_int_equal(walk(&m, &d, 0, UINT64_MAX, &all, NULL), 0);
		assert_int_equal(walk(&m, &small, 0, UINT64_MAX, &part, NULL), 0);
		for (uint64_t k = 0; k < small.grid.nchunks; k++)
			expected += all.seen[k];
		assert_int_equal(part.n, expected);
		free(all.seen);
		free(part.seen);
	}
	bytes_release(&image);
}

/* ---- version 1 B-trees ---- */

static void bt1_chunk(void *ctx, uint64_t i, struct h5_bt1_chunk *out)
{
	const struct grid *g = ctx;
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(g, i, coords);
	*out = (struct h5_bt1_chunk){.size = 2, .addr = 2 * i};
	for (uint32_t d = 0; d < g->rank; d++)
		out->offset[d] = coords[d] * g->chunk[d];
}

static void bt1_end(void *ctx, struct h5_bt1_chunk *out)
{
	bt1_chunk(ctx, ((const struct grid *)ctx)->nchunks - 1, out);
	out->offset[0]++;
}

static int count(void *ctx, const struct h5_chunk *chunk, struct err *err)
{
	uint64_t *n = ctx;
	assert_int_equal(chunk->addr, 2 * chunk->number);
	return ++*n == 0;
}

struct rendered {
	struct chunked d;
	struct h5_bt1 tree;
	struct source source;
	struct h5_file file;
};

static int rendered_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct rendered *r = ctx;
	assert_true(offset >= BT1_ADDR);
	h5_bt1_read(&r->tree, offset - BT1_ADDR, buf, n);
	return 0;
}

/* A file that has only the index of rows * cols chunks. */
static void render(struct rendered *r, uint64_t rows_n, uint64_t cols)
{
	static const uint64_t chunk[2] = {2, 1};
	const uint64_t dims[2] = {rows_n * 2, cols};
	*r = (struct rendered){
		.d.layout = {.cls = LAYOUT_CHUNKED, .addr = BT1_ADDR, .rank = 2, .elem_size = 1}};
	assert_int_equal(dspace_simple(shape_arena(), &r->d.space, 2, dims, NULL, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &r->d.grid, 2, dims, chunk, NULL), 0);
	r->tree = (struct h5_bt1){.rank = 2,
				  .elem_size = 1,
				  .n = r->d.grid.nchunks,
				  .addr = BT1_ADDR,
				  .chunk = bt1_chunk,
				  .end = bt1_end,
				  .ctx = &r->d.grid};
	r->source = (struct source){
		.size = BT1_ADDR + h5_bt1_size(2, r->tree.n), .read_at = rendered_read, .ctx = r};
	r->file = h5_file_of(&r->source);
}

static uint64_t walk_rendered(struct rendered *r, uint64_t first, uint64_t end)
{
	uint64_t n = 0;
	struct err err = ERR_INIT;
	r->source.reads = 0;
	if (h5_index_walk(&r->file, &r->d.layout, &r->d.space, &r->d.grid, false, first, end, count,
			  &n, &err))
		fail_msg("%s", err.msg);
	return n;
}

static void test_btree1(void **state)
{
	struct rendered r;
	render(&r, 300, 331);
	const uint64_t n = r.d.grid.nchunks;
	assert_int_equal(walk_rendered(&r, 0, UINT64_MAX), n);
	assert_int_equal(r.source.reads, h5_bt1_size(2, n) / h5_bt1_node_size(2));
	for (uint64_t first = 0; first < n; first += 977) {
		assert_int_equal(walk_rendered(&r, first, first + 1), 1);
		assert_true(r.source.reads <= 4); /* a leaf and the nodes above it */
		const uint64_t end = first + first % 1999;
		assert_int_equal(walk_rendered(&r, first, end), min_u64(end, n) - first);
		assert_true(r.source.reads <= 2 * 4 + (end - first) / 64);
	}
}

/* Damaged chunks. */
static void test_damaged_chunks(void **state)
{
	struct rendered r;
	uint64_t n = 0;
	struct err err = ERR_INIT;
	render(&r, 3, 3);
	r.d.layout.elem_size = 2; /* a chunk has 4 bytes, but the index says 2 */
	assert_int_equal(h5_index_walk(&r.file, &r.d.layout, &r.d.space, &r.d.grid, false, 0, 9,
				       count, &n, &err),
			 -EIO);
	assert_string_equal(err.msg,
			    "chunk 0 at 0 (2 bytes): the size is wrong for a chunk without "
			    "filters");
	assert_int_equal(h5_index_walk(&r.file, &r.d.layout, &r.d.space, &r.d.grid, true, 0, 9,
				       count, &n, &err),
			 0);
	assert_int_equal(n, 9);
	r.d.layout.rank = 1;
	assert_int_equal(h5_index_walk(&r.file, &r.d.layout, &r.d.space, &r.d.grid, true, 0, 9,
				       count, &n, &err),
			 -EIO);
	r.d.layout = (struct h5_layout){.cls = LAYOUT_CHUNKED,
					.addr = r.source.size - 1,
					.rank = 2,
					.elem_size = 1,
					.index = H5_INDEX_IMPLICIT};
	assert_int_equal(h5_index_walk(&r.file, &r.d.layout, &r.d.space, &r.d.grid, false, 0, 9,
				       count, &n, &err),
			 -EIO);
	assert_non_null(strstr(err.msg, "outside of the file"));
	r.d.layout.index = H5_INDEX_SINGLE;
	assert_int_equal(h5_index_walk(&r.file, &r.d.layout, &r.d.space, &r.d.grid, false, 0, 9,
				       count, &n, &err),
			 -EIO);
	assert_non_null(strstr(err.msg, "the dataset has 9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_indexes_of_libhdf5), cmocka_unit_test(test_reads),
		cmocka_unit_test(test_smaller_extent),	   cmocka_unit_test(test_btree1),
		cmocka_unit_test(test_damaged_chunks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
