/* SPDX-License-Identifier: Apache-2.0 */
/* Dataspaces (File Format Specification, IV.A.2.b) and chunk grids over them. */
#ifndef DATA_DSPACE_H
#define DATA_DSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>

enum { DSPACE_MAX_RANK = 32 };
#define DSPACE_UNLIMITED UINT64_MAX

enum dspace_class { DSPACE_SCALAR = 0, DSPACE_SIMPLE = 1, DSPACE_NULL = 2 };

struct dspace {
	enum dspace_class cls;
	uint32_t rank; /* 0 unless simple */
	uint64_t dims[DSPACE_MAX_RANK];
	uint64_t max[DSPACE_MAX_RANK]; /* >= dims; DSPACE_UNLIMITED */
	uint64_t nelems;	       /* scalar: 1, null: 0, simple: the product of dims */
};

void dspace_scalar(struct dspace *s);
void dspace_null(struct dspace *s);
/* max NULL: the dimensions are fixed. -EINVAL: rank 0, or max < dims; -E2BIG: rank over 32, or more
 * than 2^63 elements. */
int dspace_simple(struct dspace *s, uint32_t rank, const uint64_t *dims, const uint64_t *max,
		  struct err *err);
/* True if any dimension can grow. */
bool dspace_extendible(const struct dspace *s);

/*
 * A chunk grid: the chunks that cover a dataspace, numbered in row-major order.
 */
struct grid {
	uint32_t rank;
	uint64_t dims[DSPACE_MAX_RANK];	 /* extent of the dataset, in elements */
	uint32_t chunk[DSPACE_MAX_RANK]; /* extent of a chunk, in elements, each > 0 */
	uint64_t count[DSPACE_MAX_RANK]; /* chunks along each dimension; 0 where dims is 0 */
	uint64_t nchunks;		 /* product of count */
	uint64_t chunk_elems;		 /* product of chunk */
};

/* -EINVAL: a chunk dimension is 0; -E2BIG: rank 0 or over 32, a chunk of 2^32 elements or more, or
 * more than 2^62 chunks. */
int grid_init(struct grid *g, uint32_t rank, const uint64_t *dims, const uint64_t *chunk,
	      struct err *err);
/* Whether the chunks in sequence are the elements in row-major order: chunks divide one dimension,
 * have 1 element along the dimensions before it, and cover the dimensions after it. Only the last
 * chunk of the dataset may be partial. */
bool grid_is_linear(const struct grid *g);
/* Cuts a dataset without chunks (compact, contiguous) into chunks of at most `limit` bytes, each of
 * which is one contiguous run of elements: whole rows (or planes, …) where one fits, otherwise
 * parts of one row. elem_size: bytes of an element; a larger element than `limit` is a chunk of its
 * own. Writes `rank` chunk dimensions, each > 0. Every dimension of dims is > 0. */
void grid_cut(uint32_t rank, const uint64_t *dims, uint64_t elem_size, uint64_t limit,
	      uint64_t *chunk);
/* Chunk number <-> chunk coordinates (in chunks, not elements). number < nchunks. */
void grid_coords(const struct grid *g, uint64_t number, uint64_t *coords);
uint64_t grid_number(const struct grid *g, const uint64_t *coords);

#endif
