/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks in memory, as the bytes that an image shows: LRU under a byte budget, one load per chunk
 * however many readers wait, no I/O and no callback under a lock. A failed load answers for its
 * chunk for a second: when a long read fails, the kernel asks again for each page of it, and that
 * should not be a request each.
 *
 * An owner (one image) has a load function; entries are (owner, dataset, chunk). The cache watches
 * which chunks a stream (open file) reads of a dataset and loads the next ones ahead.
 */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cancel.h>
#include <base/env.h>
#include <base/err.h>
#include <base/mem.h>

struct cache;
struct cache_owner;
struct cache_stream;
struct cache_fill; /* one load under way */

/* One loaded chunk; constant while it is held. */
struct cache_chunk {
	bool absent;	   /* nothing is stored: the reader renders fill */
	struct bytes slot; /* bytes of the chunk's slot */
	struct bytes heap; /* bytes of its heap region (variable length) */
};

struct cache_stats {
	/* hits: kept failures too. waits: readers that joined a load. */
	uint64_t hits, misses, loads, load_failures, waits;
	uint64_t evictions, prefetches, prefetch_used, prefetch_wasted;
	uint64_t bytes, budget; /* now */
};

/* Of env, the clock and the log are used. budget: bytes of loaded chunks; chunks that readers hold
 * may exceed it. */
struct cache *cache_new(const struct env *env, uint64_t budget, struct err *err);
void cache_free(struct cache *c); /* no owner is left */
void cache_get_stats(struct cache *c, struct cache_stats *out);

/* load: starts loading and later calls cache_complete() exactly once, from any thread, possibly
 * before it returns. cost: bytes that a chunk of this dataset will take (for the budget of what is
 * in flight). nchunks: number of chunks of a dataset (limit for reading ahead). */
struct cache_source {
	void (*load)(void *ctx, uint32_t dataset, uint64_t chunk, struct cache_fill *fill);
	uint64_t (*cost)(void *ctx, uint32_t dataset);
	uint64_t (*nchunks)(void *ctx, uint32_t dataset);
	void *ctx;
};
struct cache_owner *cache_owner_new(struct cache *c, const struct cache_source *src,
				    struct err *err);
/* Waits for loads under way, drops the owner's chunks. No chunk is held, no stream is open. */
void cache_owner_free(struct cache_owner *o);

/* chunk: contents are transferred. On failure code is a negative errno and err says why (copied);
 * a failure is handed to all who wait, and to all who ask within a second after it; then the chunk
 * is loaded again. -ENOMEM and -EINTR pass at once: only those who wait get them. */
void cache_complete(struct cache_fill *fill, int code, struct cache_chunk *chunk,
		    const struct err *err);

/* A stream tells one reader's pattern from another's. NULL without memory: reads work without. */
struct cache_stream *cache_stream_new(struct cache_owner *o);
void cache_stream_free(struct cache_stream *s);

/* Blocking. Holds the chunk until cache_put(). stream may be NULL (no reading ahead), cancel too.
 * Errors are the load's, or those of one that failed within the last second, if only ahead of
 * readers; -EINTR when cancel said so (the load goes on, for others). */
int cache_get(struct cache_owner *o, struct cache_stream *s, uint32_t dataset, uint64_t chunk,
	      struct cancel *cancel, const struct cache_chunk **out, struct err *err);
void cache_put(struct cache_owner *o, const struct cache_chunk *chunk);
/* Starts loads of chunks [first, first + n) that are not there, as far as the budget of what is in
 * flight goes; for a large read over several chunks. Never blocks. */
void cache_advise(struct cache_owner *o, uint32_t dataset, uint64_t first, uint64_t n);

#endif
