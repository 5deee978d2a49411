/* SPDX-License-Identifier: Apache-2.0 */
/* Which load begins next, and that loads, chunks and what is charged share one budget. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_source.h"
#include "load_queue.h"

enum { SIZE = 10000, LOAD = 2 * SIZE };

/* Budget in chunks; a load takes two at its peak. */
static void open_deferred(struct fake_source *f, uint64_t budget)
{
	fake_open(f, SIZE, 1000, budget);
	f->load_size = LOAD;
	f->deferred = true;
}

/* A reader that asks and gives up leaves what has begun, and nothing of what has not. */
static int ask(struct fake_source *f, uint64_t slot)
{
	const struct cache_chunk *c = NULL;
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
	/* Four take eight chunks' room (an entry takes a little more, its room is in it). */
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
	/* Alone. */
	assert_int_equal(ask(&f, 1), -EINTR);
	assert_int_equal(f.nloads, 1);
	fake_complete_all(&f);
	assert_int_equal(ask(&f, 1), -EINTR);
	assert_int_equal(f.nloads, 2);
	assert_int_equal(cache_advise(f.owner, NULL, 0, 5, 1), 0);
	fake_complete_all(&f);
	fake_close(&f);
}

static void what_is_charged_leaves_less_room(void **state)
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
	/* Chunks keep half, whatever comes. */
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

static void a_chunk_that_is_not_done_stays_a_moment(void **state)
{
	struct fake_source f;
	const struct cache_chunk *c = NULL;
	fake_open(&f, SIZE, 1000, 1);
	assert_int_equal(cache_get(f.owner, NULL, 0, 0, NULL, &c, NULL), 0);
	cache_put(f.owner, c, false);
	/* Another waits its turn; here, it is not there to see it. */
	assert_int_equal(ask(&f, 1), -EINTR);
	assert_int_equal(f.nloads, 1);
	assert_int_equal(ask(&f, 0), 0); /* done */
	assert_int_equal(ask(&f, 1), 0);
	assert_int_equal(f.nloads, 2);
	/* Not for long. */
	assert_int_equal(cache_get(f.owner, NULL, 0, 1, NULL, &c, NULL), 0);
	cache_put(f.owner, c, false);
	assert_int_equal(ask(&f, 2), -EINTR);
	f.clock += LOAD_QUEUE_KEPT_NS;
	assert_int_equal(ask(&f, 2), 0);
	/* And not however often it is read. */
	for (int i = 0; i < 21; i++) {
		assert_int_equal(cache_get(f.owner, NULL, 0, 2, NULL, &c, NULL), 0);
		cache_put(f.owner, c, false);
		f.clock += LOAD_QUEUE_KEPT_NS - 1;
	}
	assert_int_equal(ask(&f, 3), 0);
	fake_close(&f);
}

static void statistics_tell_what_happened(void **state)
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
	assert_int_equal(st.load_bytes, 4 * SIZE);
	cache_stream_free(s);
	assert_int_equal(fake_stats(&f).prefetch_wasted, 0);
	cache_owner_free(f.owner);
	struct cache_stats all;
	cache_get_stats(f.cache, &all);
	assert_int_equal(all.prefetch_wasted, 2);
	cache_free(f.cache);
	budget_free(f.env.budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_begin_while_there_is_room),
		cmocka_unit_test(room_is_made_when_a_load_begins),
		cmocka_unit_test(one_load_may_always_run),
		cmocka_unit_test(what_is_charged_leaves_less_room),
		cmocka_unit_test(a_chunk_that_is_not_done_stays_a_moment),
		cmocka_unit_test(statistics_tell_what_happened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
