/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks stay: 2Q (Johnson and Shasha, VLDB 1994) by bytes. A chunk that was loaded is new.
 * It becomes main, kept before all that is new, when it is used again later than a period after
 * its load; what is used again within the period is used once: one chunk is read by many small
 * reads in succession, and a plane by rows touches each chunk as often as it has rows. Time is
 * counted in bytes loaded, and the period is a quarter of the budget. A chunk that went before it
 * was used again leaves its name in a history; when it is loaded again soon, it is main at once.
 *
 * Room is made from what is new, oldest use first, as long as that is more than a quarter of the
 * budget, else from main, oldest use first; a main chunk without a use in eight budgets' time goes
 * before either. So a scan of any length has its quarter (more while main leaves some), and what
 * is used again and again stays.
 *
 * Against plain LRU: a scan does not flush what is in use. Against segmented LRU: a burst of reads
 * of one chunk does not promote it. Against LRU-K and ARC: no list of what is gone but the
 * history, a table of fixed size that may forget.
 *
 * Pure, but for the lock of the cache that it is part of.
 */
#ifndef CACHE_TWO_Q_H
#define CACHE_TWO_Q_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TWO_Q_PERIOD_SHARE = 4, /* of the budget: reads of a chunk that count as one use */
	TWO_Q_NEW_SHARE = 4,	/* what is new gives way while it is more than this */
	TWO_Q_STALE = 8,	/* budgets loaded since its last use: main no longer */
	TWO_Q_HISTORY = 1 << 13 /* names; 128 KiB */
};

/* Of each chunk. */
struct two_q_use {
	bool main;
	uint64_t loaded, used; /* bytes that had been loaded then */
};

struct two_q_name {
	uint64_t hash; /* 0: none */
	uint64_t gone; /* bytes that had been loaded then */
};

struct two_q {
	uint64_t budget;
	uint64_t clock; /* bytes loaded */
	struct two_q_name *history;
};

/* False without memory. */
bool two_q_init(struct two_q *a, uint64_t budget);
void two_q_release(struct two_q *a);

/* A chunk of so many bytes was loaded. */
struct two_q_use two_q_loaded(struct two_q *a, uint64_t hash, uint64_t bytes);
/* It is used for the first time since it was loaded, now or ahead of its reader. */
void two_q_first_used(struct two_q *a, struct two_q_use *use);
/* It is used again: whether it is main may change. */
void two_q_used(struct two_q *a, struct two_q_use *use);
/* It goes, and had been used. */
void two_q_gone(struct two_q *a, uint64_t hash, const struct two_q_use *use);
/* Main, but not for any use of late. */
bool two_q_is_stale(const struct two_q *a, const struct two_q_use *use);
/* So many bytes that are new, or coming, should give way before what is main. */
bool two_q_new_gives_way(const struct two_q *a, uint64_t new_bytes);

/* Name of a chunk; never 0. */
uint64_t two_q_hash(uint64_t owner, uint64_t dataset, uint64_t slot);

#endif
