/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's state, grouped under its one lock, and the table of entries. An entry's state is the
 * list that it is on:
 *
 *   list      fill  holds  counts in  meaning
 *   DEMAND    set   1..    -          queued for readers
 *   PREFETCH  set   0      -          queued ahead of readers
 *   LOADING   set   0..    in_flight  the source loads it
 *   HELD      NULL  1..    bytes      readers hold it
 *   UNREAD    NULL  0      bytes      prefetched; its stream is expected to read it
 *   NEW       NULL  0      bytes      loaded lately
 *   MAIN      NULL  0      bytes      used again after a while
 *   FAILED    set   0      -          the load has failed; kept for its reason
 *   dropped   NULL  0      -          on a list of victims, to be freed
 *
 *   (none) -get-> DEMAND -start-> LOADING -complete-> HELD -put-> NEW or MAIN -get-> HELD
 *   (none) -prefetch-> PREFETCH -start-> LOADING -complete-> UNREAD -get-> HELD
 *   PREFETCH -get-> DEMAND
 *   UNREAD -stream closed, pattern over-> NEW
 *   DEMAND -all readers cancelled-> dropped
 *   PREFETCH -stream closed, pattern over-> dropped
 *   NEW, MAIN, UNREAD -evict-> dropped
 *   LOADING -lasting failure-> FAILED -get, prefetch, too many-> dropped
 *   LOADING -passing failure, cancelled-> dropped
 *   LOADING -cancelled, but a reader has come-> LOADING
 *
 * Invariants, whenever the lock is free: bytes is the sum of the charges of what is loaded (HELD,
 * UNREAD, NEW, MAIN), main_bytes of those marked main; in_flight is the sum of the costs of what
 * is LOADING; both are charged to the budget, and within its room, or nothing idle (UNREAD, NEW,
 * MAIN) is left; prefetch_bytes, in all and of each stream, is the sum of prefetch_cost over what
 * is expected: PREFETCH, UNREAD, and LOADING without a reader so far; at most FAILURES_MAX are
 * FAILED.
 */
#ifndef CACHE_ENTRY_H
#define CACHE_ENTRY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <cache/cache.h>
#include <prefetch/latency.h>
#include <prefetch/prefetch.h>

#include "two_q.h"

/* Without memory an insertion fails instead of ending the process. */
#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(elt) ((elt)->hash_failed = true)
#include <uthash.h>

enum { FAILURES_MAX = 256 }; /* kept at once, in all; some 300 KiB */

/* How long a failure answers for a chunk: longer than the kernel takes to ask for each page of a
 * chunk when a read of many fails, shorter than a person takes to mend it and look again. */
#define FAILURE_KEPT_NS UINT64_C(1000000000)

enum entry_list {
	LIST_DEMAND,
	LIST_PREFETCH,
	LIST_LOADING,
	LIST_HELD,
	LIST_UNREAD,
	LIST_NEW,
	LIST_MAIN,
	LIST_FAILED,
	LISTS,
};

struct entry_key {
	struct cache_owner *owner;
	uint64_t slot;
	uint64_t dataset; /* as wide as the rest: no padding in a key */
};

struct entry {
	struct cache_chunk chunk; /* first: readers hand it back by its address */
	struct entry_key key;
	enum entry_list list;
	struct entry *prev, *next; /* on its list, head: the latest; of victims: next only */
	struct cache_fill *fill;
	uint64_t charge;		/* bytes it counts for, once loaded */
	uint64_t failed_until;		/* by env->now, once failed */
	uint64_t loaded_ns, kept_until; /* the same, once loaded; see load_queue.h */
	unsigned int holds;		/* readers, those who wait for the load included */
	bool hash_failed;
	/* Prefetched, or to be, and not read yet. */
	bool prefetched;
	uint8_t group;		     /* of its stream, in which it was asked for */
	bool shared;		     /* others asked for it, too */
	struct cache_stream *stream; /* that is expected to read it; NULL: none any more */
	uint64_t prefetch_cost;	     /* counted in prefetch_bytes; 0: not */
	struct two_q_use use;
	struct entry *own_prev, *own_next; /* of the owner */
	UT_hash_handle hh;
};

struct cache_fill {
	struct entry *entry; /* until it is complete */
	uint64_t cost;
	uint64_t started;  /* by env->now */
	unsigned int refs; /* the load's own, then a kept failure's; the thread that starts it; one
			      for each reader that waits */
	bool starting;	   /* the source's load() has not returned yet */
	bool complete;
	atomic_bool cancel;    /* the source reads it without the lock */
	bool may_be_cancelled; /* nobody needed it for a while since it began */
	bool ahead;	       /* no reader waited for it as it began */
	pthread_cond_t done;
	struct cache_fill *next; /* of a list of loads to start */
	struct err err;		 /* of a failure */
};

struct cache_owner {
	struct cache *cache;
	struct cache_source src;
	uint64_t serial;
	/* Guarded by the cache's lock. */
	uint64_t busy;	     /* loads under way, and threads that are starting one */
	pthread_cond_t idle; /* busy became 0 */
	struct entry *entries;
	struct latency latency; /* of loads */
	struct cache_owner_stats stats;
};

/* One open file. */
struct cache_stream {
	struct cache_owner *owner;
	/* Guarded by the cache's lock. */
	struct prefetch *prefetch;
	uint64_t prefetch_bytes; /* what was prefetched, or is to be, and was not read */
	uint64_t waited_ns;	 /* by all its reads */
	uint64_t read_ns;	 /* the last time it read; 0: never */
};

struct list {
	struct entry *head;
	uint64_t n, bytes; /* bytes: charges */
};

struct cache {
	const struct env *env;
	unsigned int max_prefetch;
	pthread_mutex_t lock; /* guards all below, the owners, entries, fills and streams */
	struct entry *table;
	struct list lists[LISTS];
	uint64_t main_bytes;
	uint64_t prefetch_bytes, prefetch_streams; /* streams: that have any */
	unsigned int passed; /* chunks put back while a reader's load is queued */
	uint64_t owners, last_serial;
	struct two_q two_q;
	struct histogram waited;
	struct cache_stats stats; /* loading, queued and waited are made when asked for */
};

static inline struct entry *list_oldest(const struct cache *c, enum entry_list which)
{
	struct entry *head = c->lists[which].head;
	return head ? head->prev : NULL;
}

struct entry *entry_find_locked(struct cache *c, struct cache_owner *o, uint64_t dataset,
				uint64_t slot);
/* A new entry, queued in LIST_DEMAND or LIST_PREFETCH: its fill has one reference. NULL
 * without memory. */
struct entry *entry_new_locked(struct cache_owner *o, uint64_t dataset, uint64_t slot,
			       uint64_t load_cost, enum entry_list list);
/* The load of a queued entry begins. */
void entry_start_locked(struct cache *c, struct entry *e, uint64_t now);
/* A load that its source has cancelled begins again. */
void entry_restart_locked(struct cache *c, struct entry *e, uint64_t now);
/* Asks the source to cancel the load, unless readers wait for it. A reader that comes later takes
 * that back. */
void entry_cancel_locked(struct entry *e);
/* A reader takes what is loaded, or waits for the load. */
void entry_hold_locked(struct cache *c, struct entry *e);
void entry_unhold_locked(struct cache *c, struct entry *e);
/* A reader no longer waits for a load that is not complete; if no other does and it has not begun,
 * it is dropped. */
void entry_leave_locked(struct cache *c, struct entry *e, struct entry **victims);
/* The load is over and has brought the chunk (whose contents move). */
void entry_loaded_locked(struct cache *c, struct entry *e, struct cache_chunk *chunk, uint64_t now);
/* The load is over and has failed at time now, as the fill's err says. The entry keeps the fill's
 * own reference for FAILURE_KEPT_NS. */
void entry_failed_locked(struct cache *c, struct entry *e, uint64_t now, struct entry **victims);
/* A stream is expected to read what is prefetched in one of its groups. */
void entry_expect_locked(struct cache *c, struct entry *e, struct cache_stream *s, uint8_t group,
			 uint64_t cost);
/* Nobody is expected to read it any more: what has not begun is dropped, what is loaded is the
 * first to go. */
void entry_forget_locked(struct cache *c, struct entry *e, struct entry **victims);
/* Takes an entry that nobody holds, or whose load failed, out of everything and puts it on
 * *victims. */
void entry_drop_locked(struct cache *c, struct entry *e, struct entry **victims);
/* Frees a list of victims. The lock need not be held, and should not. */
void entry_free_all(struct entry *victims);

void fill_unref_locked(struct cache_fill *f);

/* Where assertions are compiled in, as they are by default: asserts the invariants by walking all
 * entries, unless there are so many that readers, who need the lock, would wait for it. */
void entry_check_locked(const struct cache *c);

#endif
