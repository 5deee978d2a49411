/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks in memory, as the bytes that an image shows, within what the budget leaves to chunks: one
 * load per chunk however many readers wait, no I/O under a lock. A failed load answers for its
 * chunk for a second: when a long read fails, the kernel asks again for each page of it, and that
 * should not be a request each.
 *
 * An owner (one image) has a source; entries are (owner, dataset, slot). Of each stream (open file)
 * the cache tells prefetch/ which chunks it reads, and loads those that are expected next.
 *
 * The cache charges what is loaded, and what loads under way take at their peak, to the budget of
 * its environment (base/budget.h), where metadata counts, too. A load that does not fit is queued,
 * readers' loads before prefetches; one may always run, however large. So a reader must not hold a
 * chunk while it waits for another one. When metadata takes more, idle chunks are evicted.
 *
 * What stays is chosen as 2Q does (Johnson and Shasha, VLDB 1994; two_q.h says why): a chunk that
 * came lately is new, and all reads within its first quarter of a budget count as one use; only a
 * chunk that is used again after that is kept before others. A scan passes through what is new.
 */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/cancel.h>
#include <base/env.h>
#include <base/histogram.h>
#include <base/mem.h>

struct cache;
struct cache_owner;
struct cache_stream;
struct cache_fill; /* one load that is asked for */

/* One loaded chunk; constant while it is held. */
struct cache_chunk {
	bool absent;	   /* nothing is stored: the reader renders fill */
	struct bytes slot; /* bytes of the chunk's slot */
	struct bytes heap; /* bytes of its heap region (variable length) */
};

/* hits: chunks that were there, kept failures too; misses: loads that readers began (or found
 * queued); waits: readers that joined a load; wait_ns: what readers waited for either.
 * prefetches: loads begun ahead of readers; used: of those, read later; wasted: evicted, failed,
 * cancelled or freed without having been read. */
struct cache_stats {
	uint64_t hits, misses, waits, wait_ns;
	uint64_t loads, load_failures, evictions;
	uint64_t prefetches, prefetch_used, prefetch_wasted;
	uint64_t cancelled; /* prefetches that never began */
	/* now */
	uint64_t bytes;
	uint64_t budget, charged;	   /* of the budget: all, and what metadata takes */
	uint64_t in_flight, in_flight_max; /* bytes, at the peak of each load */
	uint64_t loading, queued;	   /* loads */
	struct histogram_counts waited;	   /* by each reader whose chunk was not there */
};

struct cache_owner_stats {
	uint64_t hits, misses, waits, wait_ns;
	uint64_t loads, load_bytes, failures; /* load_bytes: as loaded, decoded */
	uint64_t prefetches, prefetch_used, prefetch_wasted;
};

/* Of env, the clock, the log and the budget (never NULL here) are used. max_prefetch: prefetches
 * that may be under way at once: what the store does side by side. */
struct cache *cache_new(const struct env *env, unsigned int max_prefetch, struct err *err);
void cache_free(struct cache *c); /* no owner is left */
void cache_get_stats(struct cache *c, struct cache_stats *out);

/* What a source says of a dataset; constant. */
struct cache_dataset {
	uint64_t cost;	    /* bytes of memory that a loaded chunk takes */
	uint64_t load_cost; /* and a load at its peak: encoded and decoded */
	uint64_t nslots;
	uint32_t rank;
	const uint64_t *counts; /* chunks in each dimension; borrowed from the source */
};

/* A dataset's chunks have a slot each, 0 .. nslots-1, in the order of their numbers; a number is
 * the chunk's place in the grid, row-major. Some numbers may have no slot: nothing is stored. */
struct cache_source {
	/* Starts loading and later calls cache_complete() exactly once, from any thread, possibly
	 * before it returns. */
	void (*load)(void *ctx, uint32_t dataset, uint64_t slot, struct cache_fill *fill);
	/* Pure and quick: called with the cache's lock held. */
	void (*describe)(void *ctx, uint32_t dataset, struct cache_dataset *out);
	uint64_t (*number)(void *ctx, uint32_t dataset, uint64_t slot);
	bool (*slot)(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot);
	void *ctx;
};
struct cache_owner *cache_owner_new(struct cache *c, const struct cache_source *src,
				    struct err *err);
/* Begins no load any more, waits for those under way, drops the owner's chunks. No chunk is held,
 * no stream is open. */
void cache_owner_free(struct cache_owner *o);
void cache_owner_get_stats(struct cache_owner *o, struct cache_owner_stats *out);

/* chunk: contents are transferred. On failure code is a negative errno and err says why (copied);
 * a failure is handed to all who wait, and to all who ask within a second after it; then the chunk
 * is loaded again. -ENOMEM and -EINTR pass at once: only those who wait get them. -ECANCELED: the
 * source has cancelled the load, as it was asked to; if a reader has come for it meanwhile, it
 * begins again. */
void cache_complete(struct cache_fill *fill, int code, struct cache_chunk *chunk,
		    const struct err *err);

/* True while no reader and no stream needs the load: the source may cancel it, with -ECANCELED.
 * Borrowed until cache_complete(). */
const atomic_bool *cache_fill_cancel(const struct cache_fill *fill);
/* True when no reader waited for the chunk as its load began: other loads should not wait for this
 * one. */
bool cache_fill_ahead(const struct cache_fill *fill);

/* A stream tells one reader's pattern from another's. NULL without memory: reads work without. */
struct cache_stream *cache_stream_new(struct cache_owner *o);
/* Cancels the prefetches that were asked for by this stream alone. */
void cache_stream_free(struct cache_stream *s);

/* Blocking. Holds the chunk until cache_put(). stream may be NULL (no prefetching), cancel too.
 * Errors are the load's, or those of one that failed within the last second, if only ahead of
 * readers; -EINTR when cancel said so (a load that has begun goes on, for others). */
int cache_get(struct cache_owner *o, struct cache_stream *s, uint32_t dataset, uint64_t slot,
	      struct cancel *cancel, const struct cache_chunk **out, struct err *err);
/* done: the reader has come to the chunk's end. A large chunk that is not done stays for a moment,
 * because the reader will be back for the next piece of it. */
void cache_put(struct cache_owner *o, const struct cache_chunk *chunk, bool done);

/* Asks for slots [first, first + n) that are not there, ahead of a reader that will want them; for
 * a large read over several chunks. stream may be NULL. Never blocks. Returns how many of the n
 * are there or asked for: fewer when prefetches have taken up their share of the budget. */
uint64_t cache_advise(struct cache_owner *o, struct cache_stream *s, uint32_t dataset,
		      uint64_t first, uint64_t n);
/* For a reader that goes through the file in its order, from dataset to dataset: it has moved on
 * by so many slots. Returns how many slots should be asked for ahead of it. */
uint32_t cache_stream_depth(struct cache_stream *s, uint64_t slots, uint64_t cost);

#endif
