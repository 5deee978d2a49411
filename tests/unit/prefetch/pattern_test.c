/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognising progressions: loop nests over grids, in order and out of order, many at a time, with
 * strays between them; what is learned from them and how soon; and that random touches are none.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampling.h"
#include "trace.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

enum {
	EASY = 1 << 0, /* runs are long enough that four threads do not blur them */
};

/*
 * missed: chunks that come unexpected, in all. In order, none does after the first quarter, unless
 * `late` says so, and then 95 of 100 chunks that are asked for are wanted.
 */
static const struct order {
	const char *name;
	unsigned int rank;
	uint64_t counts[TRACE_RANK];
	unsigned int n;
	struct loop loops[TRACE_LOOPS];
	size_t missed, late;
	unsigned int flags;
} orders[] = {
	{"1-D", 1, {1000}, 1, {{0, 0, 1, 1000}}, 2, 0, EASY},
	{"1-D from within", 1, {1000}, 1, {{0, 100, 1, 900}}, 2, 0, EASY},
	{"1-D stride 7", 1, {5000}, 1, {{0, 3, 7, 700}}, 2, 0, EASY},
	{"1-D backwards", 1, {1000}, 1, {{0, 999, -1, 1000}}, 2, 0, EASY},
	{"1-D stride -7", 1, {5000}, 1, {{0, 4990, -7, 700}}, 2, 0, EASY},
	{"1-D blocks 4 of 8", 1, {2000}, 2, {{0, 0, 8, 240}, {0, 0, 1, 4}}, 2, 0, 0},
	{"1-D blocks 2 of 5", 1, {2000}, 2, {{0, 3, 5, 240}, {0, 0, 1, 2}}, 4, 0, 0},
	{"1-D blocks 20 of 100", 1, {20000}, 2, {{0, 3, 100, 190}, {0, 0, 1, 20}}, 4, 0, EASY},
	{"2-D rows", 2, {50, 40}, 2, {{0, 0, 1, 50}, {1, 0, 1, 40}}, 2, 0, EASY},
	{"2-D short rows", 2, {200, 4}, 2, {{0, 0, 1, 200}, {1, 0, 1, 4}}, 2, 0, EASY},
	{"2-D rows from within", 2, {50, 40}, 2, {{0, 9, 1, 41}, {1, 0, 1, 40}}, 2, 0, EASY},
	{"2-D columns", 2, {50, 40}, 2, {{1, 0, 1, 40}, {0, 0, 1, 50}}, 3, 0, EASY},
	{"2-D stride 3 in the row", 2, {50, 40}, 2, {{0, 0, 1, 50}, {1, 1, 3, 13}}, 3, 0, EASY},
	{"2-D strides 3 and 5", 2, {300, 60}, 2, {{0, 2, 3, 90}, {1, 1, 5, 12}}, 3, 0, EASY},
	{"2-D every other row", 2, {100, 12}, 2, {{0, 0, 2, 50}, {1, 0, 1, 12}}, 2, 0, EASY},
	{"2-D every other short row", 2, {100, 4}, 2, {{0, 0, 2, 50}, {1, 0, 1, 4}}, 2, 0, 0},
	{"2-D rows backwards", 2, {50, 40}, 2, {{0, 49, -1, 50}, {1, 39, -1, 40}}, 2, 0, EASY},
	{"2-D columns backwards", 2, {50, 40}, 2, {{1, 39, -1, 40}, {0, 49, -1, 50}}, 3, 0, EASY},
	{"2-D strides -3 and -5", 2, {300, 60}, 2, {{0, 290, -3, 90}, {1, 56, -5, 12}}, 3, 0, EASY},
	{"2-D rows down, backwards", 2, {50, 40}, 2, {{0, 0, 1, 50}, {1, 39, -1, 40}}, 4, 0, EASY},
	{"2-D slab, C", 2, {100, 100}, 2, {{0, 20, 1, 30}, {1, 10, 1, 20}}, 4, 0, EASY},
	{"2-D slab, Fortran", 2, {100, 100}, 2, {{1, 10, 1, 20}, {0, 20, 1, 30}}, 4, 0, EASY},
	{"2-D slab to the edge", 2, {100, 100}, 2, {{0, 20, 1, 30}, {1, 60, 1, 40}}, 3, 0, EASY},
	{"2-D blocks",
	 2,
	 {200, 200},
	 4,
	 {{0, 3, 10, 19}, {0, 0, 1, 3}, {1, 5, 12, 16}, {1, 0, 1, 5}},
	 6,
	 0,
	 0},
	{"3-D rows", 3, {10, 20, 30}, 3, {{0, 0, 1, 10}, {1, 0, 1, 20}, {2, 0, 1, 30}}, 2, 0, EASY},
	{"3-D Fortran",
	 3,
	 {10, 20, 30},
	 3,
	 {{2, 0, 1, 30}, {1, 0, 1, 20}, {0, 0, 1, 10}},
	 5,
	 0,
	 EASY},
	{"3-D planes of the second dimension",
	 3,
	 {10, 20, 30},
	 3,
	 {{1, 0, 1, 20}, {0, 0, 1, 10}, {2, 0, 1, 30}},
	 4,
	 0,
	 EASY},
	{"3-D every third plane",
	 3,
	 {40, 20, 20},
	 3,
	 {{0, 0, 3, 13}, {1, 0, 1, 20}, {2, 0, 1, 20}},
	 4,
	 0,
	 EASY},
	{"3-D slab of whole rows",
	 3,
	 {40, 20, 20},
	 3,
	 {{0, 0, 3, 13}, {1, 4, 2, 7}, {2, 0, 1, 20}},
	 6,
	 0,
	 EASY},
	{"3-D slab, C",
	 3,
	 {40, 40, 40},
	 3,
	 {{0, 5, 2, 12}, {1, 7, 3, 9}, {2, 2, 4, 8}},
	 6,
	 0,
	 EASY},
	{"3-D slab, Fortran",
	 3,
	 {40, 40, 40},
	 3,
	 {{2, 2, 4, 8}, {1, 7, 3, 9}, {0, 5, 2, 12}},
	 6,
	 0,
	 EASY},
	{"3-D slab of two rows",
	 3,
	 {40, 40, 40},
	 3,
	 {{0, 5, 2, 12}, {1, 7, 3, 2}, {2, 2, 4, 9}},
	 6,
	 0,
	 0},
	{"3-D slab of width 3",
	 3,
	 {40, 40, 40},
	 3,
	 {{0, 5, 2, 12}, {1, 7, 3, 9}, {2, 2, 4, 3}},
	 6,
	 0,
	 0},
	{"3-D slab of width 2",
	 3,
	 {40, 40, 40},
	 3,
	 {{0, 5, 2, 12}, {1, 7, 3, 9}, {2, 2, 4, 2}},
	 6,
	 0,
	 0},
	{"time series at a point",
	 3,
	 {500, 20, 20},
	 3,
	 {{0, 0, 1, 500}, {1, 7, 1, 1}, {2, 9, 1, 1}},
	 2,
	 0,
	 EASY},
	{"time series of a window",
	 3,
	 {500, 20, 20},
	 3,
	 {{0, 0, 1, 500}, {1, 7, 1, 2}, {2, 9, 1, 2}},
	 10,
	 0,
	 0},
	{"4-D slab, C",
	 4,
	 {20, 20, 20, 20},
	 4,
	 {{0, 1, 2, 8}, {1, 3, 3, 5}, {2, 2, 2, 6}, {3, 4, 1, 7}},
	 8,
	 0,
	 0},
	{"4-D slab, Fortran",
	 4,
	 {20, 20, 20, 20},
	 4,
	 {{3, 4, 1, 7}, {2, 2, 2, 6}, {1, 3, 3, 5}, {0, 1, 2, 8}},
	 8,
	 0,
	 EASY},
	{"4-D slab, loops in no order",
	 4,
	 {20, 20, 20, 20},
	 4,
	 {{2, 2, 2, 6}, {0, 1, 2, 8}, {3, 4, 1, 7}, {1, 3, 3, 5}},
	 8,
	 0,
	 0},
	{"rows of which each is read again and again",
	 2,
	 {30, 60},
	 3,
	 {{0, 0, 1, 30}, {0, 0, 0, 20}, {1, 5, 1, 50}},
	 4,
	 0,
	 EASY},
	{"a slab again and again",
	 2,
	 {60, 60},
	 3,
	 {{0, 0, 0, 5}, {0, 3, 2, 20}, {1, 5, 2, 20}},
	 4,
	 0,
	 EASY},
	{"64 chunks by columns", 2, {8, 8}, 2, {{1, 0, 1, 8}, {0, 0, 1, 8}}, 6, 0, 0},
	{"9 chunks", 2, {3, 3}, 2, {{0, 0, 1, 3}, {1, 0, 1, 3}}, 2, 0, 0},
};

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
	if (o->asked > 100 && 100 * o->useful < percent * o->asked)
		fail_msg("%s: %zu of %zu chunks that were asked for are wanted", name, o->useful,
			 o->asked);
}

static void in_order(const char *name, const struct order *o, const struct trace *t, size_t tail)
{
	const struct outcome all = trace_run(t, 0, tail, TRACE_DEPTH);
	const struct outcome later = trace_run(t, t->n / 4, tail, TRACE_DEPTH);
	at_most(name, "missed", all.missed, o->missed);
	at_most(name, "missed later", later.missed, o->late);
	precise(name, &later, 95);
}

static void loops_are_learned(void **state)
{
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(orders); i++) {
		make(&t->a, &orders[i]);
		in_order(orders[i].name, &orders[i], &t->a, TRACE_DEPTH);
	}
}

/* Rows of a chunk are read many times. */
static void repeats_teach_nothing(void **state)
{
	enum { TIMES = 16 };
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(orders); i++) {
		make(&t->a, &orders[i]);
		trace_repeat(&t->a, TIMES);
		struct order same = orders[i];
		same.missed += 2; /* fewer of them are loose at a time */
		in_order(same.name, &same, &t->a, TIMES * TRACE_DEPTH);
	}
}

static uint64_t seeds(void)
{
	return sampling_everything() ? 3 : 1;
}

/* Four threads read for one stream. */
static void order_of_neighbours_does_not_matter(void **state)
{
	enum { WINDOW = 4 };
	struct traces *t = *state;
	for (size_t i = 0; i < N_OF(orders); i++) {
		if (!(orders[i].flags & EASY))
			continue;
		make(&t->a, &orders[i]);
		for (uint64_t seed = 1; seed <= seeds(); seed++) {
			trace_jitter(&t->a, WINDOW, seed);
			const struct outcome o =
				trace_run(&t->a, t->a.n / 4, 2 * TRACE_DEPTH, TRACE_DEPTH);
			at_most(orders[i].name, "missed later", o.missed, o.firsts / 8);
			precise(orders[i].name, &o, 70);
		}
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

/* Slabs of one shape anywhere in a dataset, read side by side. */
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
			sum.firsts += o.firsts;
			sum.missed += o.missed;
			sum.asked += o.asked;
			sum.useful += o.useful;
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
		at_most("diagonal", "missed", o.missed, 2);
		precise("diagonal", &o, 100);
	}
}

/* The events of a few touches, and what is expected after the last. */
#define END UINT64_MAX
static const struct {
	const char *name;
	unsigned int rank;
	uint64_t counts[3];
	uint64_t touches[16];
	const char *events; /* again, random, guess, follows, breaks */
	uint64_t expected[4];
} beginnings[] = {
	{"one chunk", 1, {100}, {0, END}, "R", {END}},
	{"0 and 1", 1, {100}, {0, 1, END}, "RF", {2, 3, 4, 5}},
	{"1 and 0", 1, {100}, {1, 0, END}, "RF", {2, 3, 4, 5}},
	{"neighbours in a small dataset", 1, {100}, {50, 51, END}, "RR", {END}},
	{"neighbours in a large one", 1, {1000}, {50, 51, END}, "RG", {52, 53, END}},
	{"three neighbours", 1, {100}, {50, 51, 52, END}, "RRF", {53, 54, 55, 56}},
	{"an end", 1, {100}, {97, 98, 99, END}, "RRF", {END}},
	{"a start", 1, {100}, {2, 1, 0, END}, "RRF", {END}},
	{"backwards", 1, {100}, {99, 98, 97, END}, "RRF", {96, 95, 94, 93}},
	{"plane after plane", 3, {90, 9, 9}, {13, 94, END}, "RG", {175, 256, END}},
	{"any step is no progression", 1, {1000}, {50, 311, END}, "RR", {END}},
	{"two guesses in vain are the last",
	 3,
	 {30, 30, 30},
	 {1000, 1001, 5000, 5030, 9000, 9900, END},
	 "RGRGRB",
	 {5060, 5090, END}},
	{"a row's end is the end of a stride", 2, {50, 20}, {32, 35, 38, END}, "RRF", {END}},
	{"unless it was seen to go on",
	 2,
	 {50, 20},
	 {32, 35, 38, 41, END},
	 "RRFF",
	 {44, 47, 50, 53}},
	{"the second row", 2, {50, 20}, {3, 5, 7, 43, 45, END}, "RGFRF", {47, 83, 85, 87}},
	{"one chunk in between", 1, {1000}, {5, 8, 11, 100, 14, END}, "RGFRF", {17, 20, 23, 26}},
	{"another place", 1, {1000}, {5, 8, 11, 400, 717, END}, "RGFRB", {14, 17, 20, 23}},
	{"late", 1, {100}, {0, 1, 3, 2, 4, END}, "RFFAF", {5, 6, 7, 8}},
	{"the same again", 1, {100}, {0, 0, 1, 1, 0, END}, "RAFAA", {2, 3, 4, 5}},
	{"from the start again",
	 1,
	 {12},
	 {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, END},
	 "RFFFFFFFFFFFAA",
	 {END}},
};

static void a_few_touches(void **state)
{
	static const char letters[] = "ARGFB";
	for (size_t i = 0; i < N_OF(beginnings); i++) {
		const struct chunk_grid g = {beginnings[i].rank, beginnings[i].counts};
		struct pattern *p = calloc(1, sizeof(*p));
		struct track *t = NULL;
		char events[17] = "";
		assert_non_null(p);
		for (size_t k = 0; beginnings[i].touches[k] != END; k++)
			events[k] = letters[pattern_touch(p, 0, &g, beginnings[i].touches[k], &t)];
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
			at_most("random", "events",
				o.events[PATTERN_GUESS] + o.events[PATTERN_FOLLOWS], TOUCHES / 50);
			if (t->a.chunks >= 1000000)
				at_most("random", "chunks asked for", o.asked, TOUCHES / 50);
		}
	}
}

/* Datasets have tracks of their own, and a track keeps what is the caller's. */
static void datasets_side_by_side(void **state)
{
	static const uint64_t counts[] = {10000};
	const struct chunk_grid g = {1, counts};
	struct pattern *p = calloc(1, sizeof(*p));
	struct track *t = NULL;
	assert_non_null(p);
	for (uint64_t i = 0; i < 4; i++)
		for (uint32_t d = 0; d < PATTERN_TRACKS; d++)
			pattern_touch(p, d, &g, i, &t);
	for (uint32_t d = 0; d < PATTERN_TRACKS; d++) {
		assert_int_equal(pattern_touch(p, d, &g, 4, &t), PATTERN_FOLLOWS);
		assert_int_equal(t->dataset, d);
		assert_int_equal(t->depth, 0);
		t->depth = d + 1;
	}
	for (uint32_t d = 0; d < PATTERN_TRACKS; d++) {
		assert_int_equal(pattern_touch(p, d, &g, 5, &t), PATTERN_FOLLOWS);
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
		size_t expected; /* of what three touches make */
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
		pattern_touch(p, 0, &g, number, &t);
		pattern_touch(p, 0, &g, number + (uint64_t)far[i].step, &t);
		number += 2 * (uint64_t)far[i].step;
		assert_int_equal(pattern_touch(p, 0, &g, number, &t), PATTERN_FOLLOWS);
		for (; n < 8 && pattern_expect(t, &g, n, &next); n++)
			assert_int_equal(next, number + (n + 1) * (uint64_t)far[i].step);
		if (n != far[i].expected)
			fail_msg("case %zu: %zu are expected, not %zu", i, n, far[i].expected);
		assert_false(pattern_expect(t, &g, UINT64_MAX, &next));
		assert_false(pattern_expect(t, &g, INT64_MAX, &next));
		free(p);
	}
}

static void what_is_outside_the_grid_is_ignored(void **state)
{
	static const uint64_t counts[] = {4, 0, 5};
	const struct chunk_grid none = {0, counts}, empty = {3, counts};
	struct pattern *p = calloc(1, sizeof(*p));
	struct track *t = NULL;
	assert_non_null(p);
	assert_int_equal(pattern_touch(p, 0, &empty, 0, &t), PATTERN_RANDOM);
	assert_int_equal(pattern_touch(p, 1, &none, 0, &t), PATTERN_RANDOM);
	assert_int_equal(pattern_touch(p, 1, &none, 0, &t), PATTERN_AGAIN);
	assert_int_equal(pattern_touch(p, 1, &none, 1, &t), PATTERN_RANDOM);
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
		cmocka_unit_test(what_is_outside_the_grid_is_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
