/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic with chunk numbers as points of a grid. A number is row-major; a difference of
 * coordinates is kept as two chunks of the grid, because it says more than the difference of their
 * numbers: three to the right in the row, or one down and seven to the left.
 *
 * Pure. Every number that comes out lies in the grid, whatever goes in.
 */
#ifndef CACHE_LATTICE_H
#define CACHE_LATTICE_H

#include <stdbool.h>
#include <stdint.h>

enum { LATTICE_STEPS = 6 /* differences in one sum */ };

/* Chunks along each dimension, slowest first; the product fits 63 bits. */
struct pattern_grid {
	unsigned int rank;
	const uint64_t *counts;
};

/* `times` the difference of coordinates from chunk `from` to chunk `to`. */
struct lattice_step {
	uint64_t from, to, times;
};

/* Chunks of the grid; a grid of no dimensions has one. */
uint64_t lattice_chunks(const struct pattern_grid *g);
/* The chunk at the end of all n steps (at most LATTICE_STEPS) from origin; false outside the
 * grid. */
bool lattice_sum(const struct pattern_grid *g, uint64_t origin, const struct lattice_step *steps,
		 unsigned int n, uint64_t *number);
/* How many differences of coordinates are as simple as the one from a to b, which is not 0, or
 * simpler: in as many dimensions, and no longer in any. At most the chunks of the grid. */
double lattice_simpler(const struct pattern_grid *g, uint64_t a, uint64_t b);
/* Whether a walk from a by single chunks, up or down, starts at the near end of a row. */
bool lattice_starts_row(const struct pattern_grid *g, uint64_t a, bool up);

#endif
