/* SPDX-License-Identifier: Apache-2.0 */
/* The depth of prefetching for near and distant stores, fast and slow programs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <base/mem.h>

#include "prefetch/depth.h"

#define MS UINT64_C(1000000)

static const struct {
	const char *name;
	uint64_t latency, think, cost; /* ns, ns, bytes */
	uint32_t least, most;	       /* depth after the third chunk */
	uint64_t joined;
} cases[] = {
	{"a bucket far away, a fast reader", 50 * MS, MS, 1 << 20, 64, 64, 1},
	{"a bucket not so far away", 20 * MS, MS, 1 << 20, 40, 64, 1},
	{"a reader as slow as the store", 50 * MS, 50 * MS, 1 << 20, 3, 4, 1},
	{"a very slow reader", 50 * MS, 5000 * MS, 1 << 20, 2, 2, 1},
	{"a directory", MS, MS, 1 << 20, 3, 6, 1},
	{"a directory, and no time to measure", MS, 0, 1 << 20, 2, 8, 1},
	{"nothing takes any time", 0, 0, 1 << 20, 2, 2, 1},
	{"small chunks", 50 * MS, 0, 4096, 64, 64, 1},
	{"small chunks that are joined", 50 * MS, 0, 4096, 640, 640, 10},
	{"tiny chunks that are joined", 50 * MS, 0, 100, 1024, 1024, 256},
	{"small chunks that are joined, a slow reader", 50 * MS, 50 * MS, 4096, 3, 4, 20},
};

static struct depth_step step_of(uint64_t now, uint64_t latency, uint64_t cost)
{
	return (struct depth_step){.now_ns = now, .latency_ns = latency, .steps = 1, .cost = cost};
}

/* A run that is long enough for any depth. */
static void begin_long(struct depth *p, const struct depth_step *s)
{
	depth_begin(p, s);
	p->run = DEPTH_CHUNKS_MAX;
}

static void depth_is_delay_over_time(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct depth p = {0};
		uint64_t now = 1000 * MS;
		struct depth_step s = step_of(now, cases[i].latency, cases[i].cost);
		s.joined = cases[i].joined;
		print_message("%s\n", cases[i].name);
		begin_long(&p, &s);
		assert_int_equal(p.chunks, DEPTH_MIN);
		s.now_ns += cases[i].think;
		depth_follow(&p, &s);
		assert_in_range(p.chunks, cases[i].least, cases[i].most);
	}
}

/* The processing time of a program excludes its waiting time. */
static void waiting_is_left_out(void **state)
{
	struct depth p = {0};
	struct depth_step s = step_of(1000 * MS, 50 * MS, 1 << 20);
	begin_long(&p, &s);
	s.now_ns += 51 * MS;
	s.waited_ns += 50 * MS;
	depth_follow(&p, &s);
	assert_int_equal(p.chunks, DEPTH_MAX);
}

static void waiting_doubles_the_depth_up_to_a_limit(void **state)
{
	struct depth p = {0};
	struct depth_step s = step_of(1000 * MS, 10 * MS, 1 << 20);
	begin_long(&p, &s);
	s.late = true;
	for (int i = 0; i < 20; i++) {
		s.now_ns += 2 * MS;
		depth_follow(&p, &s);
	}
	assert_in_range(p.chunks, 16, 2 * (DEPTH_MIN + 2 * 5));
	/* The depth shrinks slowly when the program does not wait. */
	s.late = false;
	uint32_t before = p.chunks;
	s.now_ns += 2 * MS;
	depth_follow(&p, &s);
	assert_int_equal(p.chunks, before - 1);
	for (int i = 0; i < 100; i++) {
		s.now_ns += 2 * MS;
		depth_follow(&p, &s);
	}
	assert_int_equal(p.chunks, DEPTH_MIN + 2 * 5);
}

static void breaks_and_waste_halve_the_depth(void **state)
{
	struct depth p = {.chunks = 64};
	depth_break(&p);
	assert_int_equal(p.chunks, 32);
	depth_wasted(&p);
	assert_int_equal(p.chunks, 16);
	for (int i = 0; i < 10; i++)
		depth_wasted(&p);
	assert_int_equal(p.chunks, 1);
}

/* Whenever the run ends, at most two of three loaded chunks were not needed. */
static void the_depth_is_at_most_twice_the_run(void **state)
{
	struct depth p = {0};
	struct depth_step s = step_of(1000 * MS, 50 * MS, 1 << 20);
	s.late = true;
	depth_begin(&p, &s);
	assert_int_equal(p.chunks, 2);
	for (uint32_t n = 2; n < 100; n++) {
		s.now_ns += MS / 10;
		depth_follow(&p, &s);
		assert_int_equal(p.chunks, min_u64(2 * n, DEPTH_MAX));
	}
	/* The program has left the run, and continues it. */
	depth_break(&p);
	s.now_ns += MS / 10;
	depth_follow(&p, &s);
	assert_int_equal(p.chunks, 2);
}

/* A short sequence may be read-ahead of the kernel. */
static void a_short_sequence_is_not_sure(void **state)
{
	struct depth p = {0};
	struct depth_step s = step_of(1000 * MS, 50 * MS, 1 << 20);
	s.sequential = true;
	depth_begin(&p, &s);
	for (uint64_t run = 2; run < 30; run++) {
		depth_follow(&p, &s);
		/* A window of read-ahead may touch four chunks. */
		const uint64_t read = run > 5 ? run - 4 : 1;
		assert_true(p.chunks >= 1 && run + p.chunks <= 3 * read + 4);
		if (run > 5)
			assert_int_equal(run + p.chunks, 3 * read + 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depth_is_delay_over_time),
		cmocka_unit_test(waiting_is_left_out),
		cmocka_unit_test(waiting_doubles_the_depth_up_to_a_limit),
		cmocka_unit_test(the_depth_is_at_most_twice_the_run),
		cmocka_unit_test(breaks_and_waste_halve_the_depth),
		cmocka_unit_test(a_short_sequence_is_not_sure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
