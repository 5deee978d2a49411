/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks to evict: 2Q (Johnson and Shasha, VLDB 1994), counted in bytes. A loaded chunk is
 * new. It becomes main if it is used later than one period after its load. All uses within the
 * period count as one, because a program reads a chunk in many small reads, and a plane that is
 * read row by row uses each chunk once per row. Time is the number of bytes loaded, and the period
 * is a quarter of the budget. When a new chunk is evicted, a history remembers it; if it is loaded
 * again soon, it is main at once.
 *
 * New chunks are evicted, least recently used first, while they take more than a quarter of the
 * budget; otherwise main chunks, least recently used first. A main chunk that was not used while
 * eight times the budget was loaded is evicted before both. So a scan of any length uses a quarter
 * of the budget (more if main chunks leave room), and chunks that are used repeatedly stay.
 *
 * Unlike with LRU, a scan does not evict chunks that are used repeatedly. Unlike with segmented
 * LRU, many reads of one chunk in succession do not promote it. Unlike with LRU-K and ARC, the
 * history is a table of fixed size, which may lose names.
 *
 * No I/O; the cache's lock guards it.
 */
#ifndef CACHE_TWO_Q_H
#define CACHE_TWO_Q_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TWO_Q_PERIOD_SHARE = 4, /* the period is budget / 4 */
	TWO_Q_NEW_SHARE = 4,	/* new chunks may take budget / 4 */
	TWO_Q_STALE = 8,	/* a main chunk is stale after this many budgets of loads */
	TWO_Q_HISTORY = 1 << 13 /* names; 128 KiB */
};

/* Part of each chunk's entry. */
struct two_q_use {
	bool main;
	uint64_t loaded, used; /* times */
};

struct two_q_name {
	uint64_t hash; /* 0 if there is none */
	uint64_t gone; /* time of the eviction */
};

struct two_q {
	uint64_t budget;
	uint64_t clock; /* bytes loaded */
	struct two_q_name *history;
};

/* Returns false if out of memory. */
bool two_q_init(struct two_q *a, uint64_t budget);
void two_q_release(struct two_q *a);

/* Records that a chunk of `bytes` bytes was loaded. */
struct two_q_use two_q_loaded(struct two_q *a, uint64_t hash, uint64_t bytes);
/* Records that a prefetched chunk is used for the first time. */
void two_q_first_used(struct two_q *a, struct two_q_use *use);
/* Records that a chunk is used again, which may make it main. */
void two_q_used(struct two_q *a, struct two_q_use *use);
/* Records that a chunk that was used is evicted. The history remembers it, unless it is main. */
void two_q_gone(struct two_q *a, uint64_t hash, const struct two_q_use *use);
/* Returns true if a main chunk was not used during the last TWO_Q_STALE budgets of loads. */
bool two_q_is_stale(const struct two_q *a, const struct two_q_use *use);
/* Returns true if new chunks are evicted before main ones. new_bytes is the number of bytes of all
 * new chunks. */
bool two_q_evicts_new(const struct two_q *a, uint64_t new_bytes);

/* Returns the chunk's name in the history, which is not 0. */
uint64_t two_q_hash(uint64_t owner, uint64_t dataset, uint64_t slot);

#endif
