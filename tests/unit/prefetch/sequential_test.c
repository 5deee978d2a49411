/* SPDX-License-Identifier: Apache-2.0 */
/* A program that reads in file order is distinguished from one that reads datasets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <prefetch/sequential.h>

#include "fuse/read_ahead.h"

#define MIB UINT64_C(1048576)

/* The kernel's read-ahead is no pattern. */
_Static_assert((int)KERNEL_READ_AHEAD == (int)READ_AHEAD_KB * 1024, "one value");
_Static_assert((int)KERNEL_AHEAD > 2 * (int)READ_AHEAD_KB * 1024, "more than two windows");

/* 10 MiB of metadata, then a dataset of 20 MiB, then other datasets. */
static const struct sequential_file file = {.data = 10 * MIB, .second = 30 * MIB};

struct read {
	uint64_t start, n; /* n 0: the end of the list */
};

static const struct {
	const char *name;
	struct read reads[12];
	bool in_order;
} cases[] = {
	{"in large pieces", {{0, 10 * MIB}, {10 * MIB, 10 * MIB}, {20 * MIB, 16 * MIB}}, true},
	{"not far enough into the second dataset", {{0, 33 * MIB}}, false},
	{"far enough", {{0, 36 * MIB}}, true},
	{"pieces out of order",
	 {{0, MIB},
	  {2 * MIB, MIB},
	  {MIB, MIB},
	  {4 * MIB, 5 * MIB},
	  {9 * MIB, 2 * MIB},
	  {3 * MIB, MIB},
	  {11 * MIB, 25 * MIB}},
	 true},
	{"a gap that stays", {{0, MIB}, {2 * MIB, 40 * MIB}}, false},
	{"a piece far ahead ends it",
	 {{0, 20 * MIB}, {40 * MIB, MIB}, {20 * MIB, 20 * MIB}, {41 * MIB, 9 * MIB}},
	 false},
	{"again from the beginning",
	 {{0, 20 * MIB}, {40 * MIB, MIB}, {0, 20 * MIB}, {20 * MIB, 20 * MIB}},
	 true},
	{"the metadata and then a dataset", {{0, 9 * MIB}, {30 * MIB, 20 * MIB}}, false},
	{"from within the data", {{15 * MIB, 40 * MIB}}, false},
	{"read again", {{0, 36 * MIB}, {5 * MIB, MIB}}, true},
	{"not from the beginning, then the rest",
	 {{9 * MIB, 11 * MIB}, {20 * MIB, 20 * MIB}},
	 true},
};

static void only_some_programs_read_in_file_order(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sequential o = {0};
		bool in_order = false;
		print_message("%s\n", cases[i].name);
		for (const struct read *r = cases[i].reads; r->n; r++)
			in_order = sequential_read(&o, &file, r->start, r->start + r->n);
		assert_int_equal(in_order, cases[i].in_order);
	}
}

static void holes_are_passed_over(void **state)
{
	struct sequential o = {0};
	sequential_skip(&o, 5 * MIB); /* no run has begun */
	assert_false(sequential_read(&o, &file, 0, 10 * MIB));
	assert_false(sequential_read(&o, &file, 12 * MIB, 13 * MIB));
	sequential_skip(&o, 12 * MIB);
	assert_int_equal(o.end, 13 * MIB);
	sequential_skip(&o, 100 * MIB);
	assert_true(sequential_read(&o, &file, 100 * MIB, 101 * MIB));
	assert_int_equal(o.end, 101 * MIB);
}

static void more_pieces_than_there_is_room_for_begin_anew(void **state)
{
	struct sequential o = {0};
	assert_false(sequential_read(&o, &file, 0, 1));
	for (uint64_t i = 0; i <= SEQUENTIAL_PIECES; i++)
		assert_false(sequential_read(&o, &file, 2 + 2 * i, 3 + 2 * i));
	assert_int_equal(o.n, 0);
	assert_true(o.running);
	assert_int_equal(o.end, 3 + 2 * SEQUENTIAL_PIECES);
}

/* A run that begins anywhere. Each read: what sequential_run() returns, in MiB. */
static void runs_begin_anywhere(void **state)
{
	static const struct {
		uint64_t start, end, run;
	} reads[] = {
		{50, 51, 0},			       /* begins */
		{51, 52, 2}, {53, 54, 2}, {52, 53, 4}, /* out of order */
		{53, 54, 0},			       /* again */
		{57, 58, 4},			       /* ahead */
		{54, 57, 8}, {90, 91, 0},	       /* another run */
		{91, 93, 3}, {80, 81, 0},	       /* back */
		{81, 82, 2},
	};
	struct sequential o = {0};
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		print_message("%zu\n", i);
		assert_int_equal(sequential_run(&o, reads[i].start * MIB, reads[i].end * MIB),
				 reads[i].run * MIB);
	}
	assert_int_equal(o.start, 80 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_some_programs_read_in_file_order),
		cmocka_unit_test(holes_are_passed_over),
		cmocka_unit_test(runs_begin_anywhere),
		cmocka_unit_test(more_pieces_than_there_is_room_for_begin_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
