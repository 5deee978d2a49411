/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks of a dataset are in a shard, and where its index has them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <data/shard.h>

/* A grid of 5 x 7 chunks. A shard has 4 x 6 of them, and a nested shard 2 x 3. The outer shard is
 * stored with its axes exchanged. */
static const uint64_t dims[] = {5, 7}, count[] = {5, 7};
static const uint32_t chunk[] = {1, 1};
static const struct grid grid = {
	.rank = 2, .dims = dims, .chunk = chunk, .count = count, .nchunks = 35, .chunk_elems = 1};
static const uint64_t outer_span[] = {4, 6}, nested_span[] = {2, 3}, one[] = {1, 1};
static const uint32_t exchanged[] = {1, 0}, same[] = {0, 1};
static const struct shard nested = {
	.rank = 2, .span = nested_span, .inner = one, .order = same, .nchunks = 6};
static const struct shard outer = {.rank = 2,
				   .span = outer_span,
				   .inner = nested_span,
				   .order = exchanged,
				   .nchunks = 4,
				   .has_checksum = true,
				   .nested = &nested};

static uint64_t at(uint64_t row, uint64_t column)
{
	return row * count[1] + column;
}

static void an_index_has_an_entry_for_each_inner_chunk(void **state)
{
	assert_int_equal(shard_index_size(&nested), 6 * 16);
	assert_int_equal(shard_index_size(&outer), 4 * 16 + 4);
}

static void inner_chunks_are_numbered_along_the_stored_axes(void **state)
{
	/* Columns 0 to 2 are the first row of the shard as it is stored. */
	assert_int_equal(shard_inner(&outer, &grid, at(0, 0)), 0);
	assert_int_equal(shard_inner(&outer, &grid, at(1, 2)), 0);
	assert_int_equal(shard_inner(&outer, &grid, at(2, 2)), 1);
	assert_int_equal(shard_inner(&outer, &grid, at(0, 3)), 2);
	assert_int_equal(shard_inner(&outer, &grid, at(3, 5)), 3);
	assert_int_equal(shard_inner(&outer, &grid, at(4, 6)), 0);
	assert_int_equal(shard_inner(&nested, &grid, at(3, 5)), 5);
	assert_int_equal(shard_inner(&nested, &grid, at(2, 3)), 0);
	assert_int_equal(shard_inner(&nested, &grid, at(4, 4)), 1);
}

static void a_shard_is_named_by_its_first_chunk(void **state)
{
	assert_int_equal(shard_first(&outer, &grid, at(3, 5)), at(0, 0));
	assert_int_equal(shard_first(&outer, &grid, at(3, 6)), at(0, 6));
	assert_int_equal(shard_first(&outer, &grid, at(4, 5)), at(4, 0));
	assert_int_equal(shard_first(&nested, &grid, at(3, 5)), at(2, 3));
}

/* Only the chunks that the grid has: the last shards overlap its edges. */
static void the_chunks_of_a_shard_are_those_of_the_grid(void **state)
{
	bool seen[35] = {false};
	for (uint64_t first = 0; first < grid.nchunks; first++) {
		uint64_t number = first;
		if (shard_first(&outer, &grid, first) != first)
			continue;
		do {
			assert_false(seen[number]);
			seen[number] = true;
			assert_int_equal(shard_first(&outer, &grid, number), first);
		} while (shard_next(&outer, &grid, &number));
	}
	for (size_t i = 0; i < 35; i++)
		assert_true(seen[i]);
}

/* The dataset of a scalar array has a grid of one dimension. */
static void a_shard_without_dimensions_has_one_chunk(void **state)
{
	static const uint64_t single[] = {1};
	static const struct grid scalar = {.rank = 1,
					   .dims = single,
					   .chunk = chunk,
					   .count = single,
					   .nchunks = 1,
					   .chunk_elems = 1};
	static const struct shard s = {.nchunks = 1};
	uint64_t number = 0;
	assert_int_equal(shard_inner(&s, &scalar, 0), 0);
	assert_int_equal(shard_first(&s, &scalar, 0), 0);
	assert_false(shard_next(&s, &scalar, &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_index_has_an_entry_for_each_inner_chunk),
		cmocka_unit_test(inner_chunks_are_numbered_along_the_stored_axes),
		cmocka_unit_test(a_shard_is_named_by_its_first_chunk),
		cmocka_unit_test(the_chunks_of_a_shard_are_those_of_the_grid),
		cmocka_unit_test(a_shard_without_dimensions_has_one_chunk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
