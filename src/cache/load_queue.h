/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of loads, and what is evicted to make room for them. Room is made when a load begins,
 * for the memory that it takes at its peak. So what is loaded and what is under way never exceed
 * what the budget leaves to chunks.
 *
 * Readers' loads begin in the order in which they were asked for. While the first one does not fit,
 * none begins: a large chunk must not wait for ever behind small ones. A load that is larger than
 * all the room there is begins when no other load is under way and no chunk is held. (Where others
 * always hold some chunk, it begins after LOAD_QUEUE_PATIENCE of them were put back.) Prefetches
 * begin when no reader's load is queued, as many side by side as the store takes.
 *
 * A reader reads a chunk piece by piece. Where chunks are large, the readers of several chunks
 * would evict each other's before the next piece is read, and load them again for each piece. So a
 * large load does not evict a chunk that was read a moment ago and not to its end. The delay is
 * limited; a reader whose load is queued looks again after LOAD_QUEUE_LOOK_NS.
 */
#ifndef CACHE_LOAD_QUEUE_H
#define CACHE_LOAD_QUEUE_H

#include "entry.h"

enum {
	LOAD_QUEUE_PATIENCE = 64,
	LOAD_QUEUE_LARGE = 32,		/* parts of the budget: a load of one is large */
	LOAD_QUEUE_LOOK_NS = 25000000,	/* between two looks of a reader whose load is queued */
	LOAD_QUEUE_KEPT_NS = 100000000, /* after a read that did not come to the chunk's end */
};
#define LOAD_QUEUE_KEPT_MAX_NS UINT64_C(2000000000) /* after it was loaded */

/* A call's time, and what it decides under the lock and does after it. */
struct todo {
	uint64_t now;
	struct cache_fill *first, **end; /* loads to start, in order */
	struct entry *victims;
};

void todo_init(struct todo *todo, const struct cache *c);
/* Without the lock: starts the loads and frees the victims. A load may complete before it returns
 * from its source, in this thread; what that makes room for is started here too, not within it. */
void todo_do(struct todo *todo, struct cache *c);

/* Begins the loads that may begin. To be called after each request for a load, and when there may
 * be more room. */
void load_queue_run_locked(struct cache *c, struct todo *todo);
/* A load that its source has cancelled begins again; it keeps its room. */
void load_queue_restart_locked(struct cache *c, struct entry *e, struct todo *todo);
/* One thing less that an owner has to wait for; the owner may be gone once the lock is free. */
void load_queue_rest_locked(struct cache_owner *o);
/* A reader puts a chunk back, and has or has not come to its end. */
void load_queue_unheld_locked(struct cache *c, struct entry *e, bool done, uint64_t now);
/* Evicts idle chunks until the budget is kept. */
void load_queue_trim_locked(struct cache *c, struct todo *todo);
/* Bytes that unread prefetches may take in all: half of what chunks have. */
uint64_t load_queue_prefetch_share(const struct cache *c);

#endif
