/* SPDX-License-Identifier: Apache-2.0 */
/* Dataspaces (File Format Specification, IV.A.2.b) and chunk grids over them. */
#ifndef DATA_DSPACE_H
#define DATA_DSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/mem.h>
#include <hsmount/err.h>

enum { DSPACE_MAX_RANK = 32 };
#define DSPACE_UNLIMITED UINT64_MAX

enum dspace_class { DSPACE_SCALAR = 0, DSPACE_SIMPLE = 1, DSPACE_NULL = 2 };

/* A domain may have a million dataspaces, most of them of few dimensions. So the dimensions are in
 * an arena, and a copy of the struct shares them. */
struct dspace {
	enum dspace_class cls;
	uint32_t rank;	      /* 0 unless simple */
	const uint64_t *dims; /* rank numbers */
	const uint64_t *max;  /* rank numbers >= dims; DSPACE_UNLIMITED */
	uint64_t nelems;      /* 1 if scalar, 0 if null, otherwise the product of dims */
};

void dspace_scalar(struct dspace *s);
void dspace_null(struct dspace *s);
/* Copies the dimensions into the arena. If max is NULL, they are fixed. Fails with -EINVAL if the
 * rank is 0 or max < dims, with -E2BIG if the rank is over 32 or there are more than 2^63 elements,
 * and with -ENOMEM. */
int dspace_simple(struct arena *a, struct dspace *s, uint32_t rank, const uint64_t *dims,
		  const uint64_t *max, struct err *err);
/* Returns true if any dimension can grow. */
bool dspace_extendible(const struct dspace *s);
bool dspace_equal(const struct dspace *a, const struct dspace *b);
/* These compare only the dimensions, and all but the dimensions. */
bool dspace_same_dims(const struct dspace *a, const struct dspace *b);
bool dspace_same_limits(const struct dspace *a, const struct dspace *b);

/*
 * A chunk grid: the chunks that cover a dataspace, numbered in row-major order.
 */
struct grid {
	uint32_t rank;
	const uint64_t *dims;  /* extent of the dataset, in elements */
	const uint32_t *chunk; /* extent of a chunk, in elements, each > 0 */
	const uint64_t *count; /* chunks along each dimension; 0 where dims is 0 */
	uint64_t nchunks;      /* product of count */
	uint64_t chunk_elems;  /* product of chunk */
};

/* The numbers of the grid are put in the arena. Fails with -EINVAL if a chunk dimension is 0; with
 * -E2BIG if the rank is 0 or over 32, a chunk has 2^32 elements or more, or there are more than
 * 2^62 chunks; and with -ENOMEM. */
int grid_init(struct arena *a, struct grid *g, uint32_t rank, const uint64_t *dims,
	      const uint64_t *chunk, struct err *err);
/* Returns whether the chunks have the same shape. */
bool grid_same_chunks(const struct grid *a, const struct grid *b);
/* Returns whether the chunks in sequence are the elements in row-major order: chunks divide one
 * dimension, have 1 element along the dimensions before it, and cover the dimensions after it. Only
 * the last chunk of the dataset may be partial. */
bool grid_is_linear(const struct grid *g);
/* Cuts a dataset without chunks (compact, contiguous) into chunks of at most `limit` bytes, each of
 * which is one contiguous run of elements: whole rows (or planes, …) where one fits, otherwise
 * parts of one row. elem_size is in bytes; an element that is larger than `limit` is a chunk of its
 * own. Writes `rank` chunk dimensions, each > 0. Every dimension of dims is > 0. */
void grid_cut(uint32_t rank, const uint64_t *dims, uint64_t elem_size, uint64_t limit,
	      uint64_t *chunk);
/* These convert a chunk number, which is less than nchunks, to chunk coordinates (in chunks, not
 * elements) and back. */
void grid_coords(const struct grid *g, uint64_t number, uint64_t *coords);
uint64_t grid_number(const struct grid *g, const uint64_t *coords);
/* Finds an element, which is counted in row-major order. Returns its index in its chunk, and sets
 * *number to the number of the chunk. */
uint64_t grid_find(const struct grid *g, uint64_t element, uint64_t *number);
/* Finds the run of elements that a chunk holds whose elements are consecutive in row-major order:
 * [*first, *first + *n). */
void grid_run(const struct grid *g, uint64_t number, uint64_t *first, uint64_t *n);
/* Compares coordinates in row-major order: < 0, 0 or > 0. */
int grid_compare(uint32_t rank, const uint64_t *a, const uint64_t *b);
/* Returns how many elements of a chunk, in row-major order, there are up to the last one inside the
 * extent. The others are padding. */
uint64_t grid_covered(const struct grid *g, uint64_t number);

#endif
