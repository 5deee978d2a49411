/* SPDX-License-Identifier: Apache-2.0 */
/* Chunk grids: conversion between chunk numbers and chunk coordinates, in row-major order. In every
 * grid that grid_init() accepts no chunk dimension is 0, nchunks <= 2^62 and chunk_elems < 2^32.
 * Pure functions; any thread may call them. */
#include <data/dspace.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/mem.h>

static const uint64_t max_chunks = UINT64_C(1) << 62;

/* Writes the shape of a chunk to `out`. */
static int set_chunk(struct grid *g, const uint64_t *chunk, uint32_t *out, struct err *err)
{
	g->chunk_elems = 1;
	for (uint32_t i = 0; i < g->rank; i++) {
		if (chunk[i] == 0)
			return err_set(err, -EINVAL, "chunk dimension %u is 0", i);
		if (!mul_u64(g->chunk_elems, chunk[i], &g->chunk_elems) ||
		    g->chunk_elems > UINT32_MAX)
			return err_set(err, -E2BIG, "chunk of 2^32 elements or more");
		out[i] = (uint32_t)chunk[i];
	}
	return 0;
}

/* Writes the number of chunks along each dimension to `out`. */
static int count_chunks(struct grid *g, uint64_t *out, struct err *err)
{
	bool fits = true, empty = false;
	uint64_t n = 1;
	for (uint32_t i = 0; i < g->rank; i++) {
		out[i] = div_up_u64(g->dims[i], g->chunk[i]);
		if (out[i] == 0)
			empty = true;
		else
			fits = fits && mul_u64(n, out[i], &n) && n <= max_chunks;
	}
	if (!empty && !fits)
		return err_set(err, -E2BIG, "more than 2^62 chunks");
	g->nchunks = empty ? 0 : n;
	return 0;
}

int grid_init(struct arena *a, struct grid *g, uint32_t rank, const uint64_t *dims,
	      const uint64_t *chunk, struct err *err)
{
	if (rank == 0 || rank > DSPACE_MAX_RANK)
		return err_set(err, -E2BIG, "chunk grid of %u dimensions, the limits are 1 and %d",
			       rank, DSPACE_MAX_RANK);
	/* One block for dims, count and chunk. */
	uint64_t *numbers = arena_array(a, rank, 2 * sizeof(uint64_t) + sizeof(uint32_t));
	if (!numbers)
		return err_no_memory(err);
	uint64_t *count = numbers + rank;
	uint32_t *shape = (uint32_t *)(count + rank);
	memcpy(numbers, dims, rank * sizeof(*dims));
	*g = (struct grid){.rank = rank, .dims = numbers, .chunk = shape, .count = count};
	const int rc = set_chunk(g, chunk, shape, err);
	return rc ? rc : count_chunks(g, count, err);
}

bool grid_same_chunks(const struct grid *a, const struct grid *b)
{
	if (a->rank != b->rank)
		return false;
	for (uint32_t i = 0; i < a->rank; i++)
		if (a->chunk[i] != b->chunk[i])
			return false;
	return true;
}

void grid_coords(const struct grid *g, uint64_t number, uint64_t *coords)
{
	assert(number < g->nchunks);
	for (uint32_t i = g->rank; i-- > 0;) {
		coords[i] = number % g->count[i];
		number /= g->count[i];
	}
}

uint64_t grid_find(const struct grid *g, uint64_t element, uint64_t *number)
{
	uint64_t coords[DSPACE_MAX_RANK], index = 0, scale = 1;
	for (uint32_t i = g->rank; i-- > 0; scale *= g->chunk[i]) {
		const uint64_t at = element % g->dims[i];
		element /= g->dims[i];
		coords[i] = at / g->chunk[i];
		index += at % g->chunk[i] * scale;
	}
	*number = grid_number(g, coords);
	return index;
}

uint64_t grid_covered(const struct grid *g, uint64_t number)
{
	uint64_t coords[DSPACE_MAX_RANK], last = 0;
	grid_coords(g, number, coords);
	for (uint32_t i = 0; i < g->rank; i++) {
		const uint64_t inside = g->dims[i] - coords[i] * g->chunk[i];
		last = last * g->chunk[i] + min_u64(inside, g->chunk[i]) - 1;
	}
	return last + 1;
}

uint64_t grid_number(const struct grid *g, const uint64_t *coords)
{
	uint64_t number = 0;
	for (uint32_t i = 0; i < g->rank; i++) {
		assert(coords[i] < g->count[i]);
		number = number * g->count[i] + coords[i];
	}
	return number;
}

void grid_run(const struct grid *g, uint64_t number, uint64_t *first, uint64_t *n)
{
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(g, number, coords);
	*first = 0;
	*n = 1;
	for (uint32_t i = 0; i < g->rank; i++) {
		const uint64_t start = coords[i] * g->chunk[i];
		*first = *first * g->dims[i] + start;
		*n *= min_u64(g->chunk[i], g->dims[i] - start);
	}
}

int grid_compare(uint32_t rank, const uint64_t *a, const uint64_t *b)
{
	for (uint32_t d = 0; d < rank; d++)
		if (a[d] != b[d])
			return a[d] < b[d] ? -1 : 1;
	return 0;
}

bool grid_is_linear(const struct grid *g)
{
	uint32_t cut = 0;
	uint64_t before = 1;
	while (cut < g->rank && g->chunk[cut] == 1)
		before *= g->count[cut++];
	if (cut == g->rank)
		return true;
	for (uint32_t d = cut + 1; d < g->rank; d++)
		if (g->chunk[d] != g->dims[d])
			return false;
	return before == 1 || g->dims[cut] % g->chunk[cut] == 0;
}

void grid_cut(uint32_t rank, const uint64_t *dims, uint64_t elem_size, uint64_t limit,
	      uint64_t *chunk)
{
	/* Elements that a chunk may still be multiplied by. grid_init() refuses more than 2^32. */
	uint64_t room = min_u64(limit / max_u64(elem_size, 1), UINT32_MAX);
	for (uint32_t i = rank; i-- > 0;) {
		chunk[i] = min_u64(max_u64(room, 1), dims[i]);
		/* Once a dimension is not whole, the elements of a further row do not follow. */
		room = chunk[i] == dims[i] ? room / dims[i] : 1;
	}
}
