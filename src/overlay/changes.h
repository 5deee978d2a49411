/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of a draft were changed since a commit: sets of offsets, the newest first. Each
 * snapshot closes a set and begins a new one. A commit that succeeds drops the set of its snapshot
 * and all before it; after one that fails they still count.
 *
 * One thread at a time; any number of threads may read sets that do not change.
 */
#ifndef OVERLAY_CHANGES_H
#define OVERLAY_CHANGES_H

#include "frames.h"

struct changes {
	struct frames set;
	struct changes *before;
};

/* Makes a new set in front of the others. Returns NULL if out of memory. */
struct changes *changes_begin(struct frames_memory *memory, struct changes *before);
/* Frees a set and all before it. c may be NULL. */
void changes_free(struct changes *c);
/* Adds [start, end) to the newest set. c may be NULL. Errors are those of frames_add(). */
int changes_add(struct changes *c, uint64_t start, uint64_t end);
/* Returns the first offset of [start, end) that any set has, or end if there is none. */
uint64_t changes_next(const struct changes *c, uint64_t start, uint64_t end);

#endif
