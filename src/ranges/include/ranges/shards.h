/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches for chunks in shards (data/shard.h): objects that hold many chunks and an index. An
 * index is read with one request and kept in memory. See ranges/ranges.h for threading.
 */
#ifndef RANGES_SHARDS_H
#define RANGES_SHARDS_H

#include <codec/shard_index.h>
#include <data/dspace.h>
#include <data/shard.h>
#include <ranges/ranges.h>

/* What the chunks of a shard are read from: an object, or the bytes to which an encoded shard was
 * decoded. */
struct shard_source;
void shard_source_unref(struct shard_source *s); /* s may be NULL */
/* Returns the object, or NULL if the source has bytes in memory. */
struct range_object *shard_source_object(struct shard_source *s);
/* Returns the bytes [offset, offset + length), which exist, of a source in memory. */
const uint8_t *shard_source_bytes(const struct shard_source *s, uint64_t offset);
/* Returns the version of the object, or "" if it is not known. */
const char *shard_source_etag(const struct shard_source *s);

/* A search for a chunk, in the caller's memory until done is called. */
struct shard_search {
	/* The caller sets these. What they point to is borrowed until done is called. */
	struct ranges *ranges;
	const struct shard *shard; /* the outermost one */
	const struct grid *grid;
	uint32_t dataset;
	uint64_t number; /* of the chunk in the grid */
	struct store *store;
	const char *key; /* of the object that is the outermost shard */
	/* The version that the object must have, "" for any, and its size, UINT64_MAX for any. */
	const char *etag;
	uint64_t size;
	bool prefetch;
	/* It may be NULL. It is passed to done if that is called before shard_find() returns. */
	struct range_batch *batch;
	/* Called in any thread, possibly before shard_find() returns. code is 0, -ESTALE if the
	 * object has another version, -EIO if the index is damaged, or an error of the store. batch
	 * is for further reads and is valid until done returns; it may be NULL. */
	void (*done)(struct shard_search *s, int code, struct range_batch *batch,
		     const struct err *err);
	void *arg;
	/* The result. */
	struct store_absence absence; /* of the object; zero if it exists */
	bool absent;		      /* an index, or the absence of the object, says so */
	/* The source of the index that was read last, and the range of the chunk in it. It is NULL
	 * if the object is absent. done takes the reference. */
	struct shard_source *source;
	uint64_t offset, length;
	/* private */
	const struct shard *level; /* that is searched now; its range is that above */
	uint32_t depth;
	struct shard_search *next;
};
void shard_find(struct shard_search *s);

/* Drops the indexes that are in memory, so that later searches read them again. Any thread. */
void shards_forget(struct ranges *all);

#endif
