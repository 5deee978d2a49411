/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source under the test's control. Chunk n of dataset d holds `size` bytes of value d * 31 + n.
 * Inline: a load completes before load() returns. Deferred: a load completes when the test
 * completes it, or in fake_read() when its reader has waited for the latency (one reader at a
 * time). Only the first of every `sparse` chunks is stored.
 *
 * The clock advances only if a reader waits or the test moves it. Single-threaded; tests with
 * threads have another source.
 */
#ifndef TESTS_CACHE_FAKE_SOURCE_H
#define TESTS_CACHE_FAKE_SOURCE_H

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <cache/cache.h>
#include <prefetch/kernel.h>

#include "cache/entry.h"

enum { FAKE_LOADS = 4096, FAKE_PREFETCH = 60 };

#define FAKE_SECOND UINT64_C(1000000000)

struct fake_source {
	struct env env; /* ctx: the source */
	uint64_t clock;
	struct cache *cache;
	struct cache_owner *owner;
	size_t size;
	size_t load_size; /* at the peak of a load; 0: size */
	uint64_t nchunks; /* numbers in the grid */
	uint32_t rank;
	uint64_t counts[3];
	uint64_t sparse; /* 0: all are stored */
	uint64_t joined; /* as in struct cache_dataset */
	size_t nbatches;
	bool deferred;
	uint64_t latency;	      /* ns */
	uint64_t fail_from, fail_end; /* chunks that fail, with fail_code */
	int fail_code;
	size_t nloads;
	uint64_t loads[FAKE_LOADS]; /* chunk numbers in order of their loads */
	uint32_t datasets[FAKE_LOADS];
	bool ahead[FAKE_LOADS];		      /* began as a prefetch */
	struct cache_fill *fills[FAKE_LOADS]; /* deferred: NULL when completed */
	uint64_t due[FAKE_LOADS];
};

static inline uint8_t fake_value(uint32_t dataset, uint64_t chunk)
{
	return (uint8_t)(dataset * 31 + chunk);
}

static inline void fake_finish(struct fake_source *f, uint32_t dataset, uint64_t chunk,
			       struct cache_fill *fill)
{
	struct chunk_data loaded = {0};
	struct err err = ERR_INIT;
	if (chunk >= f->fail_from && chunk < f->fail_end) {
		err_set(&err, f->fail_code, "chunk %u/%u is damaged", dataset, (unsigned int)chunk);
		cache_complete(fill, err.code, NULL, &err);
		return;
	}
	int rc = bytes_append_zero(&loaded.elems.fixed, f->size);
	assert(rc == 0);
	(void)rc;
	if (f->size)
		memset(loaded.elems.fixed.data, fake_value(dataset, chunk), f->size);
	cache_complete(fill, 0, &loaded, NULL);
	assert(!loaded.elems.fixed.data);
}

static inline uint64_t fake_step(const struct fake_source *f)
{
	return f->sparse ? f->sparse : 1;
}

static inline void fake_load(void *ctx, uint32_t dataset, uint64_t chunk, struct cache_fill *fill)
{
	struct fake_source *f = ctx;
	assert(chunk * fake_step(f) < f->nchunks && f->nloads < FAKE_LOADS);
	f->loads[f->nloads] = chunk;
	f->datasets[f->nloads] = dataset;
	f->ahead[f->nloads] = cache_fill_ahead(fill);
	f->due[f->nloads] = f->clock + f->latency;
	f->fills[f->nloads++] = f->deferred ? fill : NULL;
	if (!f->deferred)
		fake_finish(f, dataset, chunk, fill);
}

/* Completes the i-th load. */
static inline void fake_complete(struct fake_source *f, size_t i)
{
	struct cache_fill *fill = f->fills[i];
	assert(fill);
	f->fills[i] = NULL;
	fake_finish(f, f->datasets[i], f->loads[i], fill);
}

static inline void fake_complete_all(struct fake_source *f)
{
	for (size_t i = 0; i < f->nloads; i++)
		if (f->fills[i])
			fake_complete(f, i);
}

/* Cancels loads that may be cancelled, as a store may. */
static inline size_t fake_give_up(struct fake_source *f)
{
	size_t n = 0;
	for (size_t i = 0; i < f->nloads; i++) {
		struct cache_fill *fill = f->fills[i];
		struct err err = ERR_INIT;
		if (!fill || !atomic_load(cache_fill_cancel(fill)))
			continue;
		f->fills[i] = NULL;
		n++;
		cache_complete(fill, err_set(&err, -ECANCELED, "cancelled"), NULL, &err);
	}
	return n;
}

static inline void *fake_begin(void *ctx)
{
	((struct fake_source *)ctx)->nbatches++;
	return NULL;
}

static inline void fake_end(void *ctx, void *batch)
{
}

static inline void fake_describe(void *ctx, uint32_t dataset, struct cache_dataset *out)
{
	struct fake_source *f = ctx;
	(void)dataset;
	*out = (struct cache_dataset){.cost = f->size,
				      .load_cost = f->load_size ? f->load_size : f->size,
				      .joined = f->joined,
				      .read_ahead = KERNEL_READ_AHEAD,
				      .nslots = div_up_u64(f->nchunks, fake_step(f)),
				      .rank = f->rank,
				      .counts = f->counts};
}

static inline uint64_t fake_number(void *ctx, uint32_t dataset, uint64_t slot)
{
	(void)dataset;
	return slot * fake_step(ctx);
}

static inline bool fake_slot(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot)
{
	struct fake_source *f = ctx;
	(void)dataset;
	*slot = number / fake_step(f);
	return number < f->nchunks && number % fake_step(f) == 0;
}

static inline struct cache_source fake_source(struct fake_source *f)
{
	return (struct cache_source){.load = fake_load,
				     .begin = fake_begin,
				     .end = fake_end,
				     .describe = fake_describe,
				     .number = fake_number,
				     .slot = fake_slot,
				     .ctx = f};
}

static inline uint64_t fake_now(const struct env *env)
{
	return ((const struct fake_source *)env->ctx)->clock;
}

/* Makes the n chunks from first fail, in every dataset. */
static inline void fake_fail(struct fake_source *f, uint64_t first, uint64_t n, int code)
{
	f->fail_from = first;
	f->fail_end = first + n;
	f->fail_code = code;
}

static inline void fake_mend(struct fake_source *f)
{
	fake_fail(f, 0, 0, 0);
}

/* budget in chunks of size; each entry costs a little more than its bytes. */
static inline void fake_open(struct fake_source *f, size_t size, uint64_t nchunks, uint64_t budget)
{
	*f = (struct fake_source){.size = size,
				  .nchunks = nchunks,
				  .rank = 1,
				  .counts = {nchunks},
				  .clock = 7 * FAKE_SECOND};
	f->env = (struct env){.now = fake_now, .ctx = f};
	const uint64_t bytes = budget * (size + 512);
	f->env.budget =
		budget_new(&(struct budget_limits){.bytes = bytes, .metadata_min = 10 * bytes});
	const struct cache_source src = fake_source(f);
	f->cache = cache_new(&f->env, FAKE_PREFETCH, NULL);
	f->owner = cache_owner_new(f->cache, &src, NULL);
}

static inline void fake_close(struct fake_source *f)
{
	cache_owner_free(f->owner);
	cache_free(f->cache);
	budget_free(f->env.budget);
}

/* Completes the load that is due first and moves the clock to that time. False: no load is in
 * flight. */
static inline bool fake_complete_next(struct fake_source *f)
{
	size_t first = FAKE_LOADS;
	for (size_t i = 0; i < f->nloads; i++)
		if (f->fills[i] && (first == FAKE_LOADS || f->due[i] < f->due[first]))
			first = i;
	if (first == FAKE_LOADS)
		return false;
	f->clock = max_u64(f->clock, f->due[first]);
	fake_complete(f, first);
	return true;
}

/* Reads a chunk: a cancelled read is repeated until its load is complete, because no other thread
 * completes loads. Adds the waiting time to the stream as cache_get() does. */
static inline const struct chunk_data *fake_take(struct fake_source *f, struct cache_stream *s,
						 uint32_t dataset, uint64_t slot)
{
	const struct chunk_data *c = NULL;
	const uint64_t since = f->clock;
	struct cancel now;
	cancel_init(&now);
	cancel_fire(&now);
	int rc;
	while ((rc = cache_get(f->owner, s, dataset, slot, &now, &c, NULL)) == -EINTR)
		if (!fake_complete_next(f))
			break;
	cancel_release(&now);
	if (s)
		s->waited_ns += f->clock - since;
	return rc ? NULL : c;
}

static inline bool fake_read(struct fake_source *f, struct cache_stream *s, uint32_t dataset,
			     uint64_t slot)
{
	const struct chunk_data *c = fake_take(f, s, dataset, slot);
	if (!c)
		return false;
	bool right = c->elems.fixed.len == f->size &&
		     c->elems.fixed.data[0] == fake_value(dataset, slot);
	cache_put(f->owner, c, true);
	return right;
}

static inline struct cache_stats fake_stats(struct fake_source *f)
{
	struct cache_stats st;
	cache_get_stats(f->cache, &st);
	return st;
}

#endif
