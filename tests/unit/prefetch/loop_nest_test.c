/* SPDX-License-Identifier: Apache-2.0 */
/* Loop nests step by step: levels, runs of other lengths, moves; and the complexity of strides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "prefetch/loop_nest.h"

static const uint64_t line[] = {10000000};
static const struct chunk_grid grid = {1, line};

/* Checks that the nest predicts the chunks of the list, which ends with 0. */
static void assert_expected(const struct loop_nest *t, const uint64_t *chunks, bool ends)
{
	uint64_t n = 0, number = 0;
	for (; chunks[n]; n++) {
		assert_true(loop_nest_expect(t, &grid, n, &number));
		assert_int_equal(number, chunks[n]);
	}
	assert_int_equal(loop_nest_expect(t, &grid, n, &number), !ends);
}

#define EXPECT(t, ends, ...) assert_expected(t, (const uint64_t[]){__VA_ARGS__, 0}, ends)

static void strides_between_near_chunks(void **state)
{
	struct loop_nest t;
	loop_nest_init(&t, 20, 22);
	assert_int_equal(loop_nest_strides(&t, &grid, 100, 100 + 2 * LOOP_NEST_NEAR),
			 LOOP_NEST_NEAR);
	assert_int_equal(loop_nest_strides(&t, &grid, 100 + 2 * LOOP_NEST_NEAR, 100),
			 -LOOP_NEST_NEAR);
	assert_int_equal(loop_nest_strides(&t, &grid, 100, 102 + 2 * LOOP_NEST_NEAR), 0);
	assert_int_equal(loop_nest_strides(&t, &grid, 100, 103), 0);
	assert_int_equal(loop_nest_strides(&t, &grid, 100, 100), 0);
}

/* Chunks 0 and 1, 10 and 11, 100 and so on. */
static void a_nest_has_six_levels_at_most(void **state)
{
	struct loop_nest t;
	uint64_t start = 1;
	loop_nest_init(&t, 0, 1);
	for (unsigned int n = 2; n <= LOOP_NEST_LEVELS; n++) {
		start *= 10;
		loop_nest_restart(&t, start, 1);
		assert_int_equal(t.n, n);
		assert_int_equal(loop_nest_run_start(&t), start);
		for (unsigned int i = 2; i < 1U << (n - 1); i++) /* to the end of the lower loops */
			loop_nest_step(&t, &grid, 1);
	}
	loop_nest_restart(&t, 10 * start, 1);
	assert_in_range(t.n, 2, LOOP_NEST_LEVELS);
	assert_int_equal(loop_nest_run_start(&t), 10 * start);
	assert_int_equal(t.newest, 10 * start + 1);
}

/* Runs of 0, 1, 2 and 10, 11, 12. */
static void two_runs(struct loop_nest *t)
{
	loop_nest_init(t, 0, 1);
	loop_nest_step(t, &grid, 1);
	loop_nest_restart(t, 10, 1);
	EXPECT(t, true, 12, 20, 21, 22);
	loop_nest_step(t, &grid, 1);
}

static void a_stride_that_was_seen_twice_continues(void **state)
{
	struct loop_nest t;
	int steps = 0;
	two_runs(&t);
	EXPECT(&t, true, 20, 21, 22);
	loop_nest_step(&t, &grid, 1);
	EXPECT(&t, false, 21, 22, 30, 31, 32, 40);
	assert_true(loop_nest_find(&t, &grid, 31, &steps));
	assert_int_equal(steps, 4);
	assert_false(loop_nest_find(&t, &grid, 32, &steps));
	assert_true(loop_nest_find(&t, &grid, 11, &steps));
	assert_int_equal(steps, -2);
	assert_false(loop_nest_find(&t, &grid, 13, &steps));
	/* The run ends early: the next start is not the end of the loop above. */
	loop_nest_restart(&t, 30, 1);
	assert_int_equal(t.n, 2);
}

static void a_longer_run_forgets_the_levels_above(void **state)
{
	struct loop_nest t;
	two_runs(&t);
	assert_false(loop_nest_correct_count(&t, &grid, 14));
	assert_true(loop_nest_correct_count(&t, &grid, 13));
	assert_int_equal(t.n, 1);
	EXPECT(&t, false, 14, 15, 16);
	assert_int_equal(loop_nest_run_start(&t), 10);
}

static void a_shorter_run_corrects_the_count(void **state)
{
	struct loop_nest t;
	loop_nest_init(&t, 0, 1);
	loop_nest_step(&t, &grid, 2);
	loop_nest_restart(&t, 10, 1);
	assert_true(loop_nest_correct_count(&t, &grid, 20));
	EXPECT(&t, false, 21, 30, 31, 40);
}

/* Runs that end early begin at 10, 25, 40. */
static void a_nest_moves_and_learns_another_stride(void **state)
{
	struct loop_nest t;
	loop_nest_init(&t, 0, 1);
	loop_nest_step(&t, &grid, 1);
	loop_nest_restart(&t, 10, 1);
	loop_nest_restart(&t, 25, 1);
	EXPECT(&t, true, 27);
	loop_nest_restart(&t, 40, 1);
	EXPECT(&t, false, 42, 55, 56, 57, 70);
}

static void a_run_may_begin_earlier(void **state)
{
	struct loop_nest t;
	loop_nest_init(&t, 5, 6);
	assert_false(loop_nest_begin_earlier(&t, &grid, 5 - LOOP_NEST_AHEAD - 1));
	assert_true(loop_nest_begin_earlier(&t, &grid, 3));
	assert_int_equal(loop_nest_run_start(&t), 3);
	EXPECT(&t, false, 7, 8);
	/* The second run: chunks 14 and 15, then 13. */
	loop_nest_restart(&t, 14, 1);
	assert_true(loop_nest_begin_earlier(&t, &grid, 13));
	assert_int_equal(loop_nest_run_start(&t), 13);
	EXPECT(&t, true, 16, 23, 24, 25, 26);
}

static void complexity_of_a_difference(void **state)
{
	static const uint64_t counts[] = {2, 100, 1};
	const struct chunk_grid g = {3, counts};
	assert_true(grid_vector_simpler(&g, 0, 1) == 2 * 2);	 /* one of two dimensions */
	assert_true(grid_vector_simpler(&g, 7, 4) == 3 * 2 * 2); /* 3 either way */
	assert_true(grid_vector_simpler(&g, 0, 101) == 2 * 2);	 /* both dimensions */
	assert_true(grid_vector_simpler(&g, 0, 99) == 200);	 /* not more than the chunks */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strides_between_near_chunks),
		cmocka_unit_test(a_nest_has_six_levels_at_most),
		cmocka_unit_test(a_stride_that_was_seen_twice_continues),
		cmocka_unit_test(a_longer_run_forgets_the_levels_above),
		cmocka_unit_test(a_shorter_run_corrects_the_count),
		cmocka_unit_test(a_nest_moves_and_learns_another_stride),
		cmocka_unit_test(a_run_may_begin_earlier),
		cmocka_unit_test(complexity_of_a_difference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
