/* SPDX-License-Identifier: Apache-2.0 */
/* Chunk grids: numbers and coordinates, edges, limits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <data/dspace.h>

#include "shape_arena.h"

static void limits(void **state)
{
	static const uint64_t two62 = UINT64_C(1) << 62, two63 = UINT64_C(1) << 63;
	const struct {
		const char *name;
		uint32_t rank;
		uint64_t dims[3], chunk[3];
		int result;
		uint64_t nchunks, chunk_elems;
	} rows[] = {
		{"exact", 2, {4, 6}, {2, 3}, 0, 4, 6},
		{"edges", 2, {5, 7}, {2, 3}, 0, 9, 6},
		{"one chunk larger than the extent", 1, {3}, {10}, 0, 1, 10},
		{"empty", 2, {0, 7}, {2, 3}, 0, 0, 6},
		{"2^62 chunks", 1, {two62}, {1}, 0, two62, 1},
		{"2^62 chunks of two", 1, {two63}, {2}, 0, two62, 2},
		{"largest chunk", 1, {two62}, {UINT32_MAX}, 0, 1073741825, UINT32_MAX},
		{"many but empty", 3, {two63, two63, 0}, {1, 1, 1}, 0, 0, 1},
		{"more than 2^62 chunks", 1, {two62 + 1}, {1}, -E2BIG, 0, 0},
		{"2^64 chunks", 2, {two62, 4}, {1, 1}, -E2BIG, 0, 0},
		{"zero chunk dimension", 2, {4, 4}, {2, 0}, -EINVAL, 0, 0},
		{"chunk of 2^32", 2, {4, 4}, {65536, 65536}, -E2BIG, 0, 0},
		{"chunk dimension of 2^32", 1, {4}, {UINT64_C(1) << 32}, -E2BIG, 0, 0},
		{"product of chunk dimensions wraps", 2, {4, 4}, {two63, 2}, -E2BIG, 0, 0},
		{"rank 0", 0, {0}, {0}, -E2BIG, 0, 0},
		{"rank 33", 33, {0}, {0}, -E2BIG, 0, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = ERR_INIT;
		struct grid g;
		int r = grid_init(shape_arena(), &g, rows[i].rank, rows[i].dims, rows[i].chunk,
				  &err);
		if (r != rows[i].result)
			fail_msg("%s: %d (%s)", rows[i].name, r, err.msg);
		assert_int_equal(err.code, r);
		if (r < 0)
			continue;
		assert_true(g.nchunks == rows[i].nchunks);
		assert_true(g.chunk_elems == rows[i].chunk_elems);
	}
}

static void numbers_are_row_major(void **state)
{
	static const uint64_t dims[] = {5, 7, 3}, chunk[] = {2, 3, 3};
	uint64_t number = 0, coords[3];
	struct grid g;
	assert_int_equal(grid_init(shape_arena(), &g, 3, dims, chunk, NULL), 0);
	for (uint64_t i = 0; i < 3; i++) {
		for (uint64_t j = 0; j < 3; j++, number++) {
			grid_coords(&g, number, coords);
			assert_true(coords[0] == i && coords[1] == j && coords[2] == 0);
			assert_true(grid_number(&g, coords) == number);
		}
	}
	assert_true(number == g.nchunks);
}

/* Each element is in one chunk, at the index that its coordinates in the chunk give. */
static void elements_are_found(void **state)
{
	static const uint64_t dims[] = {5, 7, 3}, chunk[] = {2, 3, 2};
	uint64_t element = 0, number;
	struct grid g;
	assert_int_equal(grid_init(shape_arena(), &g, 3, dims, chunk, NULL), 0);
	for (uint64_t i = 0; i < 5; i++)
		for (uint64_t j = 0; j < 7; j++)
			for (uint64_t k = 0; k < 3; k++, element++) {
				const uint64_t coords[] = {i / 2, j / 3, k / 2};
				assert_int_equal(grid_find(&g, element, &number),
						 (i % 2 * 3 + j % 3) * 2 + k % 2);
				assert_true(number == grid_number(&g, coords));
			}
}

static void the_last_of_very_many(void **state)
{
	static const uint64_t dims[] = {UINT64_C(1) << 31, (UINT64_C(1) << 32) - 1};
	static const uint64_t chunk[] = {1, 2};
	uint64_t coords[2];
	struct grid g;
	assert_int_equal(grid_init(shape_arena(), &g, 2, dims, chunk, NULL), 0);
	assert_true(g.nchunks == UINT64_C(1) << 62);
	grid_coords(&g, g.nchunks - 1, coords);
	assert_true(coords[0] == dims[0] - 1);
	assert_true(coords[1] == (UINT64_C(1) << 31) - 1);
	assert_true(grid_number(&g, coords) == g.nchunks - 1);
}

/* Chunks of a cut dataset are single runs of elements within the limit. */
static void cuts(void **state)
{
	static const uint64_t mib4 = 4 << 20;
	static const struct {
		const char *name;
		uint32_t rank;
		uint64_t dims[3], elem_size, limit, chunk[3];
	} rows[] = {
		{"all of it fits", 2, {1024, 1024}, 4, mib4, {1024, 1024}},
		{"whole rows", 2, {1025, 1024}, 4, mib4, {1024, 1024}},
		{"whole rows, a rest is left", 2, {1000, 3000}, 8, mib4, {174, 3000}},
		{"parts of a row", 2, {10, 2000000}, 8, mib4, {1, 524288}},
		{"planes", 3, {100, 64, 1024}, 8, mib4, {8, 64, 1024}},
		{"rows of a plane", 3, {100, 6400, 1024}, 8, mib4, {1, 512, 1024}},
		{"a row, but not two", 2, {10, 400000}, 8, mib4, {1, 400000}},
		{"an element is larger than the limit", 2, {3, 4}, 5 << 20, mib4, {1, 1}},
		{"an element of the limit", 2, {3, 4}, 4 << 20, mib4, {1, 1}},
		{"one column", 2, {10000000, 1}, 1, mib4, {4194304, 1}},
		{"limit over 2^32 elements",
		 2,
		 {UINT64_C(1) << 40, 2},
		 1,
		 UINT64_MAX,
		 {UINT32_MAX / 2, 2}},
		{"element size 0", 1, {10}, 0, 4, {4}},
		{"limit 0", 2, {10, 10}, 1, 0, {1, 1}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t chunk[3] = {0};
		struct grid g;
		grid_cut(rows[i].rank, rows[i].dims, rows[i].elem_size, rows[i].limit, chunk);
		for (uint32_t d = 0; d < rows[i].rank; d++)
			if (chunk[d] != rows[i].chunk[d])
				fail_msg("%s: %llu in dimension %u", rows[i].name,
					 (unsigned long long)chunk[d], d);
		assert_int_equal(
			grid_init(shape_arena(), &g, rows[i].rank, rows[i].dims, chunk, NULL), 0);
	}
}

static void chunks_in_the_order_of_the_elements(void **state)
{
	static const struct {
		uint32_t rank;
		uint64_t dims[3], chunk[3];
		bool is_linear;
	} rows[] = {
		{1, {10}, {4}, true},
		{1, {10}, {40}, true},
		{1, {10}, {1}, true},
		{2, {10, 3}, {4, 3}, true},
		{2, {10, 3}, {4, 4}, false}, /* a row of the chunk is longer than the dataset */
		{2, {10, 3}, {4, 1}, false},
		{2, {10, 4}, {1, 2}, true},
		{2, {10, 5}, {1, 2}, false}, /* a partial chunk in each row */
		{2, {1, 5}, {1, 2}, true},
		{2, {1, 8}, {2, 8}, true},
		{3, {2, 6, 7}, {1, 3, 7}, true},
		{3, {2, 6, 7}, {2, 3, 7}, false},
		{3, {2, 6, 7}, {1, 1, 1}, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct grid g;
		assert_int_equal(grid_init(shape_arena(), &g, rows[i].rank, rows[i].dims,
					   rows[i].chunk, NULL),
				 0);
		if (grid_is_linear(&g) != rows[i].is_linear)
			fail_msg("row %zu", i);
	}
}

static void shapes_of_chunks_are_compared(void **state)
{
	static const uint64_t dims[] = {6, 7}, more[] = {60, 7}, chunk[] = {2, 3}, other[] = {2, 4};
	struct grid a, b, c, d;
	assert_int_equal(grid_init(shape_arena(), &a, 2, dims, chunk, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &b, 2, more, chunk, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &c, 2, dims, other, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &d, 1, dims, chunk, NULL), 0);
	assert_true(grid_same_chunks(&a, &b));
	assert_false(grid_same_chunks(&a, &c));
	assert_false(grid_same_chunks(&a, &d));
	struct arena *small = arena_new(8);
	assert_int_equal(grid_init(small, &a, 2, dims, chunk, NULL), -ENOMEM);
	arena_free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_of_chunks_are_compared),
		cmocka_unit_test(limits),
		cmocka_unit_test(numbers_are_row_major),
		cmocka_unit_test(elements_are_found),
		cmocka_unit_test(the_last_of_very_many),
		cmocka_unit_test(cuts),
		cmocka_unit_test(chunks_in_the_order_of_the_elements),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
