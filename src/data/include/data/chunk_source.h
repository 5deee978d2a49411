/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of a tree's datasets as whoever shows them sees them: which exist, and one of them on
 * demand. A domain has them in its bucket; a test makes them up.
 */
#ifndef DATA_CHUNK_SOURCE_H
#define DATA_CHUNK_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <data/elems.h>

enum {
	CHUNK_BYTES_MAX =
		1 << 28, /* bytes of a chunk, stored or decoded: many are in memory at once */
};
/* Bytes of a dataset that may all have a place in a file. Of a larger one the stored chunks alone
 * have one, so its chunk_list must be listed. */
#define DATASET_DENSE_MAX (UINT64_C(1) << 50)

/* What is known of a dataset's stored chunks. */
struct chunk_list {
	bool listed;  /* the list below is complete */
	bool unknown; /* variable-length, but the list could not be had: reading fails */
	uint64_t n;
	const uint64_t *numbers; /* ascending chunk numbers that exist */
	const uint64_t
		*decoded; /* variable-length datasets only (then listed is true): decoded
			     sizes in bytes, same order; UINT64_MAX: damaged, reading fails */
};
/* Place in the list of the first stored chunk from `number` on, n when there is none. */
uint64_t chunk_list_from(const struct chunk_list *chunks, uint64_t number);
/* Place in the list of the very chunk, n when it is not there. */
uint64_t chunk_list_find(const struct chunk_list *chunks, uint64_t number);

/* A chunk's elements, full chunk shape. absent: nothing is stored (and no initializer): all fill;
 * elems is empty then. */
struct chunk_result {
	int code;
	bool absent;
	struct elems elems; /* transferred to the callee */
	uint64_t fetched;   /* bytes that came from the store */
	struct err err;	    /* names the key */
};
typedef void (*chunk_done)(void *arg, struct chunk_result *chunk);

/* Which chunk is asked for, and how urgently. */
struct chunk_wanted {
	uint32_t dataset; /* its number in the tree */
	uint64_t number;  /* the chunk's place in the grid, row-major */
	bool ahead;	  /* no reader waits for it yet: what readers wait for goes first */
	/* NULL, or set when nobody needs the chunk any more: then get may end with -ECANCELED.
	 * Borrowed until done is called. */
	const atomic_bool *cancelled;
};

/* Any thread may call both. */
struct chunk_source {
	/* Borrowed; constant as long as the source is there. */
	const struct chunk_list *(*list)(void *ctx, uint32_t dataset);
	/* Asynchronous: done is called once, by any thread, also before get returns. */
	void (*get)(void *ctx, const struct chunk_wanted *wanted, chunk_done done, void *arg);
	void *ctx;
};

#endif
