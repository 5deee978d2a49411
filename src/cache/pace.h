/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far ahead of a reader to load: the product of bandwidth and delay. A load takes `latency`,
 * the reader takes one step after another in its own time (what it waited for the cache left out),
 * so latency / time loads under way keep it from waiting. Twice that, for what varies; and since
 * the least latency of late is taken, which leaves out queues, a pace does not grow because its
 * own loads stand in each other's way. A reader that waits all the same doubles its depth, up to
 * twice of that again. From a directory next door two or three chunks are ahead, from a bucket
 * 50 ms away as many as the store takes.
 *
 * Pure; the caller's lock guards it.
 */
#ifndef CACHE_PACE_H
#define CACHE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PACE_GUESS = 2, /* chunks ahead on a hunch */
	PACE_BEGIN = 4, /* and of a pattern that is certain, on a store that is far away */
	PACE_MIN = 2,
	PACE_SLACK = 8, /* what waiting may bring, at least */
	PACE_MAX = 64,
	PACE_SURE = 6 << 20, /* bytes in the file's order that are more than the kernel reads ahead
				of a program: less may not be what the program reads */
	PACE_UNSURE = 1 << 20, /* bytes ahead until then, or four chunks */
};

struct pace {
	uint32_t depth; /* chunks to have ahead; 0: none */
	uint64_t stepped_ns;
	uint64_t waited_ns; /* by the stream's count, at that time */
	uint64_t taken;	    /* bytes of the chunks that it went through */
	uint64_t think_ns;  /* the reader's own time for a step, smoothed; 0: not known */
};

/* What happens at a step. */
struct pace_step {
	uint64_t now_ns, waited_ns; /* waited: all that the stream's readers did so far */
	uint64_t steps;		    /* chunks that the reader has moved on by */
	uint64_t latency_ns;	    /* of loads; 0: not known */
	uint64_t cost;		    /* bytes of a chunk */
	uint64_t worth;		    /* chunks that a pattern is worth at once; 0: not known */
	bool late;		    /* the reader has to wait, or had to */
	bool sequential;	    /* it goes through the file in its order */
};

/* On a hunch: two chunks. */
void pace_guess(struct pace *p, const struct pace_step *step);
/* A pattern that was confirmed before anything was measured of it. */
void pace_begin(struct pace *p, const struct pace_step *step);
void pace_follow(struct pace *p, const struct pace_step *step);
/* The reader went elsewhere: half as far when it comes back. */
void pace_break(struct pace *p);
/* A chunk that was loaded ahead went before it was read. */
void pace_wasted(struct pace *p);

#endif
