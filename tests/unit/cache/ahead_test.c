/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead: which loads a reader's pattern starts, in which order, and which it does not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_source.h"

enum { SIZE = 10000, BUDGET = 64 /* chunks; 16 may be in flight, 16 are ahead of one stream */ };

static void read_chunk(struct fake_source *f, struct cache_stream *s, uint32_t dataset,
		       uint64_t chunk)
{
	const struct cache_chunk *c = NULL;
	assert_int_equal(cache_get(f->owner, s, dataset, chunk, NULL, &c, NULL), 0);
	assert_int_equal(c->slot.data[0], fake_value(dataset, chunk));
	cache_put(f->owner, c);
}

static void expect_loads(const struct fake_source *f, const uint64_t *chunks, size_t n)
{
	for (size_t i = 0; i < n && i < f->nloads; i++)
		if (f->loads[i] != chunks[i])
			fail_msg("load %zu is chunk %u, not %u", i, (unsigned int)f->loads[i],
				 (unsigned int)chunks[i]);
	assert_int_equal(f->nloads, n);
}

#define EXPECT_LOADS(f, ...)                                                                       \
	do {                                                                                       \
		const uint64_t want_[] = {__VA_ARGS__};                                            \
		expect_loads(f, want_, sizeof(want_) / sizeof(want_[0]));                          \
	} while (0)

/* Reads chunks and checks all loads so far; each list ends with END. */
#define END UINT64_MAX
static const struct {
	const char *name;
	uint64_t reads[16];
	uint64_t loads[24];
} progressions[] = {
	{"in row order from the start: 1, 2, 4 ahead",
	 {0, 1, 2, 3, END},
	 {0, 1, 2, 3, 4, 5, 6, 7, END}},
	{"in row order from within", {50, 51, 52, 53, END}, {50, 51, 52, 53, 54, 55, END}},
	{"two neighbours are no pattern", {50, 51, END}, {50, 51, END}},
	{"many reads of each chunk", {9, 9, 9, 10, 10, 11, 11, END}, {9, 10, 11, 12, END}},
	{"constant stride", {5, 15, 25, 35, END}, {5, 15, 25, 35, 45, 55, END}},
	{"backwards", {50, 49, 48, 47, END}, {50, 49, 48, 47, 46, 45, END}},
	{"never past the end", {96, 97, 98, 99, END}, {96, 97, 98, 99, END}},
	{"never before the start", {30, 20, 10, 0, END}, {30, 20, 10, 0, END}},
	{"stride past the end", {50, 70, 90, END}, {50, 70, 90, END}},
	{"random",
	 {3, 50, 7, 99, 12, 11, 64, 0, 37, 77, END},
	 {3, 50, 7, 99, 12, 11, 64, 0, 37, 77, END}},
	{"threads arrive out of order",
	 {10, 11, 12, 14, 13, 15, END},
	 {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, END}},
	{"rows read again", {0, 1, 2, 0, 1, 2, 3, END}, {0, 1, 2, 3, 4, 5, 6, 7, END}},
	{"another pattern starts anew",
	 {10, 11, 12, 80, 75, 70, END},
	 {10, 11, 12, 13, 80, 75, 70, 65, END}},
};

static void progressions_load_ahead(void **state)
{
	for (size_t i = 0; i < sizeof(progressions) / sizeof(progressions[0]); i++) {
		struct fake_source f;
		fake_open(&f, SIZE, 100, BUDGET);
		struct cache_stream *s = cache_stream_new(f.owner);
		print_message("%s\n", progressions[i].name);
		for (size_t k = 0; progressions[i].reads[k] != END; k++)
			read_chunk(&f, s, 0, progressions[i].reads[k]);
		size_t n = 0;
		while (progressions[i].loads[n] != END)
			n++;
		expect_loads(&f, progressions[i].loads, n);
		cache_stream_free(s);
		fake_close(&f);
	}
}

static void each_chunk_once_to_the_end(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 1000, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 1000; i++)
		for (int k = 0; k < 8; k++)
			read_chunk(&f, s, 0, i);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loads, 1000);
	assert_int_equal(st.misses, 2);
	assert_int_equal(st.prefetches, 998);
	assert_int_equal(st.prefetch_used, 998);
	assert_int_equal(st.prefetch_wasted, 0);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(f.loads[i], i);
	cache_stream_free(s);
	fake_close(&f);
}

static void random_access_loads_what_it_reads(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100000, 2000);
	struct cache_stream *s = cache_stream_new(f.owner);
	uint32_t x = 1;
	for (int i = 0; i < 1000; i++) {
		x = x * 1664525u + 1013904223u;
		read_chunk(&f, s, 0, (x >> 8) % 100000);
	}
	struct cache_stats st = fake_stats(&f);
	assert_in_range(st.prefetches, 0, 2); /* guesses: two in vain are the last */
	assert_int_equal(st.loads, st.misses + st.prefetches);
	cache_stream_free(s);
	fake_close(&f);
}

static void interleaved_datasets_have_their_own_patterns(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 20, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 20; i++)
		for (uint32_t d = 0; d < 5; d++)
			read_chunk(&f, s, d, d == 4 ? 19 - i : i);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loads, 100);
	assert_int_equal(st.misses, 4 * 2 + 3);
	cache_stream_free(s);
	fake_close(&f);
}

static void without_a_stream_nothing_is_ahead(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, BUDGET);
	for (uint64_t i = 0; i < 10; i++)
		read_chunk(&f, NULL, 0, i);
	assert_int_equal(fake_stats(&f).prefetches, 0);
	fake_close(&f);
}

static void what_is_in_flight_is_bounded(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 1000, BUDGET);
	f.deferred = true;
	cache_advise(f.owner, 0, 0, 1000);
	assert_int_equal(f.nloads, 16);
	cache_advise(f.owner, 0, 100, 10);
	assert_int_equal(f.nloads, 16);
	fake_complete(&f, 0);
	cache_advise(f.owner, 0, 0, 1000);
	assert_int_equal(f.nloads, 17);
	assert_int_equal(f.loads[16], 16);
	fake_complete_all(&f);
	fake_close(&f);
}

static void advice_is_taken_within_the_dataset(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 10, BUDGET);
	read_chunk(&f, NULL, 0, 8);
	cache_advise(f.owner, 0, 7, UINT64_MAX);
	EXPECT_LOADS(&f, 8, 7, 9);
	cache_advise(f.owner, 0, 10, 5);
	cache_advise(f.owner, 0, UINT64_MAX, 5);
	EXPECT_LOADS(&f, 8, 7, 9);
	fake_close(&f);
}

static void held_chunks_leave_less_room_ahead(void **state)
{
	struct fake_source f;
	const struct cache_chunk *held[8];
	fake_open(&f, SIZE, 100, 8);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(cache_get(f.owner, NULL, 1, i, NULL, &held[i], NULL), 0);
	cache_advise(f.owner, 0, 0, 10);
	assert_int_equal(f.nloads, 8);
	for (uint64_t i = 0; i < 8; i++)
		cache_put(f.owner, held[i]);
	cache_advise(f.owner, 0, 0, 10);
	assert_true(f.nloads > 8);
	fake_close(&f);
}

static void a_chunk_as_large_as_the_budget_is_never_ahead(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 1);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 10; i++)
		read_chunk(&f, s, 0, i);
	assert_int_equal(f.nloads, 10);
	assert_int_equal(fake_stats(&f).prefetches, 0);
	cache_stream_free(s);
	fake_close(&f);
}

static void many_streams_do_not_push_each_other_out(void **state)
{
	enum { STREAMS = 16 };
	struct fake_source f;
	struct cache_stream *s[STREAMS];
	fake_open(&f, SIZE, 40, BUDGET);
	for (uint32_t k = 0; k < STREAMS; k++)
		s[k] = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 40; i++)
		for (uint32_t k = 0; k < STREAMS; k++)
			read_chunk(&f, s[k], k, i);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loads, 40 * STREAMS);
	assert_int_equal(st.prefetch_wasted, 0);
	for (uint32_t k = 0; k < STREAMS; k++)
		cache_stream_free(s[k]);
	fake_close(&f);
}

static void a_failure_ahead_is_told_and_tried_again(void **state)
{
	struct fake_source f;
	const struct cache_chunk *c = NULL;
	fake_open(&f, SIZE, 100, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	fake_fail(&f, 2, 1, -EIO);
	read_chunk(&f, s, 0, 0);
	read_chunk(&f, s, 0, 1); /* loads 2 ahead */
	assert_int_equal(fake_stats(&f).load_failures, 1);
	assert_int_equal(cache_get(f.owner, s, 0, 2, NULL, &c, NULL), -EIO);
	EXPECT_LOADS(&f, 0, 1, 2, 3, 4);
	fake_mend(&f);
	f.clock += FAKE_SECOND;
	read_chunk(&f, s, 0, 2);
	EXPECT_LOADS(&f, 0, 1, 2, 3, 4, 2);
	cache_stream_free(s);
	fake_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progressions_load_ahead),
		cmocka_unit_test(each_chunk_once_to_the_end),
		cmocka_unit_test(random_access_loads_what_it_reads),
		cmocka_unit_test(interleaved_datasets_have_their_own_patterns),
		cmocka_unit_test(without_a_stream_nothing_is_ahead),
		cmocka_unit_test(what_is_in_flight_is_bounded),
		cmocka_unit_test(advice_is_taken_within_the_dataset),
		cmocka_unit_test(held_chunks_leave_less_room_ahead),
		cmocka_unit_test(a_chunk_as_large_as_the_budget_is_never_ahead),
		cmocka_unit_test(many_streams_do_not_push_each_other_out),
		cmocka_unit_test(a_failure_ahead_is_told_and_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
