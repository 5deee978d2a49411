/* SPDX-License-Identifier: Apache-2.0 */
/* The advice of prefetch/: slots, groups, chunks that are not stored. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <prefetch/kernel.h>
#include <prefetch/prefetch.h>

#include "prefetch/depth.h"

#define MS UINT64_C(1000000)

/* Only the first of every `sparse` chunks is stored. */
struct reader {
	struct prefetch *p;
	uint64_t chunks, sparse, now;
	uint64_t known; /* a slot that is loaded or requested; 0 if none */
	struct prefetch_dataset dataset;
};

static bool slot_of(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot)
{
	const struct reader *r = ctx;
	(void)dataset;
	*slot = number / r->sparse;
	return number % r->sparse == 0;
}

static bool is_known(void *ctx, uint32_t dataset, uint64_t slot)
{
	const struct reader *r = ctx;
	return r->known && slot == r->known;
}

static void begin(struct reader *r, uint64_t chunks, uint64_t sparse)
{
	*r = (struct reader){
		.p = prefetch_new(), .chunks = chunks, .sparse = sparse, .now = 1000 * MS};
	assert_non_null(r->p);
	r->dataset = (struct prefetch_dataset){
		.dataset = 3,
		.rank = 1,
		.counts = &r->chunks,
		.cost = 1 << 20,
		.read_ahead = KERNEL_READ_AHEAD,
		.room = UINT64_MAX,
		.slot = slot_of,
		.is_known = is_known,
		.ctx = r,
	};
}

static struct prefetch_advice read_slot(struct reader *r, uint64_t slot)
{
	r->now += MS;
	const struct prefetch_read read = {
		.slot = slot,
		.number = slot * r->sparse,
		.now_ns = r->now,
		.latency_ns = 50 * MS,
	};
	return prefetch_read(r->p, &r->dataset, &read);
}

static void a_walk_is_followed_to_its_end(void **state)
{
	struct reader r;
	struct prefetch_advice a = {0};
	uint64_t slot = 0;
	begin(&r, 100, 1);
	for (uint64_t i = 0; i < 90; i += 3)
		a = read_slot(&r, i);
	assert_int_equal(a.action, PREFETCH_LOAD);
	for (uint64_t i = 90; i < 100; i += 3) {
		assert_true(prefetch_next(&a, &r.dataset, &slot));
		assert_int_equal(slot, i);
	}
	assert_false(prefetch_next(&a, &r.dataset, &slot));
	prefetch_free(r.p);
}

static void chunks_without_a_slot_are_skipped(void **state)
{
	struct reader r;
	struct prefetch_advice a = {0};
	uint64_t slot = 0;
	begin(&r, 700, 7);
	for (uint64_t i = 0; i < 10; i++)
		a = read_slot(&r, i);
	assert_int_equal(a.action, PREFETCH_LOAD);
	for (uint64_t i = 10; i < 14; i++) {
		assert_true(prefetch_next(&a, &r.dataset, &slot));
		assert_int_equal(slot, i);
	}
	prefetch_free(r.p);
}

static void a_second_read_of_a_chunk_gives_no_advice(void **state)
{
	struct reader r;
	struct prefetch_advice a = {0};
	begin(&r, 100, 1);
	for (uint64_t i = 0; i < 10; i++)
		a = read_slot(&r, i);
	assert_int_equal(a.action, PREFETCH_LOAD);
	a = read_slot(&r, 9);
	assert_int_equal(a.action, PREFETCH_NOTHING);
	prefetch_free(r.p);
}

static void a_broken_pattern_is_cancelled(void **state)
{
	static const uint64_t elsewhere[] = {913, 402, 771, 133, 655};
	struct reader r;
	struct prefetch_advice a = {0};
	begin(&r, 1000, 1);
	for (uint64_t i = 20; i < 30; i++)
		a = read_slot(&r, i);
	assert_int_equal(a.action, PREFETCH_LOAD);
	const uint8_t group = a.group;
	for (size_t i = 0; i < 5 && a.action != PREFETCH_CANCEL; i++)
		a = read_slot(&r, elsewhere[i]);
	assert_int_equal(a.action, PREFETCH_CANCEL);
	assert_int_equal(a.group, group);
	prefetch_free(r.p);
}

static unsigned int advised(struct reader *r, uint64_t first, uint64_t step)
{
	struct prefetch_advice a = {0};
	uint64_t slot = 0;
	unsigned int n = 0;
	begin(r, 1000, 1);
	for (uint64_t i = 0; i < 3; i++)
		a = read_slot(r, first + i * step);
	while (prefetch_next(&a, &r->dataset, &slot))
		n++;
	prefetch_free(r->p);
	return n;
}

/* If three chunks follow each other in the file, the kernel may have read two of them ahead, and at
 * most four more are fetched besides twice the first. */
static void a_track_begins_with_twice_its_chunks(void **state)
{
	struct reader r;
	assert_int_equal(3 + advised(&r, 50, 1), 3 * 1 + 4);
	assert_int_equal(advised(&r, 50, 3), 2 * 3);
}

/* Reads of small chunks, ended by END, and the last slot that is advised after them, or 0. */
enum { END = 1000 };
static const struct {
	const char *name;
	uint64_t slots[10];
	uint64_t last;
} series[] = {
	{"the first two", {0, 1, END}, DEPTH_FIRST - 1},
	{"and on", {0, 1, 2, 3, 4, 5, END}, DEPTH_FIRST - 1},
	{"five in the middle", {50, 51, 52, 53, 54, END}, 50 + DEPTH_FIRST - 1},
	{"in the order of two requests", {50, 51, 52, 53, 57, END}, 50 + DEPTH_FIRST - 1},
	{"four in the middle", {50, 51, 52, 53, END}, 57},
	{"another one before", {70, 0, 1, END}, 5},
	{"another one in between", {0, 70, 1, END}, 5},
	{"not in order", {1, 0, END}, 5},
	{"every third", {50, 53, 56, 59, 62, END}, 62 + 3 * 10},
	{"a second series", {20, 21, 22, 90, 60, 61, 62, 63, 64, END}, 68},
};

static void a_series_is_prefetched_in_one_batch(void **state)
{
	for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++) {
		struct reader r;
		struct prefetch_advice a = {0};
		uint64_t last = 0;
		print_message("%s\n", series[i].name);
		begin(&r, 1000, 1);
		r.dataset.cost = 1 << 18;
		r.dataset.read_ahead = kernel_read_ahead(r.dataset.cost);
		for (size_t k = 0; series[i].slots[k] != END; k++) {
			r.known = series[i].slots[k];
			a = read_slot(&r, series[i].slots[k]);
		}
		while (prefetch_next(&a, &r.dataset, &last))
			;
		assert_int_equal(last, series[i].last);
		prefetch_free(r.p);
	}
}

/* If the caller prefetches in order, there is advice for nested loops only. */
static void no_advice_for_a_walk_in_order(void **state)
{
	for (int nested = 0; nested < 2; nested++) {
		struct reader r;
		unsigned int loads = 0;
		begin(&r, 4000, 1);
		r.dataset.in_order = true;
		for (uint64_t i = 0; i < 90; i++)
			loads += read_slot(&r, nested ? i / 5 * 100 + i % 5 : i).action ==
				 PREFETCH_LOAD;
		assert_int_equal(loads > 0, nested);
		prefetch_free(r.p);
	}
}

/* Another run begins with few chunks. */
static void another_run_begins_anew(void **state)
{
	struct prefetch *p = prefetch_new();
	struct prefetch_step step = {.slots = 100, .cost = 1 << 20, .latency_ns = 50 * MS};
	for (int i = 0; i < 3; i++) {
		step.now_ns += 100 * MS;
		prefetch_in_file_order(p, &step);
	}
	step.begins = true;
	step.slots = 3;
	assert_int_equal(prefetch_in_file_order(p, &step), 2 * step.slots);
	prefetch_free(p);
}

/* Each chunk that is evicted unread halves the depth. */
static void waste_reduces_the_depth(void **state)
{
	struct prefetch *p = prefetch_new();
	struct prefetch_step step = {.slots = 1,
				     .cost = 1 << 20,
				     .read_ahead = KERNEL_READ_AHEAD,
				     .now_ns = 1000 * MS,
				     .latency_ns = 50 * MS};
	uint32_t depth = prefetch_in_file_order(p, &step);
	assert_int_equal(depth, 2); /* before the first measurement */
	step.now_ns += MS;
	step.slots = 32;
	depth = prefetch_in_file_order(p, &step);
	assert_int_equal(depth, 64);
	step.slots = 1;
	step.now_ns += 1000 * MS; /* a slow program: the depth shrinks gradually */
	assert_in_range(prefetch_in_file_order(p, &step), 48, 63);
	for (int i = 0; i < 10; i++)
		prefetch_wasted(p, PREFETCH_FILE_ORDER);
	prefetch_wasted(p, PREFETCH_GROUPS); /* not a group */
	step.now_ns += 1000 * MS;
	assert_in_range(prefetch_in_file_order(p, &step), 2, 3);
	prefetch_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_is_followed_to_its_end),
		cmocka_unit_test(chunks_without_a_slot_are_skipped),
		cmocka_unit_test(a_second_read_of_a_chunk_gives_no_advice),
		cmocka_unit_test(no_advice_for_a_walk_in_order),
		cmocka_unit_test(another_run_begins_anew),
		cmocka_unit_test(a_broken_pattern_is_cancelled),
		cmocka_unit_test(a_track_begins_with_twice_its_chunks),
		cmocka_unit_test(a_series_is_prefetched_in_one_batch),
		cmocka_unit_test(waste_reduces_the_depth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
