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

/* Datasets are named by their numbers in the tree. Any thread may call both. */
struct chunk_source {
	/* Borrowed; constant as long as the source is there. */
	const struct chunk_list *(*list)(void *ctx, uint32_t dataset);
	/* Asynchronous: done is called once, by any thread, also before get returns. unwanted: NULL
	 * or set when nobody waits any more; the request may then fail with -ECANCELED. */
	void (*get)(void *ctx, uint32_t dataset, uint64_t number, const atomic_bool *unwanted,
		    chunk_done done, void *arg);
	void *ctx;
};

#endif
