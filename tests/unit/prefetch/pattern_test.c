/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pattern recognises loop nests over grids: in order and out of order, many at a time, and with
 * other chunks between them. The tests count how soon it does. It recognises none in random reads.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "orders.h"
#include "sampling.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

struct traces {
	struct trace a, b;
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct traces));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void make(struct trace *t, const struct order *o)
{
	trace_init(t, o->rank, o->counts);
	trace_loops(t, o->loops, o->n);
}

static void at_most(const char *name, const char *what, size_t n, size_t most)
{
	if (n > most)
		fail_msg("%s: %s %zu, at most %zu", name, what, n, most);
}

static void precise(const char *name, const struct outcome *o, unsigned int percent)
{
	if (o->prefetched > 100 && 100 * o->useful < percent * o->prefetched)
		fail_msg("%s: %zu of %zu prefetched chunks are read", name, o->useful,
			 o->prefetched);
}

/* The pattern recognises the first loop after three chunks, and each further loop after two more.
 * Later it misses no chunk, and 95 of 100 predicted chunks are read. */
static void in_order(const struct order *o, const struct trace *t, size_t tail, size_t more)
{
	const struct outcome all = trace_run(t, 0, tail, TRACE_DEPTH);
	const struct outcome later = trace_run(t, t->n / 4, tail, TRACE_DEPTH);
	const bool narrow = o->flags & NARROW;
	at_most(o->name, "missed", all.missed, 1 + 2 * o->n + (narrow ? 5 : 0) + more);
	at_most(o->name, "missed later", later.missed, 0);
	precise(o->name, &later, narrow ? 85 : 95);
}

static void loops_are_learned(void **state)
{
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(orders); i++) {
		make(&t->a, &orders[i]);
		in_order(&orders[i], &t->a, TRACE_DEPTH, 0);
	}
}

/* A program that reads rows reads each chunk many times. */
static void repeats_teach_nothing(void **state)
{
	enum { TIMES = 16 };
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(orders); i++) {
		make(&t->a, &orders[i]);
		trace_repeat(&t->a, TIMES);
		in_order(&orders[i], &t->a, TIMES * TRACE_DEPTH, 0);
	}
}

static uint64_t seeds(void)
{
	return sampling_everything() ? 3 : 1;
}

static void add_outcome(struct outcome *sum, const struct outcome *o)
{
	sum->firsts += o->firsts;
	sum->missed += o->missed;
	sum->prefetched += o->prefetched;
	sum->useful += o->useful;
}

/* Four threads read one file. Some orders hide their loops for a while. */
static void order_of_neighbours_does_not_matter(void **state)
{
	enum { WINDOW = 4 };
	struct traces *t = *state;
	for (uint64_t seed = 1; seed <= seeds(); seed++) {
		struct outcome sum = {0};
		for (size_t i = 0; i < N_OF(orders); i++) {
			if (!(orders[i].flags & EASY))
				continue;
			make(&t->a, &orders[i]);
			trace_jitter(&t->a, WINDOW, seed);
			const struct outcome o =
				trace_run(&t->a, t->a.n / 4, 2 * TRACE_DEPTH, TRACE_DEPTH);
			at_most(orders[i].name, "missed later", o.missed, o.firsts / 4);
			add_outcome(&sum, &o);
		}
		at_most("all", "missed later", sum.missed, sum.firsts / 40);
		precise("all", &sum, 90);
	}
}

/* One chunk in ten makes the kernel read the following one, too. */
static void strays_do_not_break_a_track(void **state)
{
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(orders); i++) {
		if (!(orders[i].flags & EASY))
			continue;
		make(&t->a, &orders[i]);
		trace_stray(&t->a, &t->b, 10, 3);
		const struct outcome o = trace_run(&t->b, t->b.n / 4, 2 * TRACE_DEPTH, TRACE_DEPTH);
		at_most(orders[i].name, "missed later", o.missed, o.firsts / 25);
		precise(orders[i].name, &o, 70);
	}
}

/* Hyperslabs of one shape anywhere in a dataset, read in turns. */
static void streams_side_by_side(void **state)
{
	static const struct {
		const char *name;
		struct loop loops[3];
	} shapes[] = {
		{"rows", {{0, 0, 1, 8}, {1, 0, 1, 10}, {2, 0, 1, 12}}},
		{"strides", {{0, 0, 2, 8}, {1, 0, 3, 10}, {2, 0, 1, 12}}},
		{"columns", {{2, 0, 1, 12}, {1, 0, 1, 10}, {0, 0, 1, 8}}},
		{"backwards", {{0, 30, -1, 8}, {1, 30, -2, 10}, {2, 30, -1, 12}}},
		{"series", {{1, 0, 1, 1}, {2, 0, 1, 1}, {0, 0, 1, 40}}},
	};
	enum { STREAMS = 8, RUNS = 10 };
	static const uint64_t counts[] = {60, 60, 60};
	struct traces *t = *state;
	uint64_t seed = 3;
	for (size_t i = 0; i < N_OF(shapes); i++) {
		struct outcome sum = {0};
		for (int run = 0; run < RUNS; run++) {
			trace_init(&t->a, 3, counts);
			for (int k = 0; k < STREAMS; k++) {
				struct loop loops[3];
				memcpy(loops, shapes[i].loops, sizeof(loops));
				for (int l = 0; l < 3; l++)
					loops[l].start += trace_random(&seed) % 20;
				trace_loops(&t->a, loops, 3);
			}
			trace_interleave(&t->a, &t->b, STREAMS);
			const struct outcome o =
				trace_run(&t->b, t->b.n / 4, STREAMS * TRACE_DEPTH, TRACE_DEPTH);
			add_outcome(&sum, &o);
		}
		at_most(shapes[i].name, "missed later", sum.missed, sum.firsts / 40);
		precise(shapes[i].name, &sum, 92);
	}
}

static void diagonals(void **state)
{
	static const uint64_t counts[] = {300, 400};
	static const int64_t steps[][3] = {{0, 1, 1}, {399, 1, -1}, {3, 2, 1}};
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(steps); i++) {
		trace_init(&t->a, 2, counts);
		for (int64_t k = 0; k < 140; k++)
			trace_add(&t->a, (uint64_t)(k * steps[i][1] * 400 + steps[i][0] +
						    k * steps[i][2]));
		const struct outcome o = trace_run(&t->a, 0, TRACE_DEPTH, TRACE_DEPTH);
		at_most("diagonal", "missed", o.missed, 3);
		precise("diagonal", &o, 100);
	}
}

/* The events of a few touches, and the chunks that are predicted after the last touch. */
#define END UINT64_MAX
static const struct {
	const char *name;
	unsigned int rank;
	uint64_t counts[3];
	uint64_t touches[16];
	const char *events; /* again (repeat), random, follows, breaks */
	uint64_t expected[4];
} beginnings[] = {
	{"one chunk", 1, {100}, {0, END}, "R", {END}},
	{"0 and 1", 1, {100}, {0, 1, END}, "RF", {2, 3, 4, 5}},
	{"1 and 0", 1, {100}, {1, 0, END}, "RF", {2, 3, 4, 5}},
	{"two neighbours", 1, {1000}, {50, 51, END}, "RR", {END}},
	{"three neighbours", 1, {100}, {50, 51, 52, END}, "RRF", {53, 54, 55, 56}},
	{"an end", 1, {100}, {97, 98, 99, END}, "RRF", {END}},
	{"a start", 1, {100}, {2, 1, 0, END}, "RRF", {END}},
	{"backwards", 1, {100}, {99, 98, 97, END}, "RRF", {96, 95, 94, 93}},
	{"out of order", 1, {1000}, {51, 50, 52, END}, "RRF", {53, 54, 55, 56}},
	{"plane after plane", 3, {90, 9, 9}, {13, 94, 175, END}, "RRF", {256, 337, 418, 499}},
	{"distant chunks in a small dataset", 1, {100}, {3, 43, 83, END}, "RRR", {END}},
	{"in a large one", 1, {100000}, {3, 43, 83, END}, "RRF", {123, 163, 203, 243}},
	{"a row's end is the end of a stride", 2, {50, 20}, {32, 35, 38, END}, "RRF", {END}},
	{"the second row", 2, {50, 20}, {3, 5, 7, 43, 45, END}, "RRFRF", {47, 83, 85, 87}},
	{"a small grid", 2, {3, 3}, {0, 1, 2, 3, 4, END}, "RFFRF", {5, 6, 7, 8}},
	{"a stride in a small dataset", 1, {64}, {1, 4, 7, 10, END}, "RRRF", {13, 16, 19, 22}},
	{"one chunk in between", 1, {1000}, {5, 8, 11, 100, 14, END}, "RRFRF", {17, 20, 23, 26}},
	{"another place", 1, {1000}, {5, 8, 11, 400, 717, END}, "RRFRB", {14, 17, 20, 23}},
	{"three steps early", 1, {100}, {0, 1, 4, END}, "RFF", {5, 6, 7, 8}},
	{"five steps early", 1, {100}, {0, 1, 6, END}, "RFR", {END}},
	{"late", 1, {100}, {0, 1, 3, 2, 4, END}, "RFFAF", {5, 6, 7, 8}},
	{"begins late", 1, {100}, {51, 52, 53, 50, END}, "RRFA", {54, 55, 56, 57}},
	{"the same again", 1, {100}, {0, 0, 1, 1, 0, END}, "RAFAA", {2, 3, 4, 5}},
	{"a small dataset is left soon", 1, {30}, {0, 1, 9, 29, 19, 2, END}, "RFRBRR", {END}},
};

static void a_few_touches(void **state)
{
	static const char letters[] = "ARFB";
	for (size_t i = 0; i < N_OF(beginnings); i++) {
		const struct chunk_grid g = {beginnings[i].rank, beginnings[i].counts};
		struct pattern *p = calloc(1, sizeof(*p));
		struct track *t = NULL;
		char events[17] = "";
		assert_non_null(p);
		for (size_t k = 0; beginnings[i].touches[k] != END; k++)
			events[k] = letters[pattern_read(p, 0, &g, beginnings[i].touches[k], &t)];
		if (strcmp(events, beginnings[i].events) != 0)
			fail_msg("%s: %s, not %s", beginnings[i].name, events,
				 beginnings[i].events);
		for (size_t n = 0; n < 4; n++) {
			uint64_t next = END;
			bool more = t && pattern_expect(t, &g, n, &next);
			next = more ? next : END;
			if (next != beginnings[i].expected[n])
				fail_msg("%s: %zu ahead is %d, not %d", beginnings[i].name, n,
					 (int)next, (int)beginnings[i].expected[n]);
			if (!more)
				break;
		}
		free(p);
	}
}

static void random_touches_are_no_progression(void **state)
{
	static const struct {
		unsigned int rank;
		uint64_t counts[3];
	} grids[] = {
		{3, {100, 100, 100}}, {2, {1000, 1000}}, {1, {1000000}}, {1, {1000}}, {2, {32, 32}},
		{2, {10, 10}},	      {1, {100}},	 {3, {5, 5, 5}}, {1, {30}},   {1, {10}},
	};
	enum { TOUCHES = 10000 };
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(grids); i++) {
		for (uint64_t seed = 1; seed <= seeds(); seed++) {
			uint64_t random = seed * 77;
			trace_init(&t->a, grids[i].rank, grids[i].counts);
			for (int k = 0; k < TOUCHES; k++)
				trace_add(&t->a, ((uint64_t)trace_random(&random) << 20 ^
						  trace_random(&random)) %
							 t->a.chunks);
			const struct outcome o = trace_run(&t->a, 0, 0, TRACE_DEPTH);
			/* Most reads of a tiny dataset repeat chunks or are near a track. */
			if (t->a.chunks >= 100)
				at_most("random", "events", o.events[PATTERN_FOLLOWS],
					TOUCHES / 30);
			if (t->a.chunks >= 1000000)
				at_most("random", "prefetched chunks", o.prefetched, TOUCHES / 50);
		}
	}
}

/* Each dataset has its own tracks, and a track keeps the caller's depth. */
static void datasets_side_by_side(void **state)
{
	static const uint64_t counts[] = {10000};
	const struct chunk_grid g = {1, counts};
	struct pattern *p = calloc(1, sizeof(*p));
	struct track *t = NULL;
	assert_non_null(p);
	for (uint64_t i = 0; i < 4; i++)
		for (uint32_t d = 0; d < PATTERN_TRACKS; d++)
			pattern_read(p, d, &g, i, &t);
	for (uint32_t d = 0; d < PATTERN_TRACKS; d++) {
		assert_int_equal(pattern_read(p, d, &g, 4, &t), PATTERN_FOLLOWS);
		assert_int_equal(t->dataset, d);
		assert_int_equal(t->depth, 0);
		t->depth = d + 1;
	}
	for (uint32_t d = 0; d < PATTERN_TRACKS; d++) {
		assert_int_equal(pattern_read(p, d, &g, 5, &t), PATTERN_FOLLOWS);
		assert_int_equal(t->depth, d + 1);
	}
	free(p);
}

static void counts_near_the_end_of_the_numbers(void **state)
{
	static const struct {
		unsigned int rank;
		uint64_t counts[3];
		uint64_t first;
		int64_t step;
		size_t expected; /* after three touches */
	} far[] = {
		{1, {INT64_MAX}, 0, INT64_MAX / 3, 1},
		{1, {INT64_MAX}, INT64_MAX - 1, -(INT64_MAX / 4), 2},
		{1, {INT64_MAX}, INT64_MAX - 6, 1, 3},
		{1, {UINT64_C(1) << 62}, (UINT64_C(1) << 62) - 1, -(INT64_C(1) << 59), 5},
		{2, {UINT64_C(1) << 31, UINT64_C(1) << 31}, 5, (INT64_C(1) << 59) + 9, 5},
		{3, {1, UINT64_C(1) << 62, 1}, 7, INT64_C(1) << 60, 1},
		{2, {3, UINT64_C(1) << 61}, 7, INT64_C(1) << 61, 0},
	};
	for (size_t i = 0; i < N_OF(far); i++) {
		const struct chunk_grid g = {far[i].rank, far[i].counts};
		struct pattern *p = calloc(1, sizeof(*p));
		struct track *t = NULL;
		uint64_t number = far[i].first, next = 0;
		size_t n = 0;
		assert_non_null(p);
		pattern_read(p, 0, &g, number, &t);
		pattern_read(p, 0, &g, number + (uint64_t)far[i].step, &t);
		number += 2 * (uint64_t)far[i].step;
		assert_int_equal(pattern_read(p, 0, &g, number, &t), PATTERN_FOLLOWS);
		for (; n < 8 && pattern_expect(t, &g, n, &next); n++)
			assert_int_equal(next, number + (n + 1) * (uint64_t)far[i].step);
		if (n != far[i].expected)
			fail_msg("case %zu: %zu are expected, not %zu", i, n, far[i].expected);
		assert_false(pattern_expect(t, &g, UINT64_MAX, &next));
		assert_false(pattern_expect(t, &g, INT64_MAX, &next));
		free(p);
	}
}

static void chunks_outside_the_grid_are_ignored(void **state)
{
	static const uint64_t counts[] = {4, 0, 5};
	const struct chunk_grid none = {0, counts}, empty = {3, counts};
	struct pattern *p = calloc(1, sizeof(*p));
	struct track *t = NULL;
	assert_non_null(p);
	assert_int_equal(pattern_read(p, 0, &empty, 0, &t), PATTERN_RANDOM);
	assert_int_equal(pattern_read(p, 1, &none, 0, &t), PATTERN_RANDOM);
	assert_int_equal(pattern_read(p, 1, &none, 0, &t), PATTERN_REPEAT);
	assert_int_equal(pattern_read(p, 1, &none, 1, &t), PATTERN_RANDOM);
	assert_null(t);
	free(p);
}

#define TRACES(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACES(loops_are_learned),
		TRACES(repeats_teach_nothing),
		TRACES(order_of_neighbours_does_not_matter),
		TRACES(strays_do_not_break_a_track),
		TRACES(streams_side_by_side),
		TRACES(diagonals),
		cmocka_unit_test(a_few_touches),
		TRACES(random_touches_are_no_progression),
		cmocka_unit_test(datasets_side_by_side),
		cmocka_unit_test(counts_near_the_end_of_the_numbers),
		cmocka_unit_test(chunks_outside_the_grid_are_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
