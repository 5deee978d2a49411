/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks a reader will want next. A pattern watches the chunks that one stream touches and
 * finds the progressions in them: nests of loops over the chunk grids of its datasets
 * (loop_nest.h), several of them side by side.
 *
 * Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_PATTERN_H
#define PREFETCH_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "grid_vector.h"
#include "loop_nest.h"

enum {
	PATTERN_TRACKS = 32,
	PATTERN_TRACKS_OF_DATASET = 16,
	PATTERN_LOOSE = 64, /* touches that belong to no track, of all datasets */
};

enum pattern_event {
	/* A chunk that was touched lately: nothing new is learned. Rows of a chunk are read many
	 * times, and several threads read for one stream, so neighbours come a little out of
	 * order. */
	PATTERN_AGAIN,
	PATTERN_RANDOM, /* no progression */
	/* Two chunks, or the end of a loop, suggest a stride that nothing has confirmed: one or two
	 * chunks are worth prefetching. */
	PATTERN_GUESS,
	PATTERN_FOLLOWS, /* the chunk was expected, or makes a progression: goes on */
	PATTERN_BREAKS,	 /* others were expected: what was prefetched may be wasted */
};

/* One progression in one dataset. */
struct track {
	uint32_t depth; /* the caller's own; 0 when a track is born */
	uint64_t used;	/* the pattern's clock at its last step; 0: free */
	uint32_t dataset;
	uint32_t misses; /* other chunks of the dataset that were touched since its last step */
	uint32_t rhythm; /* misses that are usual between two steps */
	bool broken;	 /* it was said that the track breaks */
	bool guess;	 /* two chunks, or the end of a loop, and nothing since */
	double chance;	 /* that random touches look like this */
	struct loop_nest nest;
};

/* A touch that belongs to no track. */
struct loose {
	uint64_t number;
	uint32_t dataset;
};

/* Zeroed memory is a pattern that has seen nothing. */
struct pattern {
	uint64_t clock;	       /* touches that were not PATTERN_AGAIN */
	uint32_t guesses_lost; /* in sequence */
	uint32_t nloose;
	struct loose loose[PATTERN_LOOSE]; /* newest first */
	struct track tracks[PATTERN_TRACKS];
};

void pattern_init(struct pattern *p);
/*
 * The reader touches chunk `number` (row-major) of a dataset, whose grid is always the same.
 * *track: the progression that the chunk belongs to, or which it breaks; NULL with PATTERN_RANDOM,
 * and with PATTERN_AGAIN when there is none. Valid until the next touch.
 */
enum pattern_event pattern_touch(struct pattern *p, uint32_t dataset, const struct chunk_grid *g,
				 uint64_t number, struct track **track);
/*
 * The n-th chunk (0: the next) expected after the newest of the track; false when the progression,
 * as far as it is known, ends before: at the edge of the dataset, or at the end of a loop whose
 * continuation is not known. Never outside the grid.
 */
bool pattern_expect(const struct track *t, const struct chunk_grid *g, uint64_t n,
		    uint64_t *number);
/* Chunks that a progression is worth before more is known of it: with so many, a reader of random
 * chunks, who would be taken for it by chance, loads one in a hundred in vain. */
uint32_t pattern_worth(const struct track *t);

#endif
