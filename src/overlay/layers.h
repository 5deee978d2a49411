/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was written to a draft: its generations, as layers of ranges above what lies beneath.
 *
 *   read at offset x:  written in the top layer ----------------> its spool
 *                      else, x >= limit of the top layer -------> zero
 *                      else, the same in the layer below, ...
 *                      else, x < size of what lies beneath -----> beneath
 *
 * The limit of a layer is the smallest size that the file had since the layer was begun. So a file
 * that shrank and grew again shows zeros, although the bytes below are still there.
 *
 * Invariants:
 *  1. No layer has bytes written at or after the size that the file had when the layer above it was
 *     begun; the top layer has none at or after `size`.
 *  2. limit <= size for the top layer. The limit of a layer never grows.
 *  3. A byte that is written, but not in a stored block, is a zero.
 *
 * The functions change sets and nothing else: journals are replayed with the functions that changed
 * the live draft. A change fails with -EAGAIN (see frames.h) or -ENOMEM, and may be repeated. One
 * thread at a time; any number of threads may read layers that do not change.
 */
#ifndef OVERLAY_LAYERS_H
#define OVERLAY_LAYERS_H

#include "changes.h"
#include "frames.h"
#include "spool.h"

enum { LAYERS_MAX = 16 };

struct layer {
	struct layer *below;
	uint32_t generation;
	uint64_t limit;
	struct frames written;
	struct frames stored; /* blocks of the spool that take room */
	uint64_t least;	      /* the spool has at least this size, or bytes of it were lost */
	struct spool *spool;  /* NULL until its file is opened */
};

struct layers {
	struct layer *top;
	unsigned int n;
	uint32_t highest; /* number of a generation that was ever begun */
	uint64_t size;	  /* of the file */
	uint64_t beneath; /* size of what lies beneath */
	struct frames_memory *memory;
	struct changes *changes; /* gets all changes; borrowed. NULL if they are not needed */
};

/* Makes the first layer of a file whose size is that of what lies beneath. Fails with -ENOMEM. */
int layers_init(struct layers *l, struct frames_memory *memory, uint64_t beneath);
/* Frees the layers and drops their references to spools. */
void layers_release(struct layers *l);
/* Begins a new generation, with a larger number than any before. On success, takes the reference to
 * the spool. Fails with -E2BIG if there are LAYERS_MAX layers, and with -ENOMEM. */
int layers_begin(struct layers *l, uint32_t generation, struct spool *spool);

enum layers_change {
	LAYERS_STORE,  /* blocks of [start, end) have been allocated; *added: bytes of new ones */
	LAYERS_WRITE,  /* [start, end) has been written; it may make the file larger */
	LAYERS_RESIZE, /* the size of the file is `end` */
	LAYERS_ZERO,   /* [start, end) has become zero; end <= size */
	/* The sets of the top layer have been copied into the one below, which it hides. */
	LAYERS_MERGE,
};
/* start <= end <= FRAMES_LIMIT. LAYERS_STORE increases *added; `added` may be NULL for all
 * others. */
int layers_change(struct layers *l, enum layers_change change, uint64_t start, uint64_t end,
		  uint64_t *added);
/* Returns the bytes of the blocks that the lower spool needs for the merge. */
uint64_t layers_merge_need(const struct layers *l);
/* Removes the top layer, which has been merged or is empty. */
void layers_pop(struct layers *l);

/* Returns the bytes of all stored blocks, which are the room that the draft takes. */
uint64_t layers_stored(const struct layers *l);

enum run_kind { RUN_ZERO, RUN_SPOOL, RUN_BENEATH };

struct run {
	enum run_kind kind;
	struct spool *spool; /* RUN_SPOOL; borrowed */
	uint64_t end;
};
/* Finds where the bytes at `at` come from; at < end <= size. The run ends at `end` or before. */
struct run layers_find(const struct layers *l, uint64_t at, uint64_t end);

#endif
