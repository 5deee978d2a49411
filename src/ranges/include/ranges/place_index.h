/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes of places: arrays of records that say where the chunks of a dataset are, such as chunk
 * tables. A part of an index, such as a chunk of a table, is loaded whole and kept in memory. See
 * ranges/ranges.h for threading.
 */
#ifndef RANGES_PLACE_INDEX_H
#define RANGES_PLACE_INDEX_H

#include <data/chunk_source.h>
#include <ranges/ranges.h>

/* A read of a record, in the caller's memory until done is called. */
struct place_read {
	struct ranges *ranges;
	struct chunk_request part; /* dataset and number name the part; batch is not used */
	const struct dtype *type;  /* of a record */
	uint64_t record;	   /* in the part */
	/* Loads the part, as struct chunk_source.get does. */
	void (*load)(void *ctx, const struct chunk_request *part, chunk_done done, void *arg);
	void *ctx;
	/* It may be NULL. It is passed to done if that is called before place_read() returns. */
	struct range_batch *batch;
	/* value has one element; it is NULL if its part is not stored. batch is for further reads
	 * and is valid until done returns; it may be NULL. */
	void (*done)(struct place_read *r, int code, const struct elems *value,
		     struct range_batch *batch, const struct err *err);
	void *arg;
	/* private */
	struct place_read *next;
	struct elems value;
	int code;
	bool absent;
};
void place_read(struct place_read *r);

/* Drops the parts that are in memory, so that later reads load them again. Any thread. */
void places_forget(struct ranges *all);

#endif
