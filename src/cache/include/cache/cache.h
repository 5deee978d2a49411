/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps decoded chunks in memory, within the part of the budget that is left to chunks. All readers
 * that wait for a chunk share one load. No I/O happens under a lock. A failure of a load is cached
 * for a second: if a long read fails, the kernel reads each of its pages again, and these reads
 * must not cause one request each.
 *
 * An owner (one image) has a source; the key of an entry is (owner, dataset, slot). The cache
 * reports the chunks that each stream (open file) reads to prefetch/ and loads those that prefetch/
 * predicts.
 *
 * The cache charges loaded chunks, and the peak memory of loads in flight, to the budget of its
 * environment (base/budget.h), which metadata also uses. A load that does not fit is queued,
 * readers' loads before prefetches. If it does not fit after all idle chunks are evicted, it
 * waits until readers have released their chunks. So a reader must not hold a chunk while it waits
 * for another one. When metadata needs more, the cache evicts idle chunks.
 *
 * Eviction follows 2Q (Johnson and Shasha, VLDB 1994; reasons in two_q.h). A loaded chunk is new.
 * All reads until a quarter of the budget has been loaded count as one use. A chunk that is used
 * again after that is main. While new chunks take more than a quarter of the budget, they are
 * evicted first, so a scan replaces only new chunks.
 */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/cancel.h>
#include <base/env.h>
#include <base/histogram.h>
#include <base/mem.h>
#include <data/chunk_data.h>

struct cache;
struct cache_owner;
struct cache_stream;
struct cache_fill; /* one requested load */

/* hits counts reads of cached chunks or failures, misses loads that readers started (or found
 * queued), waits reads that joined a load in flight. wait_ns is the time spent in misses and waits.
 * prefetches counts prefetches that began, prefetch_used those that were read later, and
 * prefetch_wasted those that were evicted, failed, cancelled or freed before a read. */
struct cache_stats {
	uint64_t hits, misses, waits, wait_ns;
	uint64_t loads, load_failures, evictions;
	uint64_t prefetches, prefetch_used, prefetch_wasted;
	uint64_t cancelled; /* prefetches that never began */
	/* current values */
	uint64_t bytes;
	uint64_t budget, charged;	   /* the limit, and bytes charged for metadata */
	uint64_t in_flight, in_flight_max; /* peak bytes of the loads in flight */
	uint64_t loading, queued;	   /* loads */
	struct histogram_counts waited;	   /* times of all reads that waited */
};

struct cache_owner_stats {
	uint64_t hits, misses, waits, wait_ns;
	uint64_t loads, failures;
	uint64_t prefetches, prefetch_used, prefetch_wasted;
};

/* Uses the clock, the log and the budget (not NULL) of env. max_prefetch is the number of
 * prefetches that may be in flight, which is the number of parallel requests of the store. Loads
 * that the source joins count as one. */
struct cache *cache_new(const struct env *env, unsigned int max_prefetch, struct err *err);
void cache_free(struct cache *c); /* after all owners are freed */
void cache_get_stats(struct cache *c, struct cache_stats *out);

enum { CACHE_JOINED_MAX = 512 };

/* A source's constant properties of a dataset. */
struct cache_dataset {
	uint64_t cost;	    /* bytes of memory that a loaded chunk takes */
	uint64_t load_cost; /* peak bytes of a load, encoded and decoded */
	/* So many loads of neighbouring chunks that begin together take about one request, because
	 * the source joins them (at most CACHE_JOINED_MAX). 0 and 1 mean that it does not. */
	uint64_t joined;
	uint64_t read_ahead; /* bytes that the kernel reads ahead in the file */
	uint64_t nslots;
	uint32_t rank;
	const uint64_t *counts; /* chunks in each dimension; borrowed from the source */
};

/* Each stored chunk of a dataset has a slot, 0 .. nslots-1. Slots have the order of the chunks'
 * numbers; a number is the chunk's row-major index in the grid. Chunks that are not stored may have
 * no slot. */
struct cache_source {
	/* Starts a load, which ends with exactly one call of cache_complete(), from any thread,
	 * possibly before this function returns. */
	void (*load)(void *ctx, uint32_t dataset, uint64_t slot, struct cache_fill *fill);
	/* Called around several loads of one thread, unless both are NULL. The result of begin,
	 * which may be NULL, is cache_fill_batch() of these loads. Loads may be as late as end. */
	void *(*begin)(void *ctx);
	void (*end)(void *ctx, void *batch);
	/* These are pure and quick, because they are called with the cache's lock held. */
	void (*describe)(void *ctx, uint32_t dataset, struct cache_dataset *out);
	uint64_t (*number)(void *ctx, uint32_t dataset, uint64_t slot);
	bool (*slot)(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot);
	void *ctx;
};
struct cache_owner *cache_owner_new(struct cache *c, const struct cache_source *src,
				    struct err *err);
/* Drops queued loads, waits for those in flight and evicts the owner's chunks. Requires that no
 * chunk is held and no stream is open. */
void cache_owner_clear(struct cache_owner *o);
/* The same, and frees the owner. */
void cache_owner_free(struct cache_owner *o);
void cache_owner_get_stats(struct cache_owner *o, struct cache_owner_stats *out);

/* Ends a load. The contents of chunk are transferred. On failure, code is a negative errno and err
 * contains the reason (copied). All waiting readers and all reads during the next second fail with
 * it; after that, a read loads the chunk again. With -ENOMEM and -EINTR, only the waiting readers
 * fail. -ECANCELED means that the source has seen cache_fill_cancel() and cancelled the load; if a
 * reader or a stream has requested the chunk again, the load begins again. */
void cache_complete(struct cache_fill *fill, int code, struct chunk_data *chunk,
		    const struct err *err);

/* Returns a flag that is true while no reader and no stream needs the load. Then the source may end
 * it with -ECANCELED. The flag is borrowed until cache_complete(). */
const atomic_bool *cache_fill_cancel(const struct cache_fill *fill);
/* Returns true if the load began as a prefetch. Readers' loads should not wait for it. */
bool cache_fill_ahead(const struct cache_fill *fill);

/* Returns what begin() of the source has returned. It is valid until load() returns. */
void *cache_fill_batch(const struct cache_fill *fill);

/* A stream observes the access pattern of one open file. Returns NULL if out of memory; reads work
 * without a stream. */
struct cache_stream *cache_stream_new(struct cache_owner *o);
/* Cancels the prefetches that only this stream requested. */
void cache_stream_free(struct cache_stream *s);

/* Blocks until the chunk is loaded. The chunk is held until cache_put(). stream may be NULL (no
 * prefetching), and so may cancel. Fails with the error of the load, or of a load or prefetch of
 * this chunk that failed within the last second. Fails with -EINTR if cancelled; a load in flight
 * continues, because other reads may need it. */
int cache_get(struct cache_owner *o, struct cache_stream *s, uint32_t dataset, uint64_t slot,
	      struct cancel *cancel, const struct chunk_data **out, struct err *err);
/* Releases a chunk. done is true if the read reached the end of the chunk. If it did not, large
 * loads do not evict the chunk for a short time, because the program probably reads the next piece
 * of it. */
void cache_put(struct cache_owner *o, const struct chunk_data *chunk, bool done);

/* For a read of several chunks: prefetches the slots in [first, first + n) that are not cached.
 * stream may be NULL. Never blocks. Returns how many of the n slots are cached, requested or past
 * the last one: fewer than n if prefetches use up their share of the budget or if out of memory. */
uint64_t cache_advise(struct cache_owner *o, struct cache_stream *s, uint32_t dataset,
		      uint64_t first, uint64_t n);
/* For a program that reads in file order, across datasets or within one. slots is the number of
 * slots that it has read since the last call, or, if begins is true, in all. cost, joined and
 * read_ahead of the dataset are used. Returns how many slots to prefetch. */
uint32_t cache_stream_depth(struct cache_stream *s, uint64_t slots, bool begins,
			    const struct cache_dataset *d);
/* Sets whether the caller prefetches for a program that reads a dataset in order. If so, the cache
 * prefetches only for programs that read in nested loops. */
void cache_stream_in_order(struct cache_stream *s, bool in_order);

#endif
