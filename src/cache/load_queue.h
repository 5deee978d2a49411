/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of loads, and the eviction of chunks to make room for them. Before a load begins, the
 * cache makes room for its peak memory. So loaded chunks and loads in flight do not exceed the part
 * of the budget that is left to chunks, except for a load that does not fit and runs alone.
 *
 * Readers' loads begin in the order of the requests. While the first one does not fit, none begins:
 * a large chunk must not wait forever behind small ones. A load that does not fit after all idle
 * chunks are evicted begins when no other load is in flight and no chunk is held. (If some chunk is
 * always held, it begins after LOAD_QUEUE_PATIENCE chunks were released.) Prefetches begin when no
 * reader's load is queued, at most as many in parallel as the store serves. Loads that the source
 * joins to one request begin together.
 *
 * Programs read a chunk piece by piece. If chunks are large, readers of several chunks would evict
 * each other's chunk before its next piece is read, and load it again for each piece. So for a
 * short time a large load does not evict a chunk whose last read did not reach its end. A reader
 * whose load is queued tries again after LOAD_QUEUE_LOOK_NS.
 */
#ifndef CACHE_LOAD_QUEUE_H
#define CACHE_LOAD_QUEUE_H

#include "entry.h"

enum {
	LOAD_QUEUE_PATIENCE = 64,
	LOAD_QUEUE_LARGE = 32,		/* a load of more than budget / 32 is large */
	LOAD_QUEUE_LOOK_NS = 25000000,	/* interval at which a reader retries a queued load */
	LOAD_QUEUE_KEPT_NS = 100000000, /* after a read that did not reach the chunk's end */
};
#define LOAD_QUEUE_KEPT_MAX_NS UINT64_C(2000000000) /* the same, at most, after the load */

/* The time of a call, and the work that it does after it has released the lock. */
struct todo {
	uint64_t now;
	struct cache_fill *first, **end; /* loads to start, in order */
	struct entry *victims;
};

void todo_init(struct todo *todo, const struct cache *c);
/* Starts the loads and frees the victims. Call it without the lock. If a load completes before the
 * source's load() returns, this function also starts the loads that fit now. */
void todo_do(struct todo *todo, struct cache *c);

/* Begins the queued loads that fit. To be called after each request for a load, and when there may
 * be more room. */
void load_queue_run_locked(struct cache *c, struct todo *todo);
/* Begins a load again that its source has cancelled, with the memory reserved for it. */
void load_queue_restart_locked(struct cache *c, struct entry *e, struct todo *todo);
/* Decrements owner->busy. The owner may be freed as soon as the lock is released. */
void load_queue_idle_locked(struct cache_owner *o);
/* To be called when a reader releases a chunk. done is true if it has read to the end. */
void load_queue_unheld_locked(struct cache *c, struct entry *e, bool done, uint64_t now);
/* Evicts idle chunks until the budget is not exceeded. */
void load_queue_trim_locked(struct cache *c, struct todo *todo);
/* Returns the bytes that all unread prefetches may take, which is half of the budget for chunks. */
uint64_t load_queue_prefetch_share(const struct cache *c);

#endif
