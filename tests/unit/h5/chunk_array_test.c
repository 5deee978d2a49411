/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a range of chunks, compared with a list of all of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "h5/chunk_array.h"
#include "shape_arena.h"

static const struct shape {
	uint32_t rank, slowest;
	uint64_t count[4], max[4]; /* in chunks */
} shapes[] = {
	{1, 0, {1}, {1}},
	{1, 0, {7}, {9}},
	{2, 0, {3, 4}, {3, 4}},
	{2, 0, {3, 4}, {DSPACE_UNLIMITED, 6}},
	{2, 1, {3, 4}, {5, DSPACE_UNLIMITED}},
	{3, 0, {2, 3, 4}, {4, 3, 5}},
	{3, 1, {2, 3, 4}, {2, DSPACE_UNLIMITED, 5}},
	{3, 2, {3, 1, 4}, {4, 2, DSPACE_UNLIMITED}},
	{4, 2, {2, 1, 3, 2}, {3, 1, DSPACE_UNLIMITED, 2}},
};

static struct index_walk walk_of(const struct shape *s, struct grid *g, struct dspace *space)
{
	static const uint64_t chunk[4] = {1, 1, 1, 1};
	assert_int_equal(grid_init(shape_arena(), g, s->rank, s->count, chunk, NULL), 0);
	assert_int_equal(dspace_simple(shape_arena(), space, s->rank, s->count, s->max, NULL), 0);
	struct index_walk w = {.space = space, .grid = g};
	uint64_t stride = 1;
	for (uint32_t d = s->rank; d-- > 0; stride *= g->count[d])
		w.stride[d] = stride;
	return w;
}

/* The element of a chunk, from the definition. */
static uint64_t element_of(const struct shape *s, const uint64_t *coords)
{
	uint64_t element = coords[s->slowest];
	for (uint32_t d = 0; d < s->rank; d++)
		if (d != s->slowest)
			element = element * s->max[d] + coords[d];
	return element;
}

/* All ranges: the runs give each chunk of the range once, with its element, in ascending order. */
static void test_all_ranges(void **state)
{
	struct chunk_array *a = malloc(sizeof(*a));
	const struct h5_layout layout = {.addr = 0};
	assert_non_null(a);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct grid g;
		struct dspace space;
		struct index_walk w = walk_of(&shapes[i], &g, &space);
		w.layout = &layout;
		for (uint64_t range = 0; range < g.nchunks * g.nchunks; range++) {
			w.first = range / g.nchunks;
			w.end = range % g.nchunks + 1;
			if (w.first >= w.end)
				continue;
			grid_coords(&g, w.first, w.lo);
			grid_coords(&g, w.end - 1, w.hi);
			assert_int_equal(array_init(a, &w, "test", shapes[i].slowest, NULL), 0);
			uint64_t seen = 0, n = 0, at = 0, last = 0;
			struct array_run run;
			for (; array_next(a, at, &run); at = run.element + run.n) {
				assert_true(run.element >= at && run.n > 0);
				assert_int_equal(array_wanted(a, at, run.element), false);
				assert_true(array_wanted(a, at, run.element + 1));
				for (uint64_t k = 0; k < run.n; k++, n++) {
					uint64_t number = run.number + k * run.step, coords[4];
					assert_true(number >= w.first && number < w.end);
					grid_coords(&g, number, coords);
					last = element_of(&shapes[i], coords);
					assert_int_equal(run.element + k, last);
					seen |= UINT64_C(1) << number;
				}
			}
			assert_int_equal(n, w.end - w.first);
			assert_int_equal(__builtin_popcountll(seen), n);
			assert_int_equal(a->needed, last + 1);
		}
	}
	free(a);
}

static void test_too_many_elements(void **state)
{
	const struct shape s = {3, 0, {2, 3, 4}, {4, UINT64_C(1) << 40, UINT64_C(1) << 30}};
	struct chunk_array *a = malloc(sizeof(*a));
	struct grid g;
	struct dspace space;
	const struct h5_layout layout = {.addr = 0};
	struct index_walk w = walk_of(&s, &g, &space);
	w.layout = &layout;
	assert_int_equal(array_init(a, &w, "test", 0, NULL), -EOPNOTSUPP);
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_ranges),
		cmocka_unit_test(test_too_many_elements),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
