/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts which chunks of an open file a program reads next, and computes how many of them to load
 * now. It recognises loops in the chunks that were read (pattern.h) and computes how many chunks to
 * prefetch (depth.h). Each prefetched chunk belongs to a group. There is one group for each loop
 * nest (track) and one for file order. When the program leaves a track, the caller cancels the
 * track's group.
 *
 * This layer only chooses the chunks; the cache loads them if memory permits. A track never leaves
 * its dataset. Only for a program that reads the file in file order (sequential.h), prefetching
 * continues from one dataset to the next.
 *
 * Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_PREFETCH_H
#define PREFETCH_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

struct prefetch;
struct track;

enum {
	PREFETCH_FILE_ORDER = 16, /* the group of a program that reads in file order */
	PREFETCH_GROUPS,
};

/* The dataset that is read. Each stored chunk has a slot; slots are in the order of the chunks'
 * row-major numbers. Both functions are pure and quick. */
struct prefetch_dataset {
	uint32_t dataset;
	uint32_t rank;
	const uint64_t *counts; /* chunks in each dimension; borrowed */
	uint64_t cost;		/* bytes of memory that a loaded chunk takes */
	/* So many loads of neighbouring slots take one request if they begin together; 0 and 1 mean
	 * that they do not. If they do, there is advice only if as many can begin, or half of
	 * all. */
	uint64_t joined;
	uint64_t most;	     /* chunks that have room, if loads are joined */
	uint64_t room;	     /* chunks that have room in the first batch of a series */
	uint64_t read_ahead; /* bytes that the kernel reads ahead in the file */
	/* The program reads the dataset in order, and the caller prefetches for it as for file
	 * order. Then there is no advice for simple loops. */
	bool in_order;
	/* Returns false if the chunk is not stored. */
	bool (*slot)(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot);
	/* Returns true if the slot is loaded or requested. */
	bool (*is_known)(void *ctx, uint32_t dataset, uint64_t slot);
	void *ctx;
};

/* Times are nanoseconds of one clock. */
struct prefetch_read {
	uint64_t slot, number;
	uint64_t now_ns;
	uint64_t waited_ns;  /* total waiting time of the file's reads so far */
	uint64_t latency_ns; /* of a load; 0 if unknown */
	bool late;	     /* the read has to wait */
};

enum prefetch_action {
	PREFETCH_NOTHING,
	PREFETCH_LOAD,	 /* load the slots that prefetch_next() returns */
	PREFETCH_CANCEL, /* cancel the loads of the group, because the program has left its track */
};

struct prefetch_advice {
	enum prefetch_action action;
	uint8_t group;
	/* private to prefetch_next() */
	const struct track *track;
	uint64_t next, end;
	uint32_t left;
};

struct prefetch *prefetch_new(void); /* NULL if out of memory */
void prefetch_free(struct prefetch *p);

/* Records that the program reads a slot. The advice is valid until the next call. */
struct prefetch_advice prefetch_read(struct prefetch *p, const struct prefetch_dataset *d,
				     const struct prefetch_read *read);
/* Stores the next slot to load. Returns false after the last. The caller may stop earlier. */
bool prefetch_next(struct prefetch_advice *a, const struct prefetch_dataset *d, uint64_t *slot);
/* Records that a slot of the group was evicted before the program read it. */
void prefetch_wasted(struct prefetch *p, uint8_t group);

/* A program that reads in file order has read so many more slots, each of `cost` bytes of
 * memory. */
struct prefetch_step {
	bool begins; /* another run has begun; `slots` is all of it */
	uint64_t slots, cost;
	uint64_t joined, read_ahead;		/* as in struct prefetch_dataset */
	uint64_t now_ns, waited_ns, latency_ns; /* as in struct prefetch_read */
};

/* Returns how many slots are loaded at a time if `depth` slots are loaded or requested ahead. */
uint32_t prefetch_refill(uint64_t joined, uint32_t depth);
/* Returns how many slots after the current one are to be loaded or requested. */
uint32_t prefetch_in_file_order(struct prefetch *p, const struct prefetch_step *step);

#endif
