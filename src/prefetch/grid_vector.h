/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic with chunk numbers as points of a grid. A number is row-major. A difference of
 * coordinates is stored as two chunks of the grid, because the difference of their numbers is
 * ambiguous: 3 may be three chunks to the right, or one row down and seven chunks to the left.
 *
 * Pure functions. Every resulting number lies in the grid, for any input.
 */
#ifndef PREFETCH_GRID_VECTOR_H
#define PREFETCH_GRID_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum { GRID_VECTORS = 6 /* differences in one sum */ };

/* Number of chunks along each dimension, slowest first; the product fits 63 bits. */
struct chunk_grid {
	unsigned int rank;
	const uint64_t *counts;
};

/* `times` the difference of coordinates from chunk `from` to chunk `to`. */
struct grid_vector {
	uint64_t from, to, times;
};

/* Returns the number of chunks, 1 if the grid has no dimensions. */
uint64_t chunk_grid_size(const struct chunk_grid *g);
/* Gets the chunk at origin plus the first n (at most GRID_VECTORS) steps. Returns false if it is
 * outside the grid. */
bool grid_vector_sum(const struct chunk_grid *g, uint64_t origin, const struct grid_vector *steps,
		     unsigned int n, uint64_t *number);
/* Returns the number of differences of coordinates that are at most as complex as the one from a to
 * b: they are nonzero in as many dimensions, and not longer in any of them. The result is at most
 * the number of chunks. */
double grid_vector_simpler(const struct chunk_grid *g, uint64_t a, uint64_t b);

#endif
