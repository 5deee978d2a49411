/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetching for one open file: requests the chunks that prefetch/ predicts, if there is room. All
 * prefetched chunks share a part of the budget, which is divided equally among the streams that
 * have prefetched chunks. The cache's lock guards streams.
 */
#ifndef CACHE_STREAM_H
#define CACHE_STREAM_H

#include "entry.h"
#include "load_queue.h"

/* Gets the source's description of a dataset, plus the memory of an entry itself. */
void stream_describe(const struct cache_owner *o, uint32_t dataset, struct cache_dataset *out);
/* Reports a read of a slot to prefetch/ and follows its advice. late is true if the read has to
 * wait. */
void stream_read_locked(struct cache_stream *s, uint32_t dataset, uint64_t slot, bool late,
			struct todo *todo);
/* Returns the chunk's entry, or NULL if there is none. Drops a failure that has expired. */
struct entry *stream_find_locked(struct cache_owner *o, uint32_t dataset, uint64_t slot,
				 struct todo *todo);
/* Queues a prefetch of one slot, unless it has an entry. Returns false if the share is used up, or
 * if out of memory. s may be NULL. */
bool stream_request_locked(struct cache_owner *o, struct cache_stream *s, uint8_t group,
			   uint32_t dataset, const struct cache_dataset *d, uint64_t slot,
			   struct todo *todo);
/* Closes the stream and cancels its prefetches. Its loaded chunks are the first to be evicted. */
void stream_close_locked(struct cache_stream *s, struct todo *todo);

#endif
