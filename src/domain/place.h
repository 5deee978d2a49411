/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that fetch chunks share. No function blocks. */
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
	/* For struct table_read. */
	void (*load)(void *domain, const struct chunk_request *request, chunk_done done, void *arg);
	/* NULL, or valid until place_find() returns, and again until done does. */
	struct ref_batch *batch;
	struct store_request *req; /* for what the schema must read. It gets the key of the chunk */
	/* code 0: the members below describe the place. Called in any thread, possibly before
	 * place_find() returns. */
	void (*done)(struct place_search *s, int code, const struct err *err);

	struct chunk_place place;
	struct ref_file *file;		 /* NULL if the chunk is in the object req->key */
	const struct pipeline *pipeline; /* NULL if it is not known from the file's index */

	/* private */
	unsigned int step;
	union {
		struct table_read table;
		struct ref_search index;
	};
};
void place_find(struct place_search *s);
/* Submits a GET of a part of an object in the domain's bucket, for a caller that has set req->done
 * and req->arg. */
void place_get(struct place_search *s, uint64_t max);

#endif
