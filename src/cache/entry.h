/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the cache, guarded by one lock, and its table of entries. The state of an entry is
 * the list that contains it:
 *
 *   list      fill  holds  counts in  meaning
 *   DEMAND    set   1..    -          queued for readers
 *   PREFETCH  set   0      -          queued prefetch
 *   LOADING   set   0..    in_flight  being loaded by the source
 *   HELD      NULL  1..    bytes      in use by readers
 *   UNREAD    NULL  0      bytes      prefetched; its stream is expected to read it
 *   NEW       NULL  0      bytes      loaded recently
 *   MAIN      NULL  0      bytes      used again after one period, or loaded again soon (two_q.h)
 *   FAILED    set   0      -          the load has failed; the error is cached
 *   dropped   NULL  0      -          on a list of victims, to be freed
 *
 *   (none) -get-> DEMAND -start-> LOADING -complete-> HELD -put-> NEW or MAIN -get-> HELD
 *   (none) -prefetch-> PREFETCH -start-> LOADING -complete-> UNREAD -get-> HELD
 *   PREFETCH -get-> DEMAND
 *   UNREAD -stream closed, pattern over-> NEW or MAIN
 *   DEMAND -all readers cancelled-> dropped
 *   PREFETCH -stream closed, pattern over-> dropped
 *   NEW, MAIN, UNREAD -evict-> dropped
 *   LOADING -failure that is cached-> FAILED -expired, too many-> dropped
 *   LOADING -transient failure, cancelled-> dropped
 *   LOADING -cancelled, but requested again-> LOADING
 *
 * Invariants, whenever the lock is free:
 *
 * - bytes is the sum of the charges of the loaded entries (HELD, UNREAD, NEW, MAIN); main_bytes is
 *   the same sum for those marked main;
 * - in_flight is the sum of the costs of the LOADING entries, loading_parts that of their parts;
 * - bytes and in_flight are charged to the budget. They fit its room, or no idle entry (UNREAD,
 *   NEW, MAIN) is left;
 * - prefetch_bytes, in all and of each stream, is the sum of prefetch_cost over the entries that a
 *   stream is expected to read: PREFETCH, UNREAD, and LOADING without a reader so far;
 * - at most FAILURES_MAX entries are FAILED.
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

/* If memory runs out, an insertion into a hash table fails instead of ending the process. */
#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(elt) ((elt)->hash_failed = true)
#include <uthash.h>

enum { REQUEST_PARTS = 16 * CACHE_JOINED_MAX };

enum { FAILURES_MAX = 256 }; /* cached at the same time; about 300 KiB */

/* How long a failure is cached. This is longer than the kernel takes to read each page of a chunk
 * after a read of many pages failed, and shorter than a person takes to repair the bucket. */
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
	uint64_t dataset; /* 64 bits, so that a key contains no padding */
};

struct entry {
	struct chunk_data chunk; /* first, because readers return an entry by this address */
	struct entry_key key;
	enum entry_list list;
	struct entry *prev, *next; /* in its list, newest first; in a list of victims only next */
	struct cache_fill *fill;
	uint64_t charge;		/* bytes charged to the budget, once loaded */
	uint64_t failed_until;		/* a time of env->now(), once failed */
	uint64_t loaded_ns, kept_until; /* times, once loaded; see load_queue.h */
	unsigned int holds;		/* readers, including those that wait for the load */
	bool hash_failed;
	bool prefetched;	     /* prefetched, or queued as a prefetch, and not read yet */
	uint8_t group;		     /* prefetch group of its stream */
	bool shared;		     /* another stream requested it, too */
	struct cache_stream *stream; /* the stream that is expected to read it, or NULL */
	uint64_t prefetch_cost;	     /* bytes counted in prefetch_bytes */
	struct two_q_use use;
	struct entry *own_prev, *own_next; /* in the owner's list */
	UT_hash_handle hh;
};

struct cache_fill {
	struct entry *entry; /* until it is complete */
	uint64_t cost;
	uint64_t parts;	   /* of a request of the source, in REQUEST_PARTS */
	uint64_t started;  /* by env->now */
	unsigned int refs; /* one for the load, later for the cached failure; one for the thread
			      that starts the load; one for each waiting reader */
	bool starting;	   /* the source's load() has not returned */
	bool complete;
	atomic_bool cancel;    /* the source reads it without the lock */
	bool may_be_cancelled; /* cancel was true at some time since it began */
	bool ahead;	       /* it began as a prefetch */
	pthread_cond_t done;
	struct cache_fill *next; /* of a list of loads to start */
	void *batch;		 /* for the source, while it starts the load */
	struct err err;		 /* of a failure */
};

struct cache_owner {
	struct cache *cache;
	struct cache_source src;
	uint64_t serial;
	/* Guarded by the cache's lock. */
	uint64_t busy;	     /* loads in flight, and threads that are starting one */
	pthread_cond_t idle; /* busy became 0 */
	struct entry *entries;
	struct latency latency; /* of loads */
	struct cache_owner_stats stats;
};

/* One open file. */
struct cache_stream {
	struct cache_owner *owner;
	atomic_bool in_order; /* see cache_stream_in_order() */
	/* Guarded by the cache's lock. */
	struct prefetch *prefetch;
	uint64_t prefetch_bytes; /* of unread and queued prefetches */
	uint64_t waited_ns;	 /* total waiting time of its reads */
	uint64_t read_ns;	 /* time of its last read; 0 if there was none */
};

struct list {
	struct entry *head;
	uint64_t n, bytes; /* entries, and their charges */
};

struct cache {
	const struct env *env;
	unsigned int max_prefetch;
	pthread_mutex_t lock; /* guards all below, the owners, entries, fills and streams */
	struct entry *table;
	struct list lists[LISTS];
	uint64_t main_bytes;
	uint64_t loading_parts; /* of all loads in flight; REQUEST_PARTS are a request */
	uint64_t prefetch_bytes, prefetch_streams; /* streams with prefetch_bytes > 0 */
	unsigned int passed; /* chunks released while a reader's load was queued */
	uint64_t owners, last_serial;
	struct two_q two_q;
	struct histogram waited;
	struct cache_stats stats; /* loading, queued and waited are computed on request */
};

static inline struct entry *list_oldest(const struct cache *c, enum entry_list which)
{
	struct entry *head = c->lists[which].head;
	return head ? head->prev : NULL;
}

struct entry *entry_find_locked(struct cache *c, struct cache_owner *o, uint64_t dataset,
				uint64_t slot);
/* Returns a new entry, queued in LIST_DEMAND or LIST_PREFETCH, or NULL if out of memory. Its fill
 * has one reference. */
struct entry *entry_new_locked(struct cache_owner *o, uint64_t dataset, uint64_t slot,
			       const struct cache_dataset *d, enum entry_list list);
/* Records that the load of a queued entry begins. */
void entry_start_locked(struct cache *c, struct entry *e, uint64_t now);
/* Records that a load that its source has cancelled begins again. */
void entry_restart_locked(struct cache *c, struct entry *e, uint64_t now);
/* Lets the source cancel the load, unless readers wait for it. A later reader revokes this. */
void entry_cancel_locked(struct entry *e);
/* Records that a reader uses the loaded chunk, or waits for the load. */
void entry_hold_locked(struct cache *c, struct entry *e);
void entry_unhold_locked(struct cache *c, struct entry *e);
/* Records that a reader no longer waits for an incomplete load. If no other reader waits and the
 * load is queued, it is dropped. */
void entry_leave_locked(struct cache *c, struct entry *e, struct entry **victims);
/* Records that the load has succeeded. The contents of the chunk are transferred. */
void entry_loaded_locked(struct cache *c, struct entry *e, struct chunk_data *chunk, uint64_t now);
/* Records that the load has failed at time now, with the error in the fill. The entry keeps the
 * load's reference to the fill for FAILURE_KEPT_NS. */
void entry_failed_locked(struct cache *c, struct entry *e, uint64_t now, struct entry **victims);
/* Records that the entry is prefetched for a group of a stream. */
void entry_expect_locked(struct cache *c, struct entry *e, struct cache_stream *s, uint8_t group,
			 uint64_t cost);
/* Records that no stream is expected to read the entry any more. A queued entry is dropped. A
 * loaded one is evicted before the others in its list. */
void entry_forget_locked(struct cache *c, struct entry *e, struct entry **victims);
/* Removes an entry without readers, or whose load failed, from all lists and puts it on *victims.
 */
void entry_drop_locked(struct cache *c, struct entry *e, struct entry **victims);
/* Frees a list of victims. Call it without the lock. */
void entry_free_all(struct entry *victims);

void fill_unref_locked(struct cache_fill *f);

/* If assertions are enabled (the default), checks the invariants of all entries, unless there are
 * so many that readers would wait for the lock. */
void entry_check_locked(const struct cache *c);

#endif
