/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of the chunks that a program touches, generated from loops; and the result of prefetching
 * the chunks that the pattern expects.
 */
#ifndef TESTS_PREFETCH_TRACE_H
#define TESTS_PREFETCH_TRACE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "prefetch/pattern.h"

enum {
	TRACE_MAX = 500000,
	TRACE_RANK = 5,
	TRACE_LOOPS = 6,
	TRACE_DEPTH = 16, /* chunks prefetched at each touch that follows a track */
};

/* One loop over a dimension of the grid; a dimension may have several: blocks of a hyperslab. */
struct loop {
	unsigned int dim;
	int64_t start, step;
	uint64_t count;
};

struct trace {
	struct chunk_grid grid;
	uint64_t chunks;
	size_t n;
	uint64_t touches[TRACE_MAX];
	bool stray[TRACE_MAX]; /* read by the kernel, not by the program */
};

/* The result of a trace. A chunk counts when the program touches it for the first time. */
struct outcome {
	size_t firsts;	   /* chunks that were touched */
	size_t missed;	   /* chunks that were touched but not prefetched */
	size_t prefetched; /* chunks that were prefetched */
	size_t useful;	   /* prefetched chunks that were touched later */
	size_t events[PATTERN_BREAKS + 1];
};

static inline uint32_t trace_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

static inline void trace_init(struct trace *t, unsigned int rank, const uint64_t *counts)
{
	t->grid = (struct chunk_grid){rank, counts};
	t->chunks = chunk_grid_size(&t->grid);
	t->n = 0;
}

static inline void trace_add(struct trace *t, uint64_t number)
{
	assert(t->n < TRACE_MAX && number < t->chunks);
	t->stray[t->n] = false;
	t->touches[t->n++] = number;
}

/* Adds nested loops, the first one slowest. */
static inline void trace_loops(struct trace *t, const struct loop *loops, unsigned int n)
{
	uint64_t i[TRACE_LOOPS] = {0};
	for (bool more = true; more;) {
		int64_t at[TRACE_RANK] = {0};
		uint64_t number = 0;
		for (unsigned int l = 0; l < n; l++)
			at[loops[l].dim] += loops[l].start + (int64_t)i[l] * loops[l].step;
		for (unsigned int d = 0; d < t->grid.rank; d++) {
			assert(at[d] >= 0 && (uint64_t)at[d] < t->grid.counts[d]);
			number = number * t->grid.counts[d] + (uint64_t)at[d];
		}
		trace_add(t, number);
		more = false;
		for (unsigned int l = n; l-- > 0 && !more;) {
			more = ++i[l] < loops[l].count;
			if (!more)
				i[l] = 0;
		}
	}
}

/* Shuffles each window of touches, as parallel threads do. */
static inline void trace_jitter(struct trace *t, size_t window, uint64_t seed)
{
	for (size_t at = 0; at + window <= t->n; at += window) {
		for (size_t i = window - 1; i > 0; i--) {
			size_t k = trace_random(&seed) % (i + 1);
			uint64_t swap = t->touches[at + i];
			t->touches[at + i] = t->touches[at + k];
			t->touches[at + k] = swap;
		}
	}
}

/* Repeats each touch. */
static inline void trace_repeat(struct trace *t, size_t times)
{
	assert(t->n * times <= TRACE_MAX);
	for (size_t i = t->n; i-- > 0;)
		for (size_t k = 0; k < times; k++)
			t->touches[i * times + k] = t->touches[i];
	t->n *= times;
}

/* Adds the next chunk of the file after one touch of `one_of`, as read-ahead of the kernel does. */
static inline void trace_stray(const struct trace *t, struct trace *out, unsigned int one_of,
			       uint64_t seed)
{
	trace_init(out, t->grid.rank, t->grid.counts);
	for (size_t i = 0; i < t->n; i++) {
		trace_add(out, t->touches[i]);
		if (trace_random(&seed) % one_of == 0 && t->touches[i] + 1 < t->chunks) {
			trace_add(out, t->touches[i] + 1);
			out->stray[out->n - 1] = true;
		}
	}
}

/* Interleaves equal parts of a trace, one touch of each in turn. */
static inline void trace_interleave(const struct trace *t, struct trace *out, size_t parts)
{
	const size_t each = t->n / parts;
	trace_init(out, t->grid.rank, t->grid.counts);
	for (size_t i = 0; i < each; i++)
		for (size_t k = 0; k < parts; k++)
			trace_add(out, t->touches[k * each + i]);
}

/*
 * Reads a trace and prefetches `depth` chunks at each touch that follows a track. Counts misses
 * from touch `from` on. Counts prefetches from there to `tail` touches before the end, because the
 * chunks of later prefetches may not be touched before the trace ends.
 */
static inline struct outcome trace_run(const struct trace *t, size_t from, size_t tail,
				       uint64_t depth)
{
	enum { ASKED = 1, TOUCHED = 2, COUNTED = 4 };
	struct pattern *p = calloc(1, sizeof(*p));
	uint8_t *state = calloc(t->chunks, 1);
	struct outcome o = {0};
	if (!p || !state)
		abort();
	for (size_t i = 0; i < t->n; i++) {
		uint8_t *s = &state[t->touches[i]];
		struct track *track = NULL;
		uint64_t next = 0;
		if (!(*s & TOUCHED)) {
			o.firsts += i >= from && !t->stray[i];
			o.missed += i >= from && !t->stray[i] && !(*s & ASKED);
			o.useful += (*s & COUNTED) != 0;
		}
		*s |= TOUCHED;
		enum pattern_event e = pattern_read(p, 7, &t->grid, t->touches[i], &track);
		o.events[e]++;
		uint64_t limit = e == PATTERN_FOLLOWS ? depth : 0;
		for (uint64_t n = 0; n < limit && pattern_expect(track, &t->grid, n, &next); n++) {
			if (!state[next]) {
				bool counts = i >= from && i + tail < t->n;
				state[next] = counts ? ASKED | COUNTED : ASKED;
				o.prefetched += counts;
			}
		}
	}
	free(state);
	free(p);
	return o;
}

#endif
