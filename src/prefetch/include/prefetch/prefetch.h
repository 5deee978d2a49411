/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks a reader will read next, and how many of them to load now. It watches the chunks
 * that one reader reads, recognises patterns in them (pattern.h) and measures how far ahead of the
 * reader each pattern has to be (depth.h). What it expects belongs to a group, one for each pattern
 * and one for file order: when a pattern breaks, its group is cancelled.
 *
 * It says what to load; the cache decides what there is room for, and loads it. Chunks of the
 * dataset that is read are all that it expects: only a reader that goes through the file in its
 * order (sequential.h) is followed from dataset to dataset.
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
	PREFETCH_FILE_ORDER = 32, /* the group of a reader in file order */
	PREFETCH_GROUPS,
};

/* The dataset that is read. Each stored chunk has a slot; slots are in the order of the chunks'
 * numbers, which are row-major. Both functions are pure and quick. */
struct prefetch_dataset {
	uint32_t dataset;
	uint32_t rank;
	const uint64_t *counts; /* chunks in each dimension; borrowed */
	uint64_t cost;		/* bytes of memory that a loaded chunk takes */
	/* False: the chunk has no slot, because it is not stored. */
	bool (*slot)(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot);
	/* Is the slot loaded, or asked for? */
	bool (*is_known)(void *ctx, uint32_t dataset, uint64_t slot);
	void *ctx;
};

/* Times are nanoseconds of one clock. */
struct prefetch_read {
	uint64_t slot, number;
	uint64_t now_ns;
	uint64_t waited_ns;  /* that all reads of this reader have waited so far */
	uint64_t latency_ns; /* of a load; 0: not known */
	bool late;	     /* the read has to wait */
};

enum prefetch_action {
	PREFETCH_NOTHING,
	PREFETCH_LOAD,	 /* the slots of prefetch_next() */
	PREFETCH_CANCEL, /* what was asked for in the group will not be read */
};

struct prefetch_advice {
	enum prefetch_action action;
	uint8_t group;
	/* prefetch_next()'s own */
	const struct track *track;
	uint64_t next, end;
	uint32_t left;
};

struct prefetch *prefetch_new(void); /* NULL without memory */
void prefetch_free(struct prefetch *p);

/* The reader reads a slot. The advice is valid until the next call. */
struct prefetch_advice prefetch_read(struct prefetch *p, const struct prefetch_dataset *d,
				     const struct prefetch_read *read);
/* The next slot to load; false when there is none. The caller stops when it has no room. */
bool prefetch_next(struct prefetch_advice *a, const struct prefetch_dataset *d, uint64_t *slot);
/* A slot that was loaded for a group was evicted before it was read. */
void prefetch_wasted(struct prefetch *p, uint8_t group);

/* A reader in file order has moved on by so many slots, of `cost` bytes of memory. */
struct prefetch_step {
	uint64_t slots, cost;
	uint64_t now_ns, waited_ns, latency_ns; /* as in struct prefetch_read */
};

/* How many slots to have loaded, or asked for, ahead of it. */
uint32_t prefetch_in_file_order(struct prefetch *p, const struct prefetch_step *step);

#endif
