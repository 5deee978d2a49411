/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files that fetch chunks share. No function blocks. */
#ifndef DOMAIN_PLACE_H
#define DOMAIN_PLACE_H

#include <data/chunk_place.h>
#include <data/chunk_source.h>

#include "domain_internal.h"

/* place.c: finds the place of a chunk. */
struct place_search {
	/* The caller sets these. */
	struct domain *d;
	uint32_t dataset;
	uint64_t number;
	bool prefetch;
	const atomic_bool *cancelled;
	/* Loads a chunk of a chunk table: see struct place_read. */
	void (*load)(void *domain, const struct chunk_request *request, chunk_done done, void *arg);
	/* The batch of further reads, or NULL. It is valid until place_find() returns; the one that
	 * done finds here is valid until done returns. */
	struct range_batch *batch;
	/* The request for what the schema must read. In the end it has the key of the chunk. */
	struct store_request *req;
	/* Is called in any thread, possibly before place_find() returns. If code is 0, the members
	 * below describe the place. */
	void (*done)(struct place_search *s, int code, const struct err *err);

	struct chunk_place place;
	/* Of the range; NULL if the chunk is the object req->key, or in memory. */
	struct range_object *object;
	struct ref_file *file;		 /* if the object is one */
	const struct pipeline *pipeline; /* NULL unless the file's index gives it */
	/* If the chunk is in a shard: what it is read from, which place_release() releases, and
	 * whether its index says that it is not stored. The key stays that of the object. If the
	 * object is absent, there is no source, and `absence` has the proof. */
	bool in_shard, is_hole;
	struct shard_source *source;
	struct store_absence absence;

	/* private */
	unsigned int step;
	union {
		struct place_read record;
		struct ref_search index;
		struct shard_search shard;
	};
};
void place_find(struct place_search *s);
void place_release(struct place_search *s);
/* Submits a GET of a part of an object in the domain's bucket, for a caller that has set req->done
 * and req->arg. */
void place_get(struct place_search *s, uint64_t max);

#endif
