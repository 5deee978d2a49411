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
	{"tiny chunks that are joined", 50 * MS, 0, 100, 5002, 8192, 256},
	{"small chunks that are joined, a slow reader", 50 * MS, 50 * MS, 4096, 3, 4, 20},
};

static struct depth_step step_of(uint64_t now, uint64_t latency, uint64_t cost)
{
	return (struct depth_step){.now_ns = now,
				   .latency_ns = latency,
				   .steps = 1,
				   .cost = cost,
				   .read_ahead = KERNEL_READ_AHEAD};
}

/* A run that is long enough for any depth. */
static void begin_long(struct depth *p, const struct depth_step *s)
{
	depth_begin(p, s);
	p->run = DEPTH_JOINED_MAX;
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

/* The kernel reads fewer chunks ahead if they are small, so more of them show a sequence. */
static void a_short_sequence_of_small_chunks_is_surer(void **state)
{
	struct depth p = {0};
	struct depth_step s = step_of(1000 * MS, 50 * MS, 1 << 18);
	s.sequential = true;
	s.read_ahead = kernel_read_ahead(s.cost);
	assert_int_equal(s.read_ahead, 1 << 20);
	depth_begin(&p, &s);
	for (uint64_t run = 2; run < 30; run++)
		depth_follow(&p, &s);
	assert_int_equal(29 + p.chunks, 3 * (29 - 7) + 4);
}

static struct depth_step series_of(uint64_t latency, uint64_t cost)
{
	struct depth_step s = step_of(1000 * MS, latency, cost);
	s.sequential = true;
	s.read_ahead = kernel_read_ahead(cost);
	s.steps = 2;
	s.begun = s.newest = 1;
	s.room = DEPTH_FIRST;
	return s;
}

/* Continues a series of which `last` is the last chunk of the first batch. */
static void read_series(struct depth *p, struct depth_step *s, uint64_t last)
{
	s->begun = 0;
	s->steps = 1;
	while (++s->newest <= last) {
		s->late = s->newest % 3 == 0;
		depth_follow(p, s);
		assert_int_equal(s->newest + p->chunks, last);
	}
	depth_follow(p, s);
	assert_true(p->chunks >= 20);
}

static void a_series_begins_with_a_batch(void **state)
{
	struct depth p = {0};
	struct depth_step s = series_of(51 * MS, 1 << 18);
	depth_begin(&p, &s);
	assert_int_equal(2 + p.chunks, DEPTH_FIRST);
	read_series(&p, &s, DEPTH_FIRST - 1);
}

/* Five chunks in the middle of a dataset are a series, too. */
static void a_series_begins_in_the_middle(void **state)
{
	struct depth p = {0};
	struct depth_step s = series_of(51 * MS, 1 << 14);
	s.begun = 0;
	s.steps = 3;
	s.newest = 502;
	depth_begin(&p, &s);
	assert_true(p.chunks <= 6);
	s.begun = DEPTH_SERIES - 1;
	s.steps = 2;
	s.newest = 504;
	depth_follow(&p, &s);
	assert_int_equal(p.chunks, DEPTH_FIRST - DEPTH_SERIES);
	read_series(&p, &s, 500 + DEPTH_FIRST - 1);
}

/* A batch of large chunks has as many as arrive in the time of a request. The usual rules hold for
 * the next ones. */
static void a_batch_of_large_chunks_is_small(void **state)
{
	struct depth p = {0};
	struct depth_step s = series_of(48 * MS, 1 << 20);
	depth_begin(&p, &s);
	assert_int_equal(p.chunks, 6);
	s.begun = 0;
	s.newest++;
	depth_follow(&p, &s);
	assert_in_range(p.chunks, 1, 4);
}

/* A batch that is smaller for want of room is no limit for what the program then reads. */
static void a_batch_takes_only_its_room(void **state)
{
	struct depth p = {0};
	struct depth_step s = series_of(51 * MS, 1 << 18);
	s.room = 10;
	depth_begin(&p, &s);
	assert_int_equal(p.chunks, 10);
	assert_int_equal(p.batch, 0);
	s.room = 0;
	depth_begin(&p, &s);
	assert_in_range(p.chunks, 1, 4);
}

/* The batch takes room itself. */
static void a_batch_stays_when_its_room_is_used(void **state)
{
	struct depth p = {0};
	struct depth_step s = series_of(51 * MS, 1 << 14);
	s.begun = DEPTH_SERIES - 1;
	s.steps = DEPTH_SERIES;
	s.newest = 504;
	depth_begin(&p, &s);
	assert_int_equal(p.batch, 500 + DEPTH_FIRST - 1);
	s.begun = DEPTH_SERIES;
	s.steps = 1;
	s.newest = 505;
	s.room = 0;
	depth_follow(&p, &s);
	assert_int_equal(s.newest + p.chunks, 500 + DEPTH_FIRST - 1);
}

static void some_series_need_no_batch(void **state)
{
	struct depth p = {0};
	struct depth_step s = series_of(MS, 1 << 14);
	print_message("a near store\n");
	depth_begin(&p, &s);
	assert_int_equal(p.chunks, DEPTH_MIN);
	print_message("joined loads\n");
	s = series_of(50 * MS, 1 << 14);
	s.joined = 64;
	depth_begin(&p, &s);
	assert_int_equal(p.chunks, 4);
	s.begun = 0;
	for (int i = 0; i < 16; i++) {
		s.newest++;
		depth_follow(&p, &s);
	}
	assert_true(p.chunks > DEPTH_FIRST);
}

/* What the kernel does not read ahead, because chunks are small, is prefetched. */
static void the_depth_makes_up_for_less_read_ahead(void **state)
{
	for (int less = 0; less <= 1; less++) {
		struct depth p = {0};
		struct depth_step s = step_of(1000 * MS, 50 * MS, 1 << 18);
		if (less)
			s.read_ahead = kernel_read_ahead(s.cost);
		begin_long(&p, &s);
		s.now_ns += MS / 10;
		depth_follow(&p, &s);
		assert_int_equal(p.chunks, DEPTH_MAX + less * 2 * 4);
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
		cmocka_unit_test(a_short_sequence_of_small_chunks_is_surer),
		cmocka_unit_test(a_series_begins_with_a_batch),
		cmocka_unit_test(a_series_begins_in_the_middle),
		cmocka_unit_test(a_batch_of_large_chunks_is_small),
		cmocka_unit_test(a_batch_takes_only_its_room),
		cmocka_unit_test(a_batch_stays_when_its_room_is_used),
		cmocka_unit_test(some_series_need_no_batch),
		cmocka_unit_test(the_depth_makes_up_for_less_read_ahead),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
