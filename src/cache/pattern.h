/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks a reader will want next. A track follows one dataset of one stream: the stride
 * between the last chunks, how often it was kept, and how far ahead loads were already asked for.
 * Pure; the caller's lock guards it.
 */
#ifndef CACHE_PATTERN_H
#define CACHE_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

enum { PATTERN_TRACKS = 32 /* datasets that one stream interleaves */ };

struct track {
	uint64_t used; /* the pattern's clock at its last step; 0: free */
	uint32_t dataset;
	uint64_t last;	/* newest chunk of the progression */
	int64_t stride; /* chunks from one to the next; 0 unknown yet */
	uint32_t run;	/* how often the stride was kept */
	uint64_t depth; /* chunks to have asked for, ahead of last */
	uint64_t ahead; /* chunks that were asked for, ahead of last */
};

struct pattern {
	uint64_t clock; /* steps of all tracks */
	struct track tracks[PATTERN_TRACKS];
};

/* The reader touches a chunk. Returns the track when there is reason to load ahead, else NULL. */
struct track *pattern_touch(struct pattern *p, uint32_t dataset, uint64_t chunk);
/* Tracks that load ahead at the moment, 1 at least: they share what the stream may load ahead. */
uint64_t pattern_active(const struct pattern *p);
/* The next chunk to ask for: false when depth (or limit, if less) is reached or the dataset of
 * nchunks ends. pattern_asked() then counts it. */
bool pattern_next(const struct track *t, uint64_t nchunks, uint64_t limit, uint64_t *chunk);
void pattern_asked(struct track *t);

#endif
