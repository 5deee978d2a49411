/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many chunks to prefetch ahead of a reader: the product of bandwidth and delay. A load takes
 * `latency`, and the reader takes one step after another in its own time, without what it waited
 * for the cache. So latency / time loads under way keep it from waiting. The depth is twice that,
 * because both vary. The latency is the shortest of late (latency.h), without queues, so a depth
 * does not grow because its own loads delay each other. A reader that waits all the same doubles
 * its depth, up to twice of that again. From a directory next door the depth is two or three
 * chunks, from a bucket 50 ms away as many as the store takes.
 *
 * Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_DEPTH_H
#define PREFETCH_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#include <prefetch/kernel.h>

enum {
	DEPTH_GUESS = 2, /* chunks for a pattern that is a guess */
	DEPTH_BEGIN = 4, /* and for one that is certain, on a store that is far away */
	DEPTH_MIN = 2,
	DEPTH_SLACK = 8, /* what waiting may bring, at least */
	DEPTH_MAX = 64,
	DEPTH_SURE = KERNEL_AHEAD, /* bytes in the file's order: less may not be what the program
				      reads */
	DEPTH_UNSURE = 1 << 20,	   /* bytes ahead until then, or four chunks */
};

struct depth {
	uint32_t chunks; /* to be loaded, or asked for, ahead of the reader */
	uint64_t stepped_ns;
	uint64_t waited_ns; /* by the stream's count, at that time */
	uint64_t taken;	    /* bytes of the chunks that it went through */
	uint64_t think_ns;  /* the reader's own time for a step, smoothed; 0: not known */
};

/* What happens at a step. */
struct depth_step {
	uint64_t now_ns, waited_ns; /* waited: all that the stream's readers did so far */
	uint64_t steps;		    /* chunks that the reader has moved on by */
	uint64_t latency_ns;	    /* of loads; 0: not known */
	uint64_t cost;		    /* bytes of a chunk */
	uint64_t worth;		    /* chunks that a pattern is worth at once; 0: not known */
	bool late;		    /* the reader has to wait, or had to */
	bool sequential;	    /* it goes through the file in its order */
};

/* A pattern that is a guess: two chunks. */
void depth_guess(struct depth *p, const struct depth_step *step);
/* A pattern that was confirmed before anything was measured of it. */
void depth_begin(struct depth *p, const struct depth_step *step);
void depth_follow(struct depth *p, const struct depth_step *step);
/* The reader went elsewhere: half as far when it comes back. */
void depth_break(struct depth *p);
/* A prefetched chunk was evicted before it was read. */
void depth_wasted(struct depth *p);

#endif
