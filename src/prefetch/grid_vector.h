/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic with chunk numbers as points of a grid. A number is row-major; a difference of
 * coordinates is kept as two chunks of the grid, because it says more than the difference of their
 * numbers: three to the right in the row, or one down and seven to the left.
 *
 * Pure. Every number that comes out lies in the grid, whatever goes in.
 */
#ifndef PREFETCH_GRID_VECTOR_H
#define PREFETCH_GRID_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum { GRID_VECTORS = 6 /* differences in one sum */ };

/* Chunks along each dimension, slowest first; the product fits 63 bits. */
struct chunk_grid {
	unsigned int rank;
	const uint64_t *counts;
};

/* `times` the difference of coordinates from chunk `from` to chunk `to`. */
struct grid_vector {
	uint64_t from, to, times;
};

/* Chunks of the grid; a grid of no dimensions has one. */
uint64_t chunk_grid_size(const struct chunk_grid *g);
/* The chunk at the end of all n steps (at most GRID_VECTORS) from origin; false outside the
 * grid. */
bool grid_vector_sum(const struct chunk_grid *g, uint64_t origin, const struct grid_vector *steps,
		     unsigned int n, uint64_t *number);
/* How many differences of coordinates are as simple as the one from a to b, which is not 0, or
 * simpler: in as many dimensions, and no longer in any. At most the chunks of the grid. */
double grid_vector_simpler(const struct chunk_grid *g, uint64_t a, uint64_t b);
/* Whether a walk from a by single chunks, up or down, starts at the near end of a row. */
bool grid_vector_starts_row(const struct chunk_grid *g, uint64_t a, bool up);

#endif
