/* SPDX-License-Identifier: Apache-2.0 */
/* Holds, evictions and failures; not prefetches and threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "fake_source.h"

enum { SIZE = 10000 };

static const struct chunk_data *get(struct fake_source *f, uint32_t dataset, uint64_t chunk)
{
	const struct chunk_data *c = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(cache_get(f->owner, NULL, dataset, chunk, NULL, &c, &err), 0);
	assert_int_equal(c->elems.fixed.len, f->size);
	assert_int_equal(c->elems.fixed.data[0], fake_value(dataset, chunk));
	assert_int_equal(c->elems.fixed.data[f->size - 1], fake_value(dataset, chunk));
	return c;
}

static void touch(struct fake_source *f, uint32_t dataset, uint64_t chunk)
{
	cache_put(f->owner, get(f, dataset, chunk), true);
}

static void a_chunk_is_loaded_once(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 10);
	for (int i = 0; i < 5; i++)
		touch(&f, 1, 7);
	const struct chunk_data *a = get(&f, 1, 7), *b = get(&f, 1, 7);
	assert_ptr_equal(a, b);
	cache_put(f.owner, a, true);
	cache_put(f.owner, b, true);
	touch(&f, 2, 7);
	assert_int_equal(f.nloads, 2);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loads, 2);
	assert_int_equal(st.misses, 2);
	assert_int_equal(st.hits, 6);
	assert_int_equal(st.waits, 0);
	assert_int_equal(st.waited.count, 2);
	assert_int_equal(st.waited.sum_ns, st.wait_ns);
	assert_int_equal(st.prefetches, 0);
	fake_close(&f);
}

static void the_least_recently_used_chunk_is_evicted(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 3);
	touch(&f, 0, 0);
	touch(&f, 0, 10);
	touch(&f, 0, 20);
	touch(&f, 0, 0);
	touch(&f, 0, 30); /* evicts 10 */
	assert_int_equal(f.nloads, 4);
	touch(&f, 0, 0);
	touch(&f, 0, 20);
	touch(&f, 0, 30);
	assert_int_equal(f.nloads, 4);
	touch(&f, 0, 10); /* evicts 0 */
	assert_int_equal(f.nloads, 5);
	touch(&f, 0, 20);
	assert_int_equal(f.nloads, 5);
	assert_int_equal(fake_stats(&f).evictions, 2);
	fake_close(&f);
}

static void the_budget_is_kept(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 4);
	for (uint64_t i = 0; i < 100; i++) {
		touch(&f, 1, i * 7 % 100);
		struct cache_stats st = fake_stats(&f);
		assert_true(st.bytes + st.in_flight <= st.budget);
		assert_true(st.in_flight_max <= st.budget);
	}
	assert_int_equal(fake_stats(&f).evictions, 96);
	fake_close(&f);
}

static void a_chunk_larger_than_the_budget_can_be_read(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 0);
	for (uint64_t i = 0; i < 3; i++) {
		const struct chunk_data *a = get(&f, 0, i), *b = get(&f, 0, i);
		assert_ptr_equal(a, b);
		cache_put(f.owner, a, true);
		cache_put(f.owner, b, true);
		assert_int_equal(fake_stats(&f).bytes, 0);
	}
	assert_int_equal(f.nloads, 3);
	fake_close(&f);
}

static void absent_chunks_are_charged(void **state)
{
	struct fake_source f;
	fake_open(&f, 0, UINT64_C(1) << 40, 4);
	for (uint64_t i = 0; i < 100; i++) {
		const struct chunk_data *c = NULL;
		assert_int_equal(cache_get(f.owner, NULL, 0, i * i, NULL, &c, NULL), 0);
		cache_put(f.owner, c, true);
	}
	struct cache_stats st = fake_stats(&f);
	assert_true(st.bytes > 0 && st.bytes <= st.budget);
	assert_true(st.evictions > 80);
	fake_close(&f);
}

static void expect_failure(struct fake_source *f, uint32_t dataset, uint64_t chunk, int code)
{
	const struct chunk_data *c = NULL;
	struct err err = ERR_INIT;
	char want[64];
	snprintf(want, sizeof(want), "chunk %u/%u is damaged", dataset, (unsigned int)chunk);
	assert_int_equal(cache_get(f->owner, NULL, dataset, chunk, NULL, &c, &err), code);
	assert_int_equal(err.code, code);
	assert_string_equal(err.msg, want);
	assert_int_equal(cache_get(f->owner, NULL, dataset, chunk, NULL, &c, NULL), code);
	assert_null(c);
}

static void a_failure_is_cached_for_a_second(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 10);
	fake_fail(&f, 7, 1, -EIO);
	expect_failure(&f, 3, 7, -EIO);
	assert_int_equal(f.nloads, 1);
	fake_mend(&f);
	f.clock += FAKE_SECOND - 1;
	for (int page = 0; page < 256; page++)
		expect_failure(&f, 3, 7, -EIO);
	assert_int_equal(f.nloads, 1);
	f.clock++;
	touch(&f, 3, 7);
	touch(&f, 3, 7);
	assert_int_equal(f.nloads, 2);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.loads, 2);
	assert_int_equal(st.load_failures, 1);
	assert_int_equal(st.misses, 2);
	fake_close(&f);
}

static void a_second_failure_is_cached_for_another_second(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 10);
	for (int i = 1; i <= 5; i++) {
		fake_fail(&f, 7, 1, i % 2 ? -EIO : -EACCES);
		expect_failure(&f, 3, 7, f.fail_code);
		f.clock += FAKE_SECOND - 1;
		expect_failure(&f, 3, 7, f.fail_code);
		assert_int_equal(f.nloads, i);
		f.clock++;
	}
	fake_close(&f);
}

static void a_failure_is_of_its_chunk_only(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 10);
	fake_fail(&f, 7, 1, -EIO);
	expect_failure(&f, 3, 7, -EIO);
	fake_mend(&f);
	touch(&f, 3, 6);
	touch(&f, 3, 8);
	touch(&f, 2, 7);
	expect_failure(&f, 3, 7, -EIO);
	assert_int_equal(f.nloads, 4);
	fake_close(&f);
}

static void a_transient_failure_is_not_cached(void **state)
{
	static const int codes[] = {-ENOMEM, -EINTR};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct fake_source f;
		fake_open(&f, SIZE, 100, 10);
		fake_fail(&f, 7, 1, codes[i]);
		expect_failure(&f, 3, 7, codes[i]); /* reads twice */
		assert_int_equal(f.nloads, 2);
		fake_mend(&f);
		touch(&f, 3, 7);
		assert_int_equal(f.nloads, 3);
		fake_close(&f);
	}
}

static void the_oldest_of_many_failures_is_dropped(void **state)
{
	enum { KEPT = 256, MORE = 10 };
	struct fake_source f;
	fake_open(&f, SIZE, 1000, 10);
	fake_fail(&f, 0, 1000, -EIO);
	for (uint64_t i = 0; i < KEPT + MORE; i++) {
		expect_failure(&f, 0, i, -EIO);
		fake_stats(&f); /* checks the invariants */
	}
	assert_int_equal(f.nloads, KEPT + MORE);
	for (uint64_t i = MORE; i < KEPT + MORE; i++)
		expect_failure(&f, 0, i, -EIO);
	assert_int_equal(f.nloads, KEPT + MORE);
	for (uint64_t i = 0; i < MORE; i++)
		expect_failure(&f, 0, i, -EIO);
	assert_int_equal(f.nloads, KEPT + 2 * MORE);
	assert_int_equal(fake_stats(&f).bytes, 0);
	fake_close(&f);
}

/* A failed load needs room only while it is in flight. */
static void failures_evict_one_chunk(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 1000, 3);
	for (uint64_t i = 0; i < 3; i++)
		touch(&f, 0, i);
	fake_fail(&f, 100, 900, -EIO);
	for (uint64_t i = 100; i < 500; i++)
		expect_failure(&f, 0, i, -EIO);
	f.nloads = 0;
	for (uint64_t i = 1; i < 3; i++)
		touch(&f, 0, i);
	assert_int_equal(f.nloads, 0);
	assert_int_equal(fake_stats(&f).evictions, 1);
	fake_close(&f);
}

static void advice_does_not_retry_a_cached_failure(void **state)
{
	struct fake_source f;
	fake_open(&f, SIZE, 100, 64);
	fake_fail(&f, 2, 1, -EIO);
	cache_advise(f.owner, NULL, 0, 0, 4);
	assert_int_equal(f.nloads, 4);
	cache_advise(f.owner, NULL, 0, 0, 4);
	assert_int_equal(f.nloads, 4);
	expect_failure(&f, 0, 2, -EIO);
	assert_int_equal(f.nloads, 4);
	fake_mend(&f);
	f.clock += FAKE_SECOND;
	cache_advise(f.owner, NULL, 0, 0, 4);
	assert_int_equal(f.nloads, 5);
	touch(&f, 0, 2);
	assert_int_equal(f.nloads, 5);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.prefetches, 5);
	assert_int_equal(st.prefetch_used, 1);
	assert_int_equal(st.prefetch_wasted, 1);
	fake_close(&f);
}

static void a_cancelled_read_leaves_its_load(void **state)
{
	struct fake_source f;
	struct cancel cancel;
	const struct chunk_data *c;
	fake_open(&f, SIZE, 100, 64);
	cancel_init(&cancel);
	cancel_fire(&cancel);
	touch(&f, 0, 1);
	/* A cached chunk is returned even if the reader has cancelled. */
	assert_int_equal(cache_get(f.owner, NULL, 0, 1, &cancel, &c, NULL), 0);
	cache_put(f.owner, c, true);
	f.deferred = true;
	assert_int_equal(cache_get(f.owner, NULL, 0, 2, &cancel, &c, NULL), -EINTR);
	assert_int_equal(cache_get(f.owner, NULL, 0, 2, &cancel, &c, NULL), -EINTR);
	assert_int_equal(f.nloads, 2);
	/* The load continues, for other readers. */
	fake_complete(&f, 1);
	touch(&f, 0, 2);
	assert_int_equal(f.nloads, 2);
	/* So does a load that fails. */
	fake_fail(&f, 3, 1, -EIO);
	assert_int_equal(cache_get(f.owner, NULL, 0, 3, &cancel, &c, NULL), -EINTR);
	fake_complete(&f, 2);
	expect_failure(&f, 0, 3, -EIO);
	fake_close(&f);
	cancel_release(&cancel);
}

static void owners_do_not_see_each_other(void **state)
{
	struct fake_source f, g;
	fake_open(&f, SIZE, 100, 10);
	g = f;
	const struct cache_source src = fake_source(&g);
	g.owner = cache_owner_new(f.cache, &src, NULL);
	touch(&f, 0, 1);
	touch(&g, 0, 1);
	assert_int_equal(f.nloads, 1);
	assert_int_equal(g.nloads, 1);
	fake_fail(&g, 2, 1, -EIO);
	expect_failure(&g, 0, 2, -EIO);
	touch(&f, 0, 2);
	cache_owner_free(g.owner); /* frees its cached failure */
	touch(&f, 0, 1);
	touch(&f, 0, 2);
	assert_int_equal(f.nloads, 2);
	fake_close(&f);
}

static void an_owner_without_its_chunks_loads_them_again(void **state)
{
	struct fake_source f, g;
	fake_open(&f, SIZE, 100, 10);
	g = f;
	const struct cache_source src = fake_source(&g);
	g.owner = cache_owner_new(f.cache, &src, NULL);
	touch(&f, 0, 1);
	touch(&g, 0, 1);
	fake_fail(&g, 2, 1, -EIO);
	expect_failure(&g, 0, 2, -EIO);
	cache_owner_clear(g.owner);
	fake_fail(&g, 2, 0, 0);
	touch(&f, 0, 1);
	touch(&g, 0, 1);
	touch(&g, 0, 2);
	assert_int_equal(f.nloads, 1);
	assert_int_equal(g.nloads, 4);
	cache_owner_free(g.owner);
	fake_close(&f);
}

static void *free_owner(void *arg)
{
	struct fake_source *f = arg;
	cache_owner_free(f->owner);
	return NULL;
}

static void freeing_an_owner_waits_for_its_loads(void **state)
{
	struct fake_source f;
	pthread_t thread;
	fake_open(&f, SIZE, 100, 40);
	f.deferred = true;
	cache_advise(f.owner, NULL, 0, 0, 3);
	assert_int_equal(f.nloads, 3);
	fake_fail(&f, 1, 1, -EIO);
	assert_int_equal(pthread_create(&thread, NULL, free_owner, &f), 0);
	fake_complete_all(&f);
	pthread_join(thread, NULL);
	struct cache_stats st = fake_stats(&f);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(st.prefetch_wasted, 3);
	cache_free(f.cache);
	budget_free(f.env.budget);
}

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Reading the counters and closing a file do not walk other owners' chunks under the lock. */
static void held_chunks_do_not_slow_down_others(void **state)
{
	enum { N = 20000, TIMES = 4000 };
	struct fake_source f;
	fake_open(&f, 16, N, N);
	for (uint64_t i = 0; i < N; i++) {
		touch(&f, 0, i);
		f.nloads = 0;
	}
	assert_int_equal(fake_stats(&f).evictions, 0);
	const double before = cpu_seconds();
	for (int i = 0; i < TIMES; i++)
		fake_stats(&f);
	assert_true(cpu_seconds() - before < 1);
	fake_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_is_loaded_once),
		cmocka_unit_test(the_least_recently_used_chunk_is_evicted),
		cmocka_unit_test(the_budget_is_kept),
		cmocka_unit_test(a_chunk_larger_than_the_budget_can_be_read),
		cmocka_unit_test(absent_chunks_are_charged),
		cmocka_unit_test(a_failure_is_cached_for_a_second),
		cmocka_unit_test(a_second_failure_is_cached_for_another_second),
		cmocka_unit_test(a_failure_is_of_its_chunk_only),
		cmocka_unit_test(a_transient_failure_is_not_cached),
		cmocka_unit_test(the_oldest_of_many_failures_is_dropped),
		cmocka_unit_test(failures_evict_one_chunk),
		cmocka_unit_test(advice_does_not_retry_a_cached_failure),
		cmocka_unit_test(a_cancelled_read_leaves_its_load),
		cmocka_unit_test(owners_do_not_see_each_other),
		cmocka_unit_test(an_owner_without_its_chunks_loads_them_again),
		cmocka_unit_test(freeing_an_owner_waits_for_its_loads),
		cmocka_unit_test(held_chunks_do_not_slow_down_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
