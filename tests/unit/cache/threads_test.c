/* SPDX-License-Identifier: Apache-2.0 */
/* Many parallel readers, and loads on other threads; also for the thread sanitizer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <base/pool.h>
#include <cache/cache.h>

enum { READERS = 16, SIZE = 4096, NCHUNKS = 200, WORKERS = 4 };

#define SECOND UINT64_C(1000000000)

struct source {
	struct pool *pool;
	atomic_uint loads[NCHUNKS];
	atomic_uint running;
	unsigned int delay_us;
	atomic_bool failing;
	bool cancels; /* cancels loads that may be cancelled, at times too late */
	atomic_uint cancelled;
};

struct job {
	struct source *source;
	uint64_t chunk;
	struct cache_fill *fill;
};

static void run(void *arg)
{
	struct job *job = arg;
	struct source *s = job->source;
	struct chunk_data chunk = {0};
	struct err err = ERR_INIT;
	const bool cancelled = s->cancels && atomic_load(cache_fill_cancel(job->fill));
	if (s->delay_us) /* so that other threads find the load running */
		usleep(s->delay_us);
	if (cancelled || (s->cancels && atomic_load(cache_fill_cancel(job->fill)))) {
		atomic_fetch_add(&s->cancelled, 1);
		cache_complete(job->fill, err_set(&err, -ECANCELED, "cancelled"), NULL, &err);
	} else if (atomic_load(&s->failing)) {
		cache_complete(job->fill, err_set(&err, -EIO, "no luck"), NULL, &err);
	} else if (bytes_append_zero(&chunk.elems.fixed, SIZE)) {
		cache_complete(job->fill, -ENOMEM, NULL, NULL);
	} else {
		memset(chunk.elems.fixed.data, (int)(job->chunk & 0xff), SIZE);
		cache_complete(job->fill, 0, &chunk, NULL);
	}
	free(job);
}

static void load(void *ctx, uint32_t dataset, uint64_t chunk, struct cache_fill *fill)
{
	struct source *s = ctx;
	struct job *job = malloc(sizeof(*job));
	*job = (struct job){.source = s, .chunk = chunk, .fill = fill};
	atomic_fetch_add(&s->loads[chunk], 1);
	if (pool_submit(s->pool, run, job))
		run(job);
}

static void describe(void *ctx, uint32_t dataset, struct cache_dataset *out)
{
	static const uint64_t counts[] = {NCHUNKS};
	*out = (struct cache_dataset){
		.cost = SIZE, .load_cost = SIZE, .nslots = NCHUNKS, .rank = 1, .counts = counts};
}

static uint64_t number_of(void *ctx, uint32_t dataset, uint64_t slot)
{
	return slot;
}

static bool slot_of(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot)
{
	*slot = number;
	return number < NCHUNKS;
}

struct world {
	struct env env; /* ctx: the clock */
	_Atomic uint64_t clock;
	struct source source;
	struct cache *cache;
	struct cache_owner *owner;
	pthread_barrier_t start;
	atomic_uint wrong, failed;
	void (*read)(struct world *w, unsigned int reader);
};

struct reader {
	struct world *world;
	unsigned int number;
	pthread_t thread;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	pthread_barrier_wait(&r->world->start);
	r->world->read(r->world, r->number);
	return NULL;
}

static uint64_t clock_of(const struct env *env)
{
	return atomic_load((_Atomic uint64_t *)env->ctx);
}

static void world_open(struct world *w, uint64_t budget)
{
	const struct cache_source src = {.load = load,
					 .describe = describe,
					 .number = number_of,
					 .slot = slot_of,
					 .ctx = &w->source};
	memset(w, 0, sizeof(*w));
	w->source.pool = pool_new(WORKERS);
	w->env = (struct env){.now = clock_of, .ctx = &w->clock};
	w->env.budget = budget_new(&(struct budget_limits){.bytes = budget});
	w->cache = cache_new(&w->env, 60, NULL);
	w->owner = cache_owner_new(w->cache, &src, NULL);
	assert_int_equal(pthread_barrier_init(&w->start, NULL, READERS), 0);
}

static void world_run(struct world *w, void (*read)(struct world *w, unsigned int reader))
{
	struct reader readers[READERS];
	w->read = read;
	for (unsigned int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.world = w, .number = i};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]),
				 0);
	}
	for (unsigned int i = 0; i < READERS; i++)
		pthread_join(readers[i].thread, NULL);
}

static void world_close(struct world *w)
{
	cache_owner_free(w->owner);
	cache_free(w->cache);
	budget_free(w->env.budget);
	pool_free(w->source.pool);
	pthread_barrier_destroy(&w->start);
}

static void read_chunk(struct world *w, struct cache_stream *s, uint64_t n)
{
	const struct chunk_data *c = NULL;
	struct err err = ERR_INIT;
	if (cache_get(w->owner, s, 0, n, NULL, &c, &err)) {
		atomic_fetch_add(&w->failed, 1);
		atomic_fetch_add(&w->wrong, strcmp(err.msg, "no luck") != 0);
		return;
	}
	for (size_t i = 0; i < SIZE; i += 512)
		if (c->elems.fixed.data[i] != (uint8_t)n)
			atomic_fetch_add(&w->wrong, 1);
	cache_put(w->owner, c, true);
}

static void same_chunk(struct world *w, unsigned int reader)
{
	read_chunk(w, NULL, 42);
}

static void sixteen_readers_of_a_chunk_are_one_load(void **state)
{
	struct world w;
	world_open(&w, 1 << 20);
	w.source.delay_us = 20000;
	world_run(&w, same_chunk);
	struct cache_stats st;
	cache_get_stats(w.cache, &st);
	assert_int_equal(atomic_load(&w.wrong), 0);
	assert_int_equal(atomic_load(&w.source.loads[42]), 1);
	assert_int_equal(st.loads, 1);
	assert_int_equal(st.hits + st.waits, READERS - 1);
	assert_int_equal(st.waited.count, 1 + st.waits);
	world_close(&w);
}

static void a_failure_is_returned_to_all_waiting_readers(void **state)
{
	struct world w;
	world_open(&w, 1 << 20);
	w.source.delay_us = 20000;
	atomic_store(&w.source.failing, true);
	world_run(&w, same_chunk);
	assert_int_equal(atomic_load(&w.failed), READERS);
	assert_int_equal(atomic_load(&w.wrong), 0);
	assert_int_equal(atomic_load(&w.source.loads[42]), 1);
	atomic_store(&w.source.failing, false);
	read_chunk(&w, NULL, 42);
	assert_int_equal(atomic_load(&w.failed), READERS + 1);
	atomic_fetch_add(&w.clock, SECOND);
	read_chunk(&w, NULL, 42);
	assert_int_equal(atomic_load(&w.failed), READERS + 1);
	assert_int_equal(atomic_load(&w.source.loads[42]), 2);
	world_close(&w);
}

static void whole_dataset(struct world *w, unsigned int reader)
{
	struct cache_stream *s = cache_stream_new(w->owner);
	for (uint64_t i = 0; i < NCHUNKS; i++)
		read_chunk(w, s, i);
	cache_stream_free(s);
}

static void sixteen_readers_of_a_dataset_load_each_chunk_once(void **state)
{
	struct world w;
	world_open(&w, 2 * NCHUNKS * SIZE);
	world_run(&w, whole_dataset);
	assert_int_equal(atomic_load(&w.wrong), 0);
	assert_int_equal(atomic_load(&w.failed), 0);
	for (size_t i = 0; i < NCHUNKS; i++)
		assert_int_equal(atomic_load(&w.source.loads[i]), 1);
	world_close(&w);
}

enum { PIECES = 8 };

/* Reads a chunk in pieces, as programs read large ones. */
static void in_pieces(struct world *w, unsigned int reader)
{
	for (uint64_t n = reader * 4; n < reader * 4 + 4; n++) {
		for (int piece = 0; piece < PIECES; piece++) {
			const struct chunk_data *c = NULL;
			if (cache_get(w->owner, NULL, 0, n, NULL, &c, NULL)) {
				atomic_fetch_add(&w->failed, 1);
				return;
			}
			usleep(100); /* other readers get their turn between two pieces */
			cache_put(w->owner, c, piece == PIECES - 1);
		}
	}
}

static void large_chunks_stay_until_they_are_read(void **state)
{
	struct world w;
	world_open(&w, 4 * SIZE);
	world_run(&w, in_pieces);
	unsigned int loads = 0;
	for (size_t i = 0; i < NCHUNKS; i++)
		loads += atomic_load(&w.source.loads[i]);
	assert_int_equal(atomic_load(&w.failed), 0);
	assert_in_range(loads, READERS * 4, READERS * 4 * 5 / 4);
	struct cache_stats st;
	cache_get_stats(w.cache, &st);
	assert_true(st.in_flight_max <= st.budget && st.bytes <= st.budget);
	world_close(&w);
}

/* Each chunk is larger than the budget: loads run one after the other, and every read ends. */
static void chunks_larger_than_the_budget_take_turns(void **state)
{
	struct world w;
	world_open(&w, SIZE / 2);
	world_run(&w, in_pieces);
	struct cache_stats st;
	cache_get_stats(w.cache, &st);
	assert_int_equal(atomic_load(&w.failed), 0);
	assert_true(st.in_flight_max < 2 * SIZE);
	world_close(&w);
}

static void at_random(struct world *w, unsigned int reader)
{
	struct cache_stream *s = cache_stream_new(w->owner);
	uint32_t x = reader;
	for (int i = 0; i < 500; i++) {
		x = x * 1664525u + 1013904223u;
		if (x >> 29 == 0)
			cache_advise(w->owner, s, 0, (x >> 8) % NCHUNKS, 5);
		read_chunk(w, s, (x >> 8) % NCHUNKS);
	}
	cache_stream_free(s);
}

static void a_small_budget_is_kept_under_load(void **state)
{
	struct world w;
	world_open(&w, 20 * SIZE);
	world_run(&w, at_random);
	struct cache_stats st;
	cache_get_stats(w.cache, &st);
	assert_int_equal(atomic_load(&w.wrong), 0);
	assert_int_equal(atomic_load(&w.failed), 0);
	assert_true(st.evictions > 0);
	assert_true(st.bytes <= st.budget);
	world_close(&w);
}

static void at_random_while_time_goes_on(struct world *w, unsigned int reader)
{
	uint32_t x = reader;
	for (int i = 0; i < 500; i++) {
		x = x * 1664525u + 1013904223u;
		atomic_fetch_add(&w->clock, SECOND / 1000);
		if (x >> 29 == 0)
			atomic_store(&w->source.failing, x >> 28 & 1);
		read_chunk(w, NULL, (x >> 8) % NCHUNKS);
	}
}

static void failures_come_and_go_under_load(void **state)
{
	struct world w;
	world_open(&w, 20 * SIZE);
	world_run(&w, at_random_while_time_goes_on);
	struct cache_stats st;
	cache_get_stats(w.cache, &st);
	assert_int_equal(atomic_load(&w.wrong), 0);
	assert_true(st.load_failures > 0 && st.load_failures < atomic_load(&w.failed));
	assert_true(st.bytes <= st.budget);
	atomic_store(&w.source.failing, false);
	atomic_fetch_add(&w.clock, SECOND);
	atomic_store(&w.failed, 0);
	for (uint64_t i = 0; i < NCHUNKS; i++)
		read_chunk(&w, NULL, i);
	assert_int_equal(atomic_load(&w.failed), 0);
	world_close(&w);
}

/* Opens a stream, reads a little while much is prefetched, and closes it, again and again. */
static void open_and_close(struct world *w, unsigned int reader)
{
	uint32_t x = reader;
	for (int i = 0; i < 60; i++) {
		struct cache_stream *s = cache_stream_new(w->owner);
		x = x * 1664525u + 1013904223u;
		const uint64_t first = (x >> 8) % (NCHUNKS - 20);
		cache_advise(w->owner, s, 0, first, 20);
		for (uint64_t n = first; n < first + x % 4; n++)
			read_chunk(w, s, n);
		cache_stream_free(s);
	}
}

static void closing_a_stream_takes_nothing_from_others(void **state)
{
	struct world w;
	world_open(&w, 60 * SIZE);
	w.source.delay_us = 200;
	w.source.cancels = true;
	world_run(&w, open_and_close);
	assert_int_equal(atomic_load(&w.failed), 0);
	assert_int_equal(atomic_load(&w.wrong), 0);
	assert_true(atomic_load(&w.source.cancelled) > 0);
	struct cache_stats st;
	cache_get_stats(w.cache, &st);
	assert_int_equal(st.load_failures, 0);
	for (int i = 0; i < 5000 && (st.loading > 0 || st.queued > 0); i++) {
		usleep(1000);
		cache_get_stats(w.cache, &st);
	}
	assert_int_equal(st.in_flight, 0);
	assert_int_equal(st.queued, 0);
	assert_true(st.bytes <= st.budget);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixteen_readers_of_a_chunk_are_one_load),
		cmocka_unit_test(a_failure_is_returned_to_all_waiting_readers),
		cmocka_unit_test(sixteen_readers_of_a_dataset_load_each_chunk_once),
		cmocka_unit_test(large_chunks_stay_until_they_are_read),
		cmocka_unit_test(chunks_larger_than_the_budget_take_turns),
		cmocka_unit_test(a_small_budget_is_kept_under_load),
		cmocka_unit_test(failures_come_and_go_under_load),
		cmocka_unit_test(closing_a_stream_takes_nothing_from_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
