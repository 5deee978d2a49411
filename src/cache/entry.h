/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's state, grouped under its one lock, and the table of entries.
 *
 *   state     in table  in lru  in bytes  fill
 *   loading   yes       no      no        set
 *   ready     yes       no      yes       NULL   a reader holds it
 *   idle      yes       yes     yes       NULL   nobody holds it: may be evicted
 *   failed    yes       no      no        set    complete, for its reason; nobody holds it
 *   dropped   no        no      no        NULL   on a list of victims, to be freed
 *
 *   (none) -get, ahead-> loading -complete-> ready, idle -get-> ready -put-> idle -evict-> dropped
 *                        loading -lasting failure-> failed -get, ahead, too many-> dropped
 *                        loading -passing failure-> dropped
 *
 * What is failed is dropped by a get or a load ahead when its time is over, and by newer failures.
 *
 * Invariants, whenever the lock is free: bytes is the sum of the charges of what is ready or idle,
 * held of what is ready; bytes <= budget or nothing is idle; in_flight is the sum of the costs of
 * what is loading, each of which its owner counts in `loading`; what is failed is on the list
 * `failed`, nfailed long and at most FAILURES_MAX.
 */
#ifndef CACHE_ENTRY_H
#define CACHE_ENTRY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <cache/cache.h>

/* Without memory an insertion fails instead of ending the process. */
#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(elt) ((elt)->hash_failed = true)
#include <uthash.h>

enum { FAILURES_MAX = 256 }; /* kept at once, in all; some 300 KiB */

/* How long a failure answers for a chunk: longer than the kernel takes to ask for each page of a
 * chunk when a read of many fails, shorter than a person takes to mend it and look again. */
#define FAILURE_KEPT_NS UINT64_C(1000000000)

struct entry_key {
	struct cache_owner *owner;
	uint64_t chunk;
	uint64_t dataset; /* as wide as the rest: no padding in a key */
};

struct entry {
	struct cache_chunk chunk; /* first: readers hand it back by its address */
	struct entry_key key;
	struct cache_fill *fill; /* the load under way, or the one that failed */
	uint64_t charge;	 /* bytes it counts for, once loaded */
	uint64_t failed_until;	 /* by env->now, once failed */
	unsigned int holds;	 /* readers, those who wait for the load included */
	bool ahead;		 /* loaded ahead and not read yet */
	bool hash_failed;
	/* Head: used last. Also the list of failures (head: the oldest) and that of victims. */
	struct entry *lru_prev, *lru_next;
	struct entry *own_prev, *own_next; /* of the owner */
	UT_hash_handle hh;
};

struct cache_fill {
	struct entry *entry; /* until it is complete */
	uint64_t cost;
	unsigned int refs; /* the load's own, then a kept failure's; one for each that waits */
	bool complete;
	pthread_cond_t done;
	struct cache_fill *next; /* of a list of loads to start */
	struct err err;		 /* of a failure */
};

struct cache_owner {
	struct cache *cache;
	struct cache_source src;
	/* Guarded by the cache's lock. */
	uint64_t loading;
	pthread_cond_t idle; /* loading became 0 */
	struct entry *entries;
};

struct cache {
	const struct env *env;
	pthread_mutex_t lock; /* guards all below, the owners, entries, fills and streams */
	struct entry *table;
	struct entry *lru;
	struct entry *failed;
	size_t nfailed;
	uint64_t in_flight; /* bytes, by the source's estimate */
	uint64_t held;	    /* bytes that are ready, not idle */
	uint64_t owners, streams;
	struct cache_stats stats;
};

struct entry *entry_find_locked(struct cache *c, struct cache_owner *o, uint64_t dataset,
				uint64_t chunk);
/* A new entry that is loading: its fill has one reference. NULL without memory. */
struct entry *entry_new_locked(struct cache_owner *o, uint64_t dataset, uint64_t chunk,
			       uint64_t cost);
void entry_hold_locked(struct cache *c, struct entry *e);
void entry_unhold_locked(struct cache *c, struct entry *e);
/* A reader gives up on a load that is under way. */
void entry_leave_locked(struct entry *e);
/* The load is over and has brought the chunk (whose contents move). */
void entry_loaded_locked(struct cache *c, struct entry *e, struct cache_chunk *chunk);
/* The load is over and has failed at time now, as the fill's err says. The entry keeps the fill's
 * own reference for FAILURE_KEPT_NS. */
void entry_failed_locked(struct cache *c, struct entry *e, uint64_t now, struct entry **victims);
bool entry_is_failed(const struct entry *e);
/* Takes an entry that nobody holds, or whose load failed, out of everything and puts it on
 * *victims. */
void entry_drop_locked(struct cache *c, struct entry *e, struct entry **victims);
/* Drops what was used least lately until the budget is kept. */
void entry_evict_locked(struct cache *c, struct entry **victims);
/* Frees a list of victims. The lock need not be held, and should not. */
void entry_free_all(struct entry *victims);

void fill_unref_locked(struct cache_fill *f);

/* Debug builds: asserts the invariants by walking all entries. */
void entry_check_locked(const struct cache *c);

#endif
