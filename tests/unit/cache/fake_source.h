/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source under the test's control. Chunk n of dataset d holds `size` bytes of value d * 31 + n.
 * Inline: a load completes before it returns. Deferred: it waits until the test completes it.
 * The clock stands still unless the test moves it. Single-threaded; tests with threads bring their
 * own.
 */
#ifndef TESTS_CACHE_FAKE_SOURCE_H
#define TESTS_CACHE_FAKE_SOURCE_H

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <cache/cache.h>

enum { FAKE_LOADS = 4096 };

#define FAKE_SECOND UINT64_C(1000000000)

struct fake_source {
	struct env env; /* ctx: the source */
	uint64_t clock;
	struct cache *cache;
	struct cache_owner *owner;
	size_t size;
	uint64_t nchunks;
	bool deferred;
	uint64_t fail_from, fail_end; /* chunks that fail, with fail_code */
	int fail_code;
	size_t nloads;
	uint64_t loads[FAKE_LOADS]; /* chunk numbers in order of their loads */
	uint32_t datasets[FAKE_LOADS];
	struct cache_fill *fills[FAKE_LOADS]; /* deferred: NULL when completed */
};

static inline uint8_t fake_value(uint32_t dataset, uint64_t chunk)
{
	return (uint8_t)(dataset * 31 + chunk);
}

static inline void fake_finish(struct fake_source *f, uint32_t dataset, uint64_t chunk,
			       struct cache_fill *fill)
{
	struct cache_chunk loaded = {0};
	struct err err = ERR_INIT;
	if (chunk >= f->fail_from && chunk < f->fail_end) {
		err_set(&err, f->fail_code, "chunk %u/%u is damaged", dataset, (unsigned int)chunk);
		cache_complete(fill, err.code, NULL, &err);
		return;
	}
	int rc = bytes_append_zero(&loaded.slot, f->size);
	assert(rc == 0);
	(void)rc;
	if (f->size)
		memset(loaded.slot.data, fake_value(dataset, chunk), f->size);
	cache_complete(fill, 0, &loaded, NULL);
	assert(!loaded.slot.data);
}

static inline void fake_load(void *ctx, uint32_t dataset, uint64_t chunk, struct cache_fill *fill)
{
	struct fake_source *f = ctx;
	assert(chunk < f->nchunks && f->nloads < FAKE_LOADS);
	f->loads[f->nloads] = chunk;
	f->datasets[f->nloads] = dataset;
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

static inline uint64_t fake_cost(void *ctx, uint32_t dataset)
{
	(void)dataset;
	return ((struct fake_source *)ctx)->size;
}

static inline uint64_t fake_nchunks(void *ctx, uint32_t dataset)
{
	(void)dataset;
	return ((struct fake_source *)ctx)->nchunks;
}

static inline uint64_t fake_now(const struct env *env)
{
	return ((const struct fake_source *)env->ctx)->clock;
}

/* From now on the n chunks from first fail, in every dataset. */
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
	*f = (struct fake_source){.size = size, .nchunks = nchunks, .clock = 7 * FAKE_SECOND};
	f->env = (struct env){.now = fake_now, .ctx = f};
	const struct cache_source src = {
		.load = fake_load, .cost = fake_cost, .nchunks = fake_nchunks, .ctx = f};
	f->cache = cache_new(&f->env, budget * (size + 512), NULL);
	f->owner = cache_owner_new(f->cache, &src, NULL);
}

static inline void fake_close(struct fake_source *f)
{
	cache_owner_free(f->owner);
	cache_free(f->cache);
}

static inline struct cache_stats fake_stats(struct fake_source *f)
{
	struct cache_stats st;
	cache_get_stats(f->cache, &st);
	return st;
}

#endif
