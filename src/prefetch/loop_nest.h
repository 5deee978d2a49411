/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A nest of loops over a grid, as far as it is known from what was touched: like the odometer of
 * a car, level 0 moves with every chunk, level 1 when level 0 has come to its count, and so on.
 * Each level has a stride, which is a difference of coordinates in any dimensions, forth or back;
 * the chunk that is current is the nest's origin plus k strides of each level.
 *
 * The topmost level has no count until its loop was seen to end: it goes on to the edge of the
 * grid. All levels below have one. A level is sure of its stride when it was taken twice; a stride
 * that was taken once is trusted for one step more (two on level 0, where a step is one chunk).
 *
 * A nest of one level may run on from row to row as if the grid had one dimension. That is
 * presumed of a walk by single chunks that starts at the near end of a row, and believed of any
 * stride that was seen to do it.
 *
 * Pure.
 */
#ifndef PREFETCH_LOOP_NEST_H
#define PREFETCH_LOOP_NEST_H

#include "grid_vector.h"

enum {
	LOOP_NEST_LEVELS = GRID_VECTORS,
	LOOP_NEST_AHEAD = 8, /* chunks that may be left out, or come late, in a progression */
	LOOP_NEST_BACK = 16, /* chunks that were passed and are remembered as such */
};

enum loop_nest_rows { LOOP_NEST_ROW_ENDS, LOOP_NEST_ROW_PRESUMED, LOOP_NEST_ROW_GOES_ON };

struct loop_level {
	uint64_t from;	/* where the stride was seen: from this chunk... */
	int64_t stride; /* ...to the one whose number is larger by this; 0 only above level 0 */
	uint64_t count; /* 0: not known */
	uint64_t k;	/* below count */
	uint32_t seen;	/* steps that were taken as expected; 0: do not expect any */
};

struct loop_nest {
	uint64_t origin, newest;
	unsigned int n; /* levels */
	enum loop_nest_rows rows;
	uint64_t reach; /* greatest k of level 0 in this run */
	/* The last time that chunks were left out of a run: how many, where it went on, how long
	 * the run is since then; and how often the same was seen before, after so many chunks. */
	uint64_t skipped, skipped_to, since_skip, before_skip;
	uint32_t skips;
	uint32_t early;	    /* chunks before the first of the run, since the last step */
	uint32_t stretched; /* runs that became longer, since one ended as expected */
	struct loop_level levels[LOOP_NEST_LEVELS];
};

/* A run from chunk a to chunk b, which differ. */
void loop_nest_init(struct loop_nest *t, const struct chunk_grid *g, uint64_t a, uint64_t b);
/* The n-th chunk (0: the next) after the newest; false where the nest ends, as far as known. */
bool loop_nest_expect(const struct loop_nest *t, const struct chunk_grid *g, uint64_t n,
		      uint64_t *number);
/* Where a chunk lies: that many steps after the newest (negative: before), no farther than
 * LOOP_NEST_AHEAD and LOOP_NEST_BACK; 0 when it lies nowhere (or is the newest). */
int loop_nest_find(const struct loop_nest *t, const struct chunk_grid *g, uint64_t number);
/* Takes 1 to LOOP_NEST_AHEAD steps, as loop_nest_find() says. */
void loop_nest_step(struct loop_nest *t, const struct chunk_grid *g, unsigned int steps);
/* A chunk that was left out has come late, as loop_nest_find() says (negative). */
void loop_nest_late(struct loop_nest *t, int at);
/* A chunk that continues the nest although it was not expected: a run that is longer or shorter
 * than the others, or that goes on from row to row. Takes it. */
bool loop_nest_bend(struct loop_nest *t, const struct chunk_grid *g, uint64_t number);
/* A chunk that lies before the first one of a run of which little is known yet, or behind the last
 * one of the first run: readers side by side have brought others earlier, or the run goes the other
 * way. False: not that. Moves the newest only if the run turns round. */
bool loop_nest_widen(struct loop_nest *t, const struct chunk_grid *g, uint64_t number);
/* How many strides of level 0 it is from chunk a to chunk b: -3 to 3, and 0 for any other way. */
int loop_nest_strides(const struct loop_nest *t, const struct chunk_grid *g, uint64_t a,
		      uint64_t b);
/* The chunk before the given one in a run of this nest; false when that is no chunk. */
bool loop_nest_before(const struct loop_nest *t, const struct chunk_grid *g, uint64_t a,
		      uint64_t *number);
/* Whether its runs begin at chunks that have no progression. */
bool loop_nest_wanders(const struct loop_nest *t);
/* First chunk of the current run. */
uint64_t loop_nest_run_start(const struct loop_nest *t);
/* The current run has ended and the next begins at a chunk: learns the level above, or begins the
 * run again when the chunk lies in it, or takes the shape elsewhere. */
void loop_nest_restart(struct loop_nest *t, const struct chunk_grid *g, uint64_t start);

#endif
