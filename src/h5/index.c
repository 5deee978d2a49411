/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All chunk indexes behind one function: see h5/index.h. Besides the arrays:
 *
 * Version 1 B-tree: see btree1.c. Its chunks have offsets in elements.
 *
 * Version 2 B-tree: records of type 10 (without filters) and 11 (with filters), Spec III.A.2:
 *
 *   +0  address, and with filters stored size and filter mask: see index_found.c
 *       u64 coordinate of the chunk in each dimension, in chunks
 *
 * Single chunk: the layout message holds the address, and with filters the stored size and mask.
 *
 * Implicit: the chunks of the maximum extent are one after the other.
 *
 * Pure functions besides reads, claims and the callback.
 */
#include <h5/index.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <h5/btree1.h>
#include <h5/btree2.h>

#include "chunk_array.h"

enum { COORD_SIZE = 8 };

/* ---- version 1 B-tree ---- */

static int found_in_btree1(void *ctx, const struct h5_bt1_chunk *found, struct err *err)
{
	const struct index_walk *w = ctx;
	struct h5_chunk chunk = {
		.addr = found->addr, .size = found->size, .filter_mask = found->filter_mask};
	uint64_t coords[DSPACE_MAX_RANK];
	for (uint32_t d = 0; d < w->grid->rank; d++) {
		if (found->offset[d] % w->grid->chunk[d])
			return err_set(err, -EIO,
				       "chunk at %" PRIu64 ": offset %" PRIu64
				       " in dimension %u is not a multiple of %u",
				       found->addr, found->offset[d], d, w->grid->chunk[d]);
		coords[d] = found->offset[d] / w->grid->chunk[d];
	}
	return index_found_at(w, coords, &chunk, err);
}

static int walk_btree1(struct index_walk *w, struct err *err)
{
	const struct grid *g = w->grid;
	uint64_t first[DSPACE_MAX_RANK], last[DSPACE_MAX_RANK];
	for (uint32_t d = 0; d < g->rank; d++) {
		first[d] = w->lo[d] * g->chunk[d];
		last[d] = w->hi[d] * g->chunk[d];
	}
	const bool all = w->first == 0 && w->end == g->nchunks;
	const struct h5_bt1_range range = {first, last};
	if (w->known)
		return h5_bt1_walk_known(w->f, w->layout->addr, g->rank, w->known, found_in_btree1,
					 w, err);
	return h5_bt1_walk_range(w->f, w->layout->addr, g->rank, all ? NULL : &range,
				 found_in_btree1, w, err);
}

/* ---- version 2 B-tree ---- */

struct btree2 {
	struct index_walk *walk;
	bool any;
	uint64_t last[DSPACE_MAX_RANK]; /* of the record before */
};

static bool record_fits(const struct index_walk *w, uint16_t size)
{
	return size == index_entry_size(w) + w->grid->rank * COORD_SIZE;
}

static void read_coords(const struct index_walk *w, struct cursor *c, uint64_t *coords)
{
	for (uint32_t d = 0; d < w->grid->rank; d++)
		coords[d] = cur_u64(c);
}

static int compare_record(void *ctx, const uint8_t *record, uint16_t size)
{
	const struct index_walk *w = ((struct btree2 *)ctx)->walk;
	uint64_t coords[DSPACE_MAX_RANK];
	struct cursor c = cursor_of(record, size);
	if (!record_fits(w, size))
		return 0; /* found_in_btree2() refuses it */
	cur_skip(&c, index_entry_size(w));
	read_coords(w, &c, coords);
	if (grid_compare(w->grid->rank, coords, w->lo) < 0)
		return -1;
	return grid_compare(w->grid->rank, coords, w->hi) > 0;
}

static int found_in_btree2(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct btree2 *t = ctx;
	const struct index_walk *w = t->walk;
	struct cursor c = cursor_of(record, size);
	struct h5_chunk chunk = {0};
	uint64_t coords[DSPACE_MAX_RANK];
	if (!record_fits(w, size))
		return err_set(err, -EIO, "v2 B-tree at %" PRIu64 ": records of %u bytes",
			       w->layout->addr, size);
	index_entry(w, &c, &chunk);
	read_coords(w, &c, coords);
	if (t->any && grid_compare(w->grid->rank, t->last, coords) >= 0)
		return err_set(err, -EIO, "v2 B-tree at %" PRIu64 ": the chunks are not in order",
			       w->layout->addr);
	t->any = true;
	memcpy(t->last, coords, w->grid->rank * sizeof(coords[0]));
	return index_found_at(w, coords, &chunk, err);
}

static int walk_btree2(struct index_walk *w, struct err *err)
{
	struct btree2 t = {.walk = w};
	const bool all = w->first == 0 && w->end == w->grid->nchunks;
	return h5_bt2_walk_range(w->f, w->layout->addr,
				 w->filtered ? H5_BT2_CHUNK_FILTERED : H5_BT2_CHUNK,
				 all ? NULL : compare_record, found_in_btree2, &t, err);
}

/* ---- without a structure ---- */

static int walk_single(const struct index_walk *w, struct err *err)
{
	const struct h5_layout *l = w->layout;
	struct h5_chunk chunk = {.addr = l->addr, .size = w->chunk_bytes};
	if (w->grid->nchunks > 1)
		return err_set(err, -EIO, "single chunk at %" PRIu64 ": the dataset has %" PRIu64,
			       l->addr, w->grid->nchunks);
	if (w->filtered) {
		chunk.size = l->single_size;
		chunk.filter_mask = l->single_mask;
	}
	return index_found(w, &chunk, err);
}

static int walk_implicit(const struct index_walk *w, struct err *err)
{
	struct chunk_array a;
	struct array_run run;
	int rc = array_init(&a, w, "implicit chunk index", 0, err);
	if (!rc && w->filtered)
		rc = array_damaged(&a, a.addr, "the chunks are filtered", err);
	for (uint64_t at = 0; !rc && array_next(&a, at, &run); at = run.element + run.n) {
		for (uint64_t i = 0; i < run.n && !rc; i++) {
			struct h5_chunk chunk = {.number = run.number + i * run.step,
						 .size = w->chunk_bytes};
			if (!mul_u64(run.element + i, w->chunk_bytes, &chunk.addr) ||
			    !add_u64(chunk.addr, a.addr, &chunk.addr) || chunk.addr == H5_UNDEF)
				return array_damaged(&a, a.addr, "it ends after 2^64", err);
			rc = index_found(w, &chunk, err);
		}
	}
	return rc;
}

/* ---- all ---- */

static int walk_index(struct index_walk *w, struct err *err)
{
	switch (w->layout->index) {
	case H5_INDEX_BTREE1:
		return walk_btree1(w, err);
	case H5_INDEX_SINGLE:
		return walk_single(w, err);
	case H5_INDEX_IMPLICIT:
		return walk_implicit(w, err);
	case H5_INDEX_FIXED_ARRAY:
		return farray_walk(w, err);
	case H5_INDEX_EXTENSIBLE_ARRAY:
		return earray_walk(w, err);
	case H5_INDEX_BTREE2:
		return walk_btree2(w, err);
	}
	return err_set(err, -EIO, "invalid type %d of a chunk index", w->layout->index);
}

static int start_walk(struct index_walk *w, struct err *err)
{
	const struct h5_layout *layout = w->layout;
	const struct grid *grid = w->grid;
	if (layout->cls != LAYOUT_CHUNKED || layout->raw != RAW_STORED)
		return err_set(err, -EIO, "the dataset has no chunk index");
	if (layout->rank != grid->rank || layout->rank != w->space->rank)
		return err_set(err, -EIO, "chunks of rank %u in a dataspace of rank %u",
			       layout->rank, w->space->rank);
	if (layout->addr == H5_UNDEF || w->first >= w->end)
		return 0;
	w->chunk_bytes = grid->chunk_elems * layout->elem_size;
	grid_coords(grid, w->first, w->lo);
	grid_coords(grid, w->end - 1, w->hi);
	uint64_t stride = 1;
	for (uint32_t d = grid->rank; d-- > 0; stride *= grid->count[d])
		w->stride[d] = stride;
	return walk_index(w, err);
}

int h5_index_walk(const struct h5_file *f, const struct h5_layout *layout,
		  const struct dspace *space, const struct grid *grid, bool filtered,
		  uint64_t first, uint64_t end, h5_index_fn fn, void *ctx, struct err *err)
{
	struct index_walk w = {.f = f,
			       .layout = layout,
			       .space = space,
			       .grid = grid,
			       .filtered = filtered,
			       .first = first,
			       .end = min_u64(end, grid->nchunks),
			       .fn = fn,
			       .ctx = ctx};
	return start_walk(&w, err);
}

int h5_index_walk_known(const struct h5_file *f, const struct h5_layout *layout,
			const struct dspace *space, const struct grid *grid, bool filtered,
			const struct h5_bt1_known *known, h5_index_fn fn, void *ctx,
			struct err *err)
{
	struct index_walk w = {.f = f,
			       .layout = layout,
			       .space = space,
			       .grid = grid,
			       .filtered = filtered,
			       .end = grid->nchunks,
			       .known = known,
			       .fn = fn,
			       .ctx = ctx};
	return start_walk(&w, err);
}
