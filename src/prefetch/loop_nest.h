/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nested loops over a chunk grid, learned from the chunks that a program reads. The nest works like
 * an odometer: level 0 moves with every chunk, level 1 when level 0 has reached its count, and so
 * on. The stride of a level is a difference of coordinates in any dimensions, forward or backward.
 * The current chunk is the origin plus k strides of each level. A run is one pass of level 0.
 *
 * The top level has no count: it continues to the edge of the grid. If the stride of a level above
 * 0 was seen once, the level predicts one more step; if it was seen twice, all steps.
 *
 * Pure functions.
 */
#ifndef PREFETCH_LOOP_NEST_H
#define PREFETCH_LOOP_NEST_H

#include "grid_vector.h"

enum {
	LOOP_NEST_LEVELS = GRID_VECTORS,
	LOOP_NEST_AHEAD = 4, /* a read may come this many steps early, */
	LOOP_NEST_BACK = 16, /* or this many steps late */
	LOOP_NEST_NEAR = 3,  /* strides by which parallel readers swap the first chunks of a run */
};

struct loop_level {
	uint64_t from;	/* the stride is the difference of coordinates from this chunk... */
	int64_t stride; /* ...to the chunk whose number is larger by this; not 0 on level 0 */
	uint64_t count; /* iterations; 0 if unknown, on the top level */
	uint64_t k;	/* current iteration */
	uint32_t seen;	/* steps that the program took with this stride */
};

struct loop_nest {
	uint64_t origin, newest;
	unsigned int n; /* levels */
	struct loop_level levels[LOOP_NEST_LEVELS];
};

/* Starts with one level. The program reads chunk a, then chunk b, which differs from a. */
void loop_nest_init(struct loop_nest *t, uint64_t a, uint64_t b);
/* Stores the n-th chunk (0 is the next one) after the newest. Returns false if the nest predicts no
 * such chunk, or if the chunk lies outside the grid. */
bool loop_nest_expect(const struct loop_nest *t, const struct chunk_grid *g, uint64_t n,
		      uint64_t *number);
/* Stores how many steps a chunk lies after the newest (at most LOOP_NEST_AHEAD) or before it
 * (negative, at most LOOP_NEST_BACK). Returns false if it lies at none of these steps. */
bool loop_nest_find(const struct loop_nest *t, const struct chunk_grid *g, uint64_t number,
		    int *steps);
/* Moves the newest forward by `steps`, which loop_nest_find() has stored (1 to LOOP_NEST_AHEAD). */
void loop_nest_step(struct loop_nest *t, const struct chunk_grid *g, unsigned int steps);
/* If the chunk lies shortly before the first chunk of a nest or of its newest level, moves the
 * beginning there, because parallel readers changed the order. Returns false if the chunk lies
 * elsewhere. */
bool loop_nest_begin_earlier(struct loop_nest *t, const struct chunk_grid *g, uint64_t number);
/* If the chunk is the next one of a level whose lower loops ended earlier or later than predicted,
 * moves the newest there and corrects the count. Returns false if it is no such chunk. */
bool loop_nest_correct_count(struct loop_nest *t, const struct chunk_grid *g, uint64_t number);
/* Returns the number of strides of level 0 from chunk a to chunk b, up to LOOP_NEST_NEAR in either
 * direction, otherwise 0. */
int loop_nest_strides(const struct loop_nest *t, const struct chunk_grid *g, uint64_t a,
		      uint64_t b);
/* Returns the first chunk of the current run. */
uint64_t loop_nest_run_start(const struct loop_nest *t);
/* To be called when the current run has ended. The next run begins at chunk `start`, and its newest
 * chunk lies `strides` strides after that. Adds a level, or moves the nest there. */
void loop_nest_restart(struct loop_nest *t, uint64_t start, uint64_t strides);

#endif
