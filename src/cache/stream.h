/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetching for one reader: asks for the chunks that prefetch/ expects it to read, as far as they
 * have room. All prefetched chunks share a part of the budget; the streams that have any divide it
 * among themselves. The lock is the cache's.
 */
#ifndef CACHE_STREAM_H
#define CACHE_STREAM_H

#include "entry.h"
#include "load_queue.h"

/* What the source says of a dataset, with what an entry takes by itself. */
void stream_describe(const struct cache_owner *o, uint32_t dataset, struct cache_dataset *out);
/* The stream's reader reads a slot. late: it has to wait. */
void stream_read_locked(struct cache_stream *s, uint32_t dataset, uint64_t slot, bool late,
			struct todo *todo);
/* The chunk's entry. NULL when there is none, or when it was a failure that is no longer kept. */
struct entry *stream_find_locked(struct cache_owner *o, uint32_t dataset, uint64_t slot,
				 struct todo *todo);
/* Asks for one slot, unless it is there. False when the share is used up, or without memory. s may
 * be NULL. */
bool stream_ask_locked(struct cache_owner *o, struct cache_stream *s, uint8_t group,
		       uint32_t dataset, const struct cache_dataset *d, uint64_t slot,
		       struct todo *todo);
/* The stream is closed. What was prefetched for it is not expected to be read. */
void stream_close_locked(struct cache_stream *s, struct todo *todo);

#endif
