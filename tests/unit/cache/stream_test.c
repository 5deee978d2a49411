/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetching from a slow store. The tests count how many times a reader waits for the store
 * (rounds), which chunks are loaded but not read, and which are never loaded. The clock advances
 * only while a reader waits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "prefetch/depth.h"
#include "fake_source.h"

enum { SIZE = 10000, BUDGET = 400 /* chunks */ };

#define LATENCY (FAKE_SECOND / 20)

static void far_away(struct fake_source *f, uint64_t nchunks, uint64_t budget)
{
	fake_open(f, SIZE, nchunks, budget);
	f->deferred = true;
	f->latency = LATENCY;
}

static void far_grid(struct fake_source *f, uint64_t a, uint64_t b, uint64_t c)
{
	far_away(f, a * b * c, BUDGET);
	f->rank = 3;
	f->counts[0] = a;
	f->counts[1] = b;
	f->counts[2] = c;
}

static uint64_t rounds(const struct fake_source *f)
{
	return (f->clock - 7 * FAKE_SECOND) / LATENCY;
}

static void finish(struct fake_source *f, struct cache_stream *s)
{
	cache_stream_free(s);
	fake_complete_all(f);
	fake_close(f);
}

/* At most one load in ten is wasted, besides the last prefetches of a reader that stops before the
 * end of the dataset. */
static void expect_little_waste(struct fake_source *f, uint64_t read, bool stopped)
{
	fake_complete_all(f);
	struct cache_stats st = fake_stats(f);
	if (st.loads > read + read / 10 + (stopped ? DEPTH_MAX : 0))
		fail_msg("%u loads for %u chunks", (unsigned int)st.loads, (unsigned int)read);
}

/* start and step in numbers of the grid; n chunks. */
static const struct {
	const char *name;
	uint64_t a, b, c;
	uint64_t n[3], from[3];
	int64_t step[3];
	uint64_t rounds;
	bool stops;
} walks[] = {
	{"64 chunks, a constant stride", 1, 1, 202, {1, 1, 64}, {0, 0, 2}, {0, 0, 3}, 5, false},
	{"in row order", 1, 1, 300, {1, 1, 300}, {0, 0, 0}, {0, 0, 1}, 9, false},
	{"in row order from within", 1, 1, 300, {1, 1, 200}, {0, 0, 100}, {0, 0, 1}, 8, false},
	{"backwards", 1, 1, 300, {1, 1, 200}, {0, 0, 199}, {0, 0, -1}, 8, false},
	{"down a column", 64, 1, 20, {64, 1, 1}, {0, 0, 7}, {1, 0, 0}, 5, false},
	{"a plane, by rows", 8, 16, 16, {1, 16, 16}, {5, 0, 0}, {0, 1, 1}, 10, true},
	{"a hyperslab", 16, 16, 16, {6, 6, 6}, {2, 3, 4}, {2, 2, 2}, 14, true},
};

static void walks_take_few_rounds(void **state)
{
	for (size_t w = 0; w < sizeof(walks) / sizeof(walks[0]); w++) {
		struct fake_source f;
		far_grid(&f, walks[w].a, walks[w].b, walks[w].c);
		struct cache_stream *s = cache_stream_new(f.owner);
		const uint64_t *n = walks[w].n;
		for (uint64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
			const uint64_t at[] = {i / n[2] / n[1], i / n[2] % n[1], i % n[2]};
			uint64_t number = 0;
			for (int d = 0; d < 3; d++)
				number = number * f.counts[d] + walks[w].from[d] +
					 (uint64_t)(walks[w].step[d] * (int64_t)at[d]);
			assert_true(fake_read(&f, s, 0, number));
		}
		print_message("%s: %u rounds, %u loads for %u\n", walks[w].name,
			      (unsigned int)rounds(&f), (unsigned int)fake_stats(&f).loads,
			      (unsigned int)(n[0] * n[1] * n[2]));
		assert_true(rounds(&f) <= walks[w].rounds);
		expect_little_waste(&f, n[0] * n[1] * n[2], walks[w].stops);
		finish(&f, s);
	}
}

/* The third chunk of a stride starts prefetches at once. The same in file order may be read-ahead
 * of the kernel. */
static void a_new_track_prefetches_at_once(void **state)
{
	static const struct {
		uint64_t from, step, loads;
	} cases[] = {{0, 3, 2 * 3}, {50, 1, 2 * 3}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake_source f;
		far_away(&f, 200, BUDGET);
		struct cache_stream *s = cache_stream_new(f.owner);
		for (uint64_t k = 0; k < 3; k++)
			assert_true(fake_read(&f, s, 0, cases[i].from + k * cases[i].step));
		const struct cache_stats st = fake_stats(&f);
		assert_int_equal(st.loads + st.queued - 3, cases[i].loads);
		finish(&f, s);
	}
}

/* The program needs as much time for a chunk as a load takes. */
static void a_slow_reader_prefetches_little(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 300; i++) {
		for (int k = 0; k < 8; k++)
			assert_true(fake_read(&f, s, 0, i));
		f.clock += LATENCY;
		while (f.nloads && fake_stats(&f).loading && f.due[f.nloads - 1] <= f.clock)
			fake_complete_next(&f);
		struct cache_stats st = fake_stats(&f);
		/* Its speed is not known when the first batch begins. */
		assert_true(st.loads <= max_u64(i + 1 + 10, DEPTH_FIRST));
	}
	assert_true(rounds(&f) <= 300 + 5);
	finish(&f, s);
}

static void a_near_store_prefetches_little(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 1000, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 900; i++) {
		f.clock += 100000;
		for (int k = 0; k < 8; k++)
			assert_true(fake_read(&f, s, 0, i));
		assert_true(f.nloads <= i + 1 + 4);
	}
	struct cache_stats st = fake_stats(&f);
	assert_true(st.misses <= 2);
	assert_int_equal(st.prefetch_wasted, 0);
	for (uint64_t i = 0; i < f.nloads; i++)
		assert_int_equal(f.loads[i], i);
	finish(&f, s);
}

static void never_past_the_end(void **state)
{
	struct fake_source f;
	far_away(&f, 100, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 50; i < 100; i++)
		assert_true(fake_read(&f, s, 3, i));
	fake_complete_all(&f);
	assert_int_equal(f.nloads, 50);
	for (size_t i = 0; i < f.nloads; i++)
		assert_int_equal(f.datasets[i], 3);
	finish(&f, s);
}

static void chunks_that_are_not_stored_are_skipped(void **state)
{
	struct fake_source f;
	far_away(&f, 700, BUDGET);
	f.sparse = 7;
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 100; i++)
		assert_true(fake_read(&f, s, 0, i));
	assert_true(rounds(&f) <= 6);
	fake_complete_all(&f);
	assert_int_equal(f.nloads, 100);
	finish(&f, s);
}

/* A source that joins loads gets them in groups, all along a sequential read. */
static void joined_loads_begin_together(void **state)
{
	enum { CHUNKS = 2000, JOINED = 20 };
	struct fake_source f;
	far_away(&f, CHUNKS, 1200);
	f.joined = JOINED;
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_true(fake_read(&f, s, 0, i));
	print_message("%zu batches, %u rounds\n", f.nbatches, (unsigned int)rounds(&f));
	assert_int_equal(fake_stats(&f).loads, CHUNKS);
	assert_in_range(f.nbatches, 1, CHUNKS / JOINED + 20);
	assert_true(rounds(&f) <= 20);
	finish(&f, s);
}

/* Chunks that are far apart are not joined, so the depth has as many chunks as without joining. */
static void a_stride_is_not_joined(void **state)
{
	struct fake_source f;
	far_away(&f, 4000, 1200);
	f.joined = 20;
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 100; i++)
		assert_true(fake_read(&f, s, 0, 9 * i));
	fake_complete_all(&f);
	assert_in_range(fake_stats(&f).loads, 100, 100 + DEPTH_MAX);
	assert_true(rounds(&f) <= 8);
	finish(&f, s);
}

/* If the share of the budget is smaller than the depth, the groups are smaller, too. */
static void joined_loads_fit_the_budget(void **state)
{
	enum { CHUNKS = 1000, JOINED = 20 };
	struct fake_source f;
	far_away(&f, CHUNKS, 64);
	f.joined = JOINED;
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_true(fake_read(&f, s, 0, i));
	print_message("%zu batches\n", f.nbatches);
	assert_int_equal(fake_stats(&f).prefetch_wasted, 0);
	assert_in_range(f.nbatches, 1, CHUNKS / 10);
	finish(&f, s);
}

static void random_access_loads_what_it_reads(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100000, 2000);
	struct cache_stream *s = cache_stream_new(f.owner);
	uint32_t x = 1;
	for (int i = 0; i < 1000; i++) {
		x = x * 1664525u + 1013904223u;
		assert_true(fake_read(&f, s, 0, (x >> 8) % 100000));
	}
	struct cache_stats st = fake_stats(&f);
	/* A few random reads look like a progression. */
	assert_in_range(st.prefetches, 0, 8);
	assert_int_equal(st.loads, st.misses + st.prefetches);
	finish(&f, s);
}

static void streams_side_by_side(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	struct cache_stream *a = cache_stream_new(f.owner), *b = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 120; i++) {
		assert_true(fake_read(&f, a, 0, i));
		assert_true(fake_read(&f, b, 0, 999 - i * 3));
	}
	assert_true(rounds(&f) <= 14);
	expect_little_waste(&f, 240 + DEPTH_MAX, true);
	cache_stream_free(b);
	finish(&f, a);
}

static void two_patterns_of_one_reader(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 100; i++) {
		assert_true(fake_read(&f, s, 0, 100 + i));
		assert_true(fake_read(&f, s, 0, 600 + i * 3));
	}
	assert_true(rounds(&f) <= 16);
	finish(&f, s);
}

static void datasets_have_their_own_patterns(void **state)
{
	struct fake_source f;
	far_away(&f, 40, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 40; i++)
		for (uint32_t d = 0; d < 5; d++)
			assert_true(fake_read(&f, s, d, d == 4 ? 39 - i : i));
	assert_true(rounds(&f) <= 25);
	fake_complete_all(&f);
	assert_int_equal(fake_stats(&f).loads, 200);
	finish(&f, s);
}

static void many_streams_do_not_evict_each_other(void **state)
{
	enum { STREAMS = 16 };
	struct fake_source f;
	struct cache_stream *s[STREAMS];
	far_away(&f, 40, 64);
	for (uint32_t k = 0; k < STREAMS; k++)
		s[k] = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 40; i++)
		for (uint32_t k = 0; k < STREAMS; k++)
			assert_true(fake_read(&f, s[k], k, i));
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loads, 40 * STREAMS);
	assert_int_equal(st.prefetch_wasted, 0);
	for (uint32_t k = 0; k < STREAMS; k++)
		cache_stream_free(s[k]);
	fake_close(&f);
}

static void a_stopped_stream_gives_way(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, 64);
	struct cache_stream *a = cache_stream_new(f.owner), *b = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(fake_read(&f, a, 0, i));
	fake_complete_all(&f);
	assert_int_equal(fake_stats(&f).prefetch_wasted, 0);
	f.clock += 2 * FAKE_SECOND;
	const uint64_t before = rounds(&f);
	for (uint64_t i = 0; i < 100; i++)
		assert_true(fake_read(&f, b, 1, i));
	/* Its share is half of the prefetches: 16 chunks. */
	assert_true(rounds(&f) - before <= 4 + 100 / 12);
	cache_stream_free(b);
	finish(&f, a);
}

static void a_read_is_loaded_before_prefetches(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	assert_int_equal(cache_advise(f.owner, NULL, 0, 0, 150), 150);
	assert_int_equal(f.nloads, FAKE_PREFETCH);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loading, FAKE_PREFETCH);
	assert_int_equal(st.queued, 150 - FAKE_PREFETCH);
	struct cancel now;
	const struct chunk_data *c = NULL;
	cancel_init(&now);
	cancel_fire(&now);
	/* A queued prefetch starts at once, too. */
	assert_int_equal(cache_get(f.owner, NULL, 0, 500, &now, &c, NULL), -EINTR);
	assert_int_equal(cache_get(f.owner, NULL, 0, 140, &now, &c, NULL), -EINTR);
	assert_int_equal(f.nloads, FAKE_PREFETCH + 2);
	assert_int_equal(f.loads[FAKE_PREFETCH], 500);
	assert_int_equal(f.loads[FAKE_PREFETCH + 1], 140);
	cancel_release(&now);
	fake_complete_all(&f);
	assert_int_equal(f.nloads, 151);
	fake_close(&f);
}

/* Loads that the source joins count as one request. The next ones begin when a whole request has
 * ended. */
static void joined_prefetches_are_one_request(void **state)
{
	enum { JOINED = 16, ALL = FAKE_PREFETCH * JOINED };
	struct fake_source f;
	far_away(&f, 2 * ALL, 4 * ALL);
	f.joined = JOINED;
	assert_int_equal(cache_advise(f.owner, NULL, 0, 0, ALL + 50), ALL + 50);
	assert_int_equal(f.nloads, ALL);
	for (size_t i = 0; i < JOINED; i++) {
		assert_int_equal(f.nloads, ALL);
		fake_complete(&f, i);
	}
	assert_int_equal(f.nloads, ALL + JOINED);
	assert_int_equal(f.nbatches, 2);
	fake_complete_all(&f);
	fake_close(&f);
}

static void a_load_with_a_waiting_reader_is_no_prefetch(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 1000, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	assert_true(fake_read(&f, s, 0, 7));
	cache_advise(f.owner, s, 0, 100, 2);
	assert_int_equal(f.nloads, 3);
	assert_false(f.ahead[0]);
	assert_true(f.ahead[1] && f.ahead[2]);
	cache_stream_free(s);
	fake_close(&f);
}

static void closing_a_stream_drops_queued_prefetches(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	cache_advise(f.owner, s, 0, 0, 150);
	assert_int_equal(f.nloads, FAKE_PREFETCH);
	cache_stream_free(s);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.queued, 0);
	assert_int_equal(st.cancelled, 150 - FAKE_PREFETCH);
	fake_complete_all(&f);
	assert_int_equal(f.nloads, FAKE_PREFETCH);
	/* Loads that were in flight are cached. */
	assert_true(fake_read(&f, NULL, 0, 7));
	assert_int_equal(f.nloads, FAKE_PREFETCH);
	st = fake_stats(&f);
	assert_int_equal(st.prefetch_used, 1);
	fake_close(&f);
}

static void loads_of_a_closed_stream_may_be_cancelled(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	struct cache_stream *a = cache_stream_new(f.owner), *b = cache_stream_new(f.owner);
	cache_advise(f.owner, a, 0, 0, 20);
	cache_advise(f.owner, b, 0, 100, 10);
	assert_int_equal(fake_give_up(&f), 0);
	cache_stream_free(a);
	assert_int_equal(fake_give_up(&f), 20);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loading, 10);
	assert_int_equal(st.prefetch_wasted, 20);
	assert_int_equal(st.load_failures, 0);
	/* No trace of the load remains. */
	assert_true(fake_read(&f, b, 0, 7));
	assert_int_equal(fake_stats(&f).misses, 1);
	cache_stream_free(b);
	fake_give_up(&f);
	fake_close(&f);
}

/* A second stream requested the chunks, so closing the first one does not cancel them. */
static void loads_of_another_stream_are_not_cancelled(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	struct cache_stream *a = cache_stream_new(f.owner), *b = cache_stream_new(f.owner);
	cache_advise(f.owner, a, 0, 0, 20);
	cache_advise(f.owner, b, 0, 10, 20);
	cache_stream_free(a);
	assert_int_equal(fake_give_up(&f), 10);
	assert_int_equal(fake_stats(&f).loading, 20);
	fake_complete_all(&f);
	for (uint64_t i = 10; i < 30; i++)
		assert_true(fake_read(&f, b, 0, i));
	assert_int_equal(fake_stats(&f).misses, 0);
	fake_complete_all(&f);
	cache_stream_free(b);
	fake_close(&f);
}

/* The source cancels a load at the moment when a reader or a stream requests the chunk again. The
 * load begins again, so the reader only waits longer. */
static void a_load_cancelled_too_late_begins_again(void **state)
{
	for (int ahead = 0; ahead < 2; ahead++) {
		struct fake_source f;
		struct err err = ERR_INIT;
		far_away(&f, 1000, BUDGET);
		struct cache_stream *s = cache_stream_new(f.owner);
		cache_advise(f.owner, s, 0, 0, 3);
		cache_stream_free(s);
		struct cache_fill *fill = f.fills[1];
		assert_true(atomic_load(cache_fill_cancel(fill)));
		const struct chunk_data *c = NULL;
		struct cancel now;
		cancel_init(&now);
		cancel_fire(&now);
		s = cache_stream_new(f.owner);
		if (ahead)
			cache_advise(f.owner, s, 0, 1, 1);
		else
			assert_int_equal(cache_get(f.owner, s, 0, 1, &now, &c, NULL), -EINTR);
		cancel_release(&now);
		assert_false(atomic_load(cache_fill_cancel(fill)));
		f.fills[1] = NULL;
		cache_complete(fill, err_set(&err, -ECANCELED, "cancelled"), NULL, &err);
		assert_int_equal(f.nloads, 4);
		assert_int_equal(f.loads[3], 1);
		assert_int_equal(fake_stats(&f).loading, 3);
		fake_complete(&f, 3);
		assert_true(fake_read(&f, s, 0, 1));
		assert_int_equal(f.nloads, 4);
		assert_int_equal(fake_stats(&f).load_failures, 0);
		cache_stream_free(s);
		fake_complete_all(&f);
		fake_close(&f);
	}
}

/* If a source cancels a load that a reader needs, the read fails. */
static void a_needless_cancellation_is_a_failure(void **state)
{
	struct fake_source f;
	struct err err = ERR_INIT;
	far_away(&f, 1000, BUDGET);
	cache_advise(f.owner, NULL, 0, 0, 1);
	struct cache_fill *fill = f.fills[0];
	f.fills[0] = NULL;
	cache_complete(fill, err_set(&err, -ECANCELED, "cancelled"), NULL, &err);
	assert_int_equal(f.nloads, 1);
	assert_int_equal(fake_stats(&f).load_failures, 1);
	fake_close(&f);
}

static void a_freed_owner_starts_no_load(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, BUDGET);
	const struct cache_source src = fake_source(&f);
	struct cache_owner *other = cache_owner_new(f.cache, &src, NULL);
	cache_advise(f.owner, NULL, 0, 0, FAKE_PREFETCH);
	cache_advise(other, NULL, 0, 0, 10);
	assert_int_equal(f.nloads, FAKE_PREFETCH);
	cache_owner_free(other);
	assert_int_equal(fake_stats(&f).cancelled, 10);
	fake_complete_all(&f);
	assert_int_equal(f.nloads, FAKE_PREFETCH);
	fake_close(&f);
}

static void without_a_stream_nothing_is_prefetched(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, BUDGET);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(fake_read(&f, NULL, 0, i));
	assert_int_equal(fake_stats(&f).prefetches, 0);
	fake_close(&f);
}

static void prefetches_are_bounded(void **state)
{
	struct fake_source f;
	far_away(&f, 1000, 64);
	assert_int_equal(cache_advise(f.owner, NULL, 0, 0, 1000), 32);
	assert_int_equal(f.nloads, 32);
	assert_int_equal(cache_advise(f.owner, NULL, 0, 100, 10), 0);
	/* Loaded chunks count until they are read. */
	fake_complete_all(&f);
	assert_int_equal(cache_advise(f.owner, NULL, 0, 100, 10), 0);
	assert_true(fake_read(&f, NULL, 0, 0));
	assert_int_equal(cache_advise(f.owner, NULL, 0, 100, 10), 1);
	fake_complete_all(&f);
	fake_close(&f);
}

static void advice_ends_with_the_dataset(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 10, BUDGET);
	assert_true(fake_read(&f, NULL, 0, 8));
	assert_int_equal(cache_advise(f.owner, NULL, 0, 7, UINT64_MAX), UINT64_MAX);
	cache_advise(f.owner, NULL, 0, 10, 5);
	cache_advise(f.owner, NULL, 0, UINT64_MAX, 5);
	assert_int_equal(f.nloads, 3);
	assert_int_equal(f.loads[1], 7);
	assert_int_equal(f.loads[2], 9);
	fake_close(&f);
}

static void a_chunk_as_large_as_the_budget_is_not_prefetched(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 1);
	struct cache_stream *s = cache_stream_new(f.owner);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(fake_read(&f, s, 0, i));
	assert_int_equal(f.nloads, 10);
	assert_int_equal(fake_stats(&f).prefetches, 0);
	finish(&f, s);
}

static void a_failed_prefetch_is_logged_and_retried(void **state)
{
	struct fake_source f;
	const struct chunk_data *c = NULL;
	fake_open(&f, SIZE, 100, BUDGET);
	struct cache_stream *s = cache_stream_new(f.owner);
	fake_fail(&f, 2, 1, -EIO);
	assert_true(fake_read(&f, s, 0, 0));
	assert_true(fake_read(&f, s, 0, 1)); /* prefetches 2 */
	assert_int_equal(fake_stats(&f).load_failures, 1);
	const size_t loads = f.nloads;
	assert_int_equal(cache_get(f.owner, s, 0, 2, NULL, &c, NULL), -EIO);
	assert_true(f.nloads <= loads + 4);
	for (size_t i = loads; i < f.nloads; i++)
		assert_true(f.loads[i] > 2);
	fake_mend(&f);
	f.clock += FAKE_SECOND;
	assert_true(fake_read(&f, s, 0, 2));
	finish(&f, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_take_few_rounds),
		cmocka_unit_test(a_new_track_prefetches_at_once),
		cmocka_unit_test(a_slow_reader_prefetches_little),
		cmocka_unit_test(a_near_store_prefetches_little),
		cmocka_unit_test(never_past_the_end),
		cmocka_unit_test(chunks_that_are_not_stored_are_skipped),
		cmocka_unit_test(joined_loads_begin_together),
		cmocka_unit_test(a_stride_is_not_joined),
		cmocka_unit_test(joined_loads_fit_the_budget),
		cmocka_unit_test(random_access_loads_what_it_reads),
		cmocka_unit_test(streams_side_by_side),
		cmocka_unit_test(two_patterns_of_one_reader),
		cmocka_unit_test(datasets_have_their_own_patterns),
		cmocka_unit_test(many_streams_do_not_evict_each_other),
		cmocka_unit_test(a_stopped_stream_gives_way),
		cmocka_unit_test(a_read_is_loaded_before_prefetches),
		cmocka_unit_test(joined_prefetches_are_one_request),
		cmocka_unit_test(a_load_with_a_waiting_reader_is_no_prefetch),
		cmocka_unit_test(closing_a_stream_drops_queued_prefetches),
		cmocka_unit_test(loads_of_a_closed_stream_may_be_cancelled),
		cmocka_unit_test(loads_of_another_stream_are_not_cancelled),
		cmocka_unit_test(a_load_cancelled_too_late_begins_again),
		cmocka_unit_test(a_needless_cancellation_is_a_failure),
		cmocka_unit_test(a_freed_owner_starts_no_load),
		cmocka_unit_test(without_a_stream_nothing_is_prefetched),
		cmocka_unit_test(prefetches_are_bounded),
		cmocka_unit_test(advice_ends_with_the_dataset),
		cmocka_unit_test(a_chunk_as_large_as_the_budget_is_not_prefetched),
		cmocka_unit_test(a_failed_prefetch_is_logged_and_retried),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
