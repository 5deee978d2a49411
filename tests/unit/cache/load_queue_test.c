/* SPDX-License-Identifier: Apache-2.0 */
/* Loads begin in the right order. Loads, chunks and metadata share one budget. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fake_source.h"
#include "cache/load_queue.h"

enum { SIZE = 10000, LOAD = 2 * SIZE };

/* Budget in chunks; a load takes two at its peak. */
static void open_deferred(struct fake_source *f, uint64_t budget)
{
	fake_open(f, SIZE, 1000, budget);
	f->load_size = LOAD;
	f->deferred = true;
}

/* A cancelled read: a load that has begun continues, a queued one is dropped. */
static int ask(struct fake_source *f, uint64_t slot)
{
	const struct chunk_data *c = NULL;
	struct cancel now;
	cancel_init(&now);
	cancel_fire(&now);
	int rc = cache_get(f->owner, NULL, 0, slot, &now, &c, NULL);
	cancel_release(&now);
	if (rc == 0)
		cache_put(f->owner, c, true);
	return rc;
}

static void loads_begin_while_there_is_room(void **state)
{
	struct fake_source f;
	open_deferred(&f, 8);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(ask(&f, i), -EINTR);
	/* Four loads take the room of eight chunks. */
	assert_int_equal(f.nloads, 4);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loading, 4);
	assert_int_equal(st.queued, 0);
	assert_true(st.in_flight <= st.budget);
	fake_complete_all(&f);
	st = fake_stats(&f);
	assert_int_equal(st.in_flight, 0);
	assert_true(st.bytes >= 4 * SIZE && st.bytes < 5 * SIZE);
	fake_close(&f);
}

static void room_is_made_when_a_load_begins(void **state)
{
	struct fake_source f;
	open_deferred(&f, 8);
	for (uint64_t i = 0; i < 8; i++) {
		assert_int_equal(ask(&f, i), -EINTR);
		fake_complete_all(&f);
		assert_int_equal(ask(&f, i), 0);
	}
	struct cache_stats st = fake_stats(&f);
	const uint64_t before = st.evictions;
	assert_int_equal(ask(&f, 100), -EINTR);
	st = fake_stats(&f);
	assert_true(st.evictions > before);
	assert_true(st.bytes + st.in_flight <= st.budget);
	fake_complete_all(&f);
	fake_close(&f);
}

static void one_load_may_always_run(void **state)
{
	struct fake_source f;
	open_deferred(&f, 1);
	assert_int_equal(ask(&f, 0), -EINTR);
	assert_int_equal(f.nloads, 1);
	/* No other load runs beside it. */
	assert_int_equal(ask(&f, 1), -EINTR);
	assert_int_equal(f.nloads, 1);
	fake_complete_all(&f);
	assert_int_equal(ask(&f, 1), -EINTR);
	assert_int_equal(f.nloads, 2);
	assert_int_equal(cache_advise(f.owner, NULL, 0, 5, 1), 0);
	fake_complete_all(&f);
	fake_close(&f);
}

static void charged_metadata_leaves_less_room(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 1000, 10);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(fake_read(&f, NULL, 0, i));
	struct cache_stats st = fake_stats(&f);
	const uint64_t budget = st.budget;
	assert_int_equal(st.evictions, 0);
	struct budget_charge metadata = {.budget = f.env.budget, .use = BUDGET_PLANS};
	assert_int_equal(budget_set(&metadata, budget * 3 / 10, NULL), 0);
	st = fake_stats(&f);
	assert_int_equal(st.charged, budget * 3 / 10);
	assert_true(st.bytes <= budget - budget * 3 / 10);
	/* Chunks keep half of the budget, whatever is charged. */
	assert_int_equal(budget_set(&metadata, 10 * budget, NULL), 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(fake_read(&f, NULL, 0, i));
	st = fake_stats(&f);
	assert_true(st.bytes <= budget / 2 && st.bytes >= budget / 2 - 2 * SIZE);
	assert_int_equal(budget_set(&metadata, 0, NULL), 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(fake_read(&f, NULL, 0, i));
	st = fake_stats(&f);
	assert_int_equal(st.charged, 0);
	assert_true(st.bytes > budget * 9 / 10);
	fake_close(&f);
}

static void a_chunk_that_is_not_done_is_kept_for_a_moment(void **state)
{
	struct fake_source f;
	const struct chunk_data *c = NULL;
	fake_open(&f, SIZE, 1000, 1);
	assert_int_equal(cache_get(f.owner, NULL, 0, 0, NULL, &c, NULL), 0);
	cache_put(f.owner, c, false);
	/* The load of another large chunk stays queued. */
	assert_int_equal(ask(&f, 1), -EINTR);
	assert_int_equal(f.nloads, 1);
	assert_int_equal(ask(&f, 0), 0); /* done */
	assert_int_equal(ask(&f, 1), 0);
	assert_int_equal(f.nloads, 2);
	/* The chunk is kept for a limited time, */
	assert_int_equal(cache_get(f.owner, NULL, 0, 1, NULL, &c, NULL), 0);
	cache_put(f.owner, c, false);
	assert_int_equal(ask(&f, 2), -EINTR);
	f.clock += LOAD_QUEUE_KEPT_NS;
	assert_int_equal(ask(&f, 2), 0);
	/* even if it is read again and again. */
	for (int i = 0; i < 21; i++) {
		assert_int_equal(cache_get(f.owner, NULL, 0, 2, NULL, &c, NULL), 0);
		cache_put(f.owner, c, false);
		f.clock += LOAD_QUEUE_KEPT_NS - 1;
	}
	assert_int_equal(ask(&f, 3), 0);
	fake_close(&f);
}

static void statistics_are_counted(void **state)
{
	struct fake_source f;
	struct cache_owner_stats st;
	fake_open(&f, SIZE, 1000, 100);
	f.deferred = true;
	f.latency = FAKE_SECOND / 10;
	struct cache_stream *s = cache_stream_new(f.owner);
	cache_advise(f.owner, s, 0, 0, 3);
	assert_true(fake_read(&f, NULL, 0, 0));
	assert_true(fake_read(&f, NULL, 0, 0));
	assert_true(fake_read(&f, NULL, 0, 50));
	fake_fail(&f, 60, 1, -EIO);
	assert_false(fake_read(&f, NULL, 0, 60));
	cache_owner_get_stats(f.owner, &st);
	assert_int_equal(st.loads, 5);
	assert_int_equal(st.prefetches, 3);
	assert_int_equal(st.prefetch_used, 1);
	assert_int_equal(st.failures, 1);
	cache_stream_free(s);
	assert_int_equal(fake_stats(&f).prefetch_wasted, 0);
	cache_owner_free(f.owner);
	struct cache_stats all;
	cache_get_stats(f.cache, &all);
	assert_int_equal(all.prefetch_wasted, 2);
	cache_free(f.cache);
	budget_free(f.env.budget);
}

static size_t heap_in_use(void)
{
	const struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

/* Each load that completes before load() returns makes room for the next one. */
static void evicted_chunks_are_freed(void **state)
{
	enum { LARGE = 400000, CHUNKS = 12, AHEAD = 4 };
	struct fake_source f;
	fake_open(&f, LARGE, 1000, CHUNKS);
	const struct cache_source src = fake_source(&f);
	cache_owner_free(f.owner);
	cache_free(f.cache);
	f.cache = cache_new(&f.env, 1, NULL); /* one prefetch at a time */
	f.owner = cache_owner_new(f.cache, &src, NULL);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_true(fake_read(&f, NULL, 0, i));
	const size_t before = heap_in_use();
	assert_int_equal(cache_advise(f.owner, NULL, 0, 100, AHEAD), AHEAD);
	assert_int_equal(f.nloads, CHUNKS + AHEAD);
	assert_int_equal(fake_stats(&f).evictions, AHEAD);
	assert_true(heap_in_use() < before + LARGE);
	fake_close(&f);
}

static void a_closed_stream_makes_room_for_others(void **state)
{
	struct fake_source f;
	const struct chunk_data *held[5];
	fake_open(&f, SIZE, 1000, 10);
	struct cache_stream *a = cache_stream_new(f.owner), *b = cache_stream_new(f.owner);
	assert_int_equal(cache_advise(f.owner, a, 0, 100, 2), 2);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(cache_get(f.owner, NULL, 0, i, NULL, &held[i], NULL), 0);
	struct budget_charge metadata = {.budget = f.env.budget, .use = BUDGET_PLANS};
	const uint64_t chunk = SIZE + 512;
	assert_int_equal(budget_set(&metadata, 3 * chunk, NULL), 0);
	assert_int_equal(cache_advise(f.owner, b, 0, 200, 1), 1);
	assert_int_equal(f.nloads, 7);
	assert_int_equal(fake_stats(&f).queued, 1);
	cache_stream_free(a);
	assert_int_equal(f.nloads, 8);
	assert_int_equal(f.loads[7], 200);
	for (uint64_t i = 0; i < 5; i++)
		cache_put(f.owner, held[i], true);
	cache_stream_free(b);
	assert_int_equal(budget_set(&metadata, 0, NULL), 0);
	fake_close(&f);
}

/* A reader in another thread, and a clock that the test moves. */
struct waiting_reader {
	struct fake_source f;
	struct cancel cancel;
	atomic_uint_least64_t clock;
	atomic_bool done;
	int rc;
};

static uint64_t clock_of(const struct env *env)
{
	return atomic_load(&((struct waiting_reader *)env->ctx)->clock);
}

static void *read_chunk_1(void *arg)
{
	struct waiting_reader *r = arg;
	const struct chunk_data *c = NULL;
	r->rc = cache_get(r->f.owner, NULL, 0, 1, &r->cancel, &c, NULL);
	if (r->rc == 0)
		cache_put(r->f.owner, c, true);
	atomic_store(&r->done, true);
	return NULL;
}

/* Its load gets room only because time passes. */
static void a_queued_reader_tries_again(void **state)
{
	enum { LOOKS = 10000 };
	struct waiting_reader r = {.rc = -1};
	const struct chunk_data *c = NULL;
	pthread_t thread;
	fake_open(&r.f, SIZE, 1000, 1);
	atomic_init(&r.clock, r.f.clock);
	r.f.env.now = clock_of;
	r.f.env.ctx = &r;
	cancel_init(&r.cancel);
	assert_int_equal(cache_get(r.f.owner, NULL, 0, 0, NULL, &c, NULL), 0);
	cache_put(r.f.owner, c, false);
	assert_int_equal(pthread_create(&thread, NULL, read_chunk_1, &r), 0);
	for (int i = 0; i < LOOKS && fake_stats(&r.f).queued == 0; i++)
		usleep(1000);
	atomic_fetch_add(&r.clock, LOAD_QUEUE_KEPT_NS);
	for (int i = 0; i < LOOKS && !atomic_load(&r.done); i++)
		usleep(1000);
	cancel_fire(&r.cancel);
	pthread_join(thread, NULL);
	assert_int_equal(r.rc, 0);
	cancel_release(&r.cancel);
	fake_close(&r.f);
}

/* Its load gets room because metadata is released, while another load runs. */
static void released_metadata_makes_room(void **state)
{
	enum { LOOKS = 10000 };
	struct waiting_reader r = {.rc = -1};
	pthread_t thread;
	open_deferred(&r.f, 4);
	cancel_init(&r.cancel);
	struct budget_charge metadata = {.budget = r.f.env.budget, .use = BUDGET_PLANS};
	assert_int_equal(budget_set(&metadata, 2 * (SIZE + 512), NULL), 0);
	assert_int_equal(ask(&r.f, 0), -EINTR);
	assert_int_equal(pthread_create(&thread, NULL, read_chunk_1, &r), 0);
	for (int i = 0; i < LOOKS && fake_stats(&r.f).queued == 0; i++)
		usleep(1000);
	assert_int_equal(r.f.nloads, 1);
	assert_int_equal(budget_set(&metadata, 0, NULL), 0);
	assert_int_equal(r.f.nloads, 2);
	fake_complete_all(&r.f);
	pthread_join(thread, NULL);
	assert_int_equal(r.rc, 0);
	cancel_release(&r.cancel);
	fake_close(&r.f);
}

/* A load larger than the room beside a chunk that is always held. */
static void a_queued_reader_does_not_wait_forever(void **state)
{
	enum { LOOKS = 10000 };
	struct waiting_reader r = {.rc = -1};
	const struct chunk_data *held = NULL, *c = NULL;
	pthread_t thread;
	fake_open(&r.f, SIZE, 1000, 1);
	cancel_init(&r.cancel);
	assert_int_equal(cache_get(r.f.owner, NULL, 0, 0, NULL, &held, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_chunk_1, &r), 0);
	for (int i = 0; i < LOOKS && fake_stats(&r.f).queued == 0; i++)
		usleep(1000);
	for (int i = 0; i < LOAD_QUEUE_PATIENCE; i++) {
		assert_false(atomic_load(&r.done));
		assert_int_equal(cache_get(r.f.owner, NULL, 0, 0, NULL, &c, NULL), 0);
		cache_put(r.f.owner, c, true);
	}
	for (int i = 0; i < LOOKS && !atomic_load(&r.done); i++)
		usleep(1000);
	cancel_fire(&r.cancel);
	pthread_join(thread, NULL);
	assert_int_equal(r.rc, 0);
	cache_put(r.f.owner, held, true);
	cancel_release(&r.cancel);
	fake_close(&r.f);
}

static void evicted_prefetches_reduce_the_depth(void **state)
{
	enum { AHEAD = 3 };
	static const struct cache_dataset d = {
		.cost = SIZE, .joined = 1, .read_ahead = KERNEL_READ_AHEAD};
	struct fake_source f;
	const struct chunk_data *held[2 * AHEAD];
	fake_open(&f, SIZE, 1000, 2 * AHEAD);
	f.deferred = true;
	f.latency = FAKE_SECOND / 20;
	struct cache_stream *s = cache_stream_new(f.owner);
	assert_int_equal(cache_advise(f.owner, s, 0, 100, AHEAD), AHEAD);
	while (fake_complete_next(&f))
		;
	cache_stream_depth(s, 1, false, &d);
	f.clock += FAKE_SECOND / 1000;
	assert_int_equal(cache_stream_depth(s, 32, false, &d), 64);
	for (uint64_t i = 0; i < 2 * AHEAD; i++) {
		held[i] = fake_take(&f, NULL, 0, i);
		assert_non_null(held[i]);
	}
	assert_int_equal(fake_stats(&f).prefetch_wasted, AHEAD);
	f.clock += 10 * FAKE_SECOND;
	assert_in_range(cache_stream_depth(s, 1, false, &d), 2, 8);
	for (uint64_t i = 0; i < 2 * AHEAD; i++)
		cache_put(f.owner, held[i], true);
	cache_stream_free(s);
	fake_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_begin_while_there_is_room),
		cmocka_unit_test(room_is_made_when_a_load_begins),
		cmocka_unit_test(one_load_may_always_run),
		cmocka_unit_test(charged_metadata_leaves_less_room),
		cmocka_unit_test(a_chunk_that_is_not_done_is_kept_for_a_moment),
		cmocka_unit_test(statistics_are_counted),
		cmocka_unit_test(evicted_chunks_are_freed),
		cmocka_unit_test(a_closed_stream_makes_room_for_others),
		cmocka_unit_test(a_queued_reader_tries_again),
		cmocka_unit_test(released_metadata_makes_room),
		cmocka_unit_test(a_queued_reader_does_not_wait_forever),
		cmocka_unit_test(evicted_prefetches_reduce_the_depth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
