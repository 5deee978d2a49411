/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts which chunks a program reads next. A pattern records which chunks of one open file are
 * read, and recognises nested loops over the chunk grids of its datasets (loop_nest.h), several
 * loops at the same time. See doc/decisions/009-what-prefetching-recognises.md.
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
	PATTERN_TRACKS = 16,
	PATTERN_UNMATCHED = 64, /* remembered chunks of all datasets that belong to no track */
};

enum pattern_event {
	/* The chunk was read recently. This does not change the tracks: programs read each chunk
	 * row by row, and parallel readers change the order of neighbours. */
	PATTERN_REPEAT,
	PATTERN_RANDOM,	 /* the chunk belongs to no track */
	PATTERN_FOLLOWS, /* the chunk continues a track, or begins one */
	PATTERN_BREAKS,	 /* the program has left a track, whose prefetched chunks may be wasted */
};

/* One recognised loop nest in one dataset. */
struct track {
	uint32_t depth; /* set by the caller; 0 in a new track */
	uint32_t dataset;
	uint64_t used;		/* the pattern's clock at its last step; 0 if not in use */
	uint32_t others;	/* other chunks of the dataset that were read since its last step */
	uint32_t others_before; /* the value of `others` at its last step */
	bool broken;		/* PATTERN_BREAKS was reported since its last step */
	struct loop_nest nest;
};

/* A chunk that belongs to no track. */
struct unmatched_chunk {
	uint64_t number;
	uint32_t dataset;
};

/* In zeroed memory no read is recorded. */
struct pattern {
	uint64_t clock; /* reads that were not PATTERN_REPEAT */
	uint32_t nunmatched;
	struct unmatched_chunk unmatched[PATTERN_UNMATCHED]; /* newest first */
	struct track tracks[PATTERN_TRACKS];
};

/*
 * Records that the program reads chunk `number` of a dataset. The grid of a dataset never changes.
 * *track becomes the track that the chunk belongs to or breaks, and is valid until the next call.
 * It is NULL with PATTERN_RANDOM, and with PATTERN_REPEAT if the chunk belongs to no track.
 */
enum pattern_event pattern_read(struct pattern *p, uint32_t dataset, const struct chunk_grid *g,
				uint64_t number, struct track **track);
/*
 * Stores the n-th chunk (0 is the next one) that the track predicts after its newest one. The chunk
 * lies in the grid. Returns false if the track predicts no such chunk.
 */
bool pattern_expect(const struct track *t, const struct chunk_grid *g, uint64_t n,
		    uint64_t *number);

#endif
