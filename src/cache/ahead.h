/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead: which chunks a stream's reader will want (pattern.h), how many of them are asked
 * for (pace.h), and what they may take: the share of the budget that all streams divide among
 * those that have something ahead, and each among its patterns. Loads ahead are of the dataset
 * that is read; only who reads a file in its order asks across datasets, by cache_advise().
 */
#ifndef CACHE_AHEAD_H
#define CACHE_AHEAD_H

#include "entry.h"
#include "pace.h"
#include "pattern.h"
#include "turn.h"

enum {
	AHEAD_IN_ORDER = PATTERN_TRACKS, /* the pace of a reader in file order */
	AHEAD_PACES,
};

struct cache_stream {
	struct cache_owner *owner;
	/* Guarded by the cache's lock. */
	struct pattern pattern;
	struct pace paces[AHEAD_PACES]; /* of the pattern's tracks, and one more */
	uint64_t ahead_bytes;
	uint64_t waited_ns;  /* by all its readers */
	uint64_t touched_ns; /* when its reader came last; 0: never */
	uint32_t dataset;    /* read then */
	uint64_t slot;
};

/* The stream's reader takes a slot, which it finds (there) or has to wait for. */
void ahead_touch_locked(struct cache_stream *s, uint32_t dataset, uint64_t slot, bool late,
			struct todo *todo);
/* What the source says, with what an entry takes by itself. */
void ahead_describe(const struct cache_owner *o, uint32_t dataset, struct cache_dataset *out);
/* The chunk's entry, unless there is none or it is a failure whose time is over. */
struct entry *ahead_find_locked(struct cache_owner *o, uint32_t dataset, uint64_t slot,
				struct todo *todo);
/* Asks for one slot ahead of a reader, unless it is there: false when the share is used up, or
 * without memory. s may be NULL. */
bool ahead_ask_locked(struct cache_owner *o, struct cache_stream *s, uint8_t pace, uint32_t dataset,
		      const struct cache_dataset *d, uint64_t slot, struct todo *todo);
/* What was loaded ahead for the stream goes unread. */
void ahead_wasted_locked(struct cache_stream *s, uint8_t pace);
/* The stream is closed: nothing is expected of it any more. */
void ahead_close_locked(struct cache_stream *s, struct todo *todo);
/* Least time of a load of late, 0 when none is known; and its counting. */
uint64_t ahead_latency(const struct cache_owner *o);
void ahead_measure_locked(struct cache_owner *o, uint64_t ns);

#endif
