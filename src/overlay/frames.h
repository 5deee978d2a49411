/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of byte offsets of a file, kept as ranges.
 *
 * The file is divided into frames of 64 KiB. The frames are the leaves of a tree with 16 entries in
 * each node. An entry of any level is empty, full, or points to the next level. A frame that is
 * neither empty nor full has sorted ranges, or a bitmap if it has more than 1,024 of them. So the
 * memory of the set is bounded by the frames that are covered in part, whatever the number of calls
 * was: bytes that are written in order take nothing, and a frame takes at most 8 KiB.
 *
 * One thread at a time; any number of threads may read a set that does not change.
 */
#ifndef OVERLAY_FRAMES_H
#define OVERLAY_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_LIMIT ((uint64_t)1 << 60) /* offsets are less than this */
#define FRAMES_NONE  UINT64_MAX

/* The memory of several sets. A call that needs more than `allowed` returns -EAGAIN, so that the
 * budget is asked without the caller's lock: the caller then increases `allowed` and repeats the
 * call, or fails. */
struct frames_memory {
	size_t used, allowed; /* bytes */
};
enum { FRAMES_STEP = 32 << 10 }; /* by which the caller increases `allowed` */

/* Zero-initialised, except for `memory`, it is empty. */
struct frames {
	struct frames_memory *memory;
	void *root;
	unsigned int levels; /* of nodes above the frames */
	uint64_t bytes;	     /* number of offsets in the set */
};

/* Add or remove [start, end), with start <= end <= FRAMES_LIMIT. Fails with -EAGAIN (see
 * frames_memory), and with -ENOMEM. A call that fails may have changed a first part of the range,
 * and may be repeated. A frames_remove() whose end is at or behind the end of the set changes
 * nothing if it fails. */
int frames_add(struct frames *f, uint64_t start, uint64_t end);
int frames_remove(struct frames *f, uint64_t start, uint64_t end);
/* Returns the first offset at or after `at` that is in the set, or FRAMES_NONE if there is none. If
 * `inside` is false, returns the first one that is not in the set. */
uint64_t frames_find(const struct frames *f, uint64_t at, bool inside);
/* Returns how many offsets of [start, end) are in the set. */
uint64_t frames_count(const struct frames *f, uint64_t start, uint64_t end);
static inline bool frames_cover(const struct frames *f, uint64_t start, uint64_t end)
{
	return frames_find(f, start, false) >= end;
}
void frames_release(struct frames *f);

#endif
