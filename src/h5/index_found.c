/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks that an index records, and the entry that arrays and version 2 B-trees have for each
 * (Spec III.A.2 types 10 and 11, VII.C.2, VII.D.6):
 *
 *   +0 u64  address, undefined if the chunk is absent
 *           and, if the chunks are filtered:
 *   +8      stored size, of layout->stored_len bytes
 *      u32  filter mask
 *
 * Pure functions besides the callback.
 */
#include "index_walk.h"

#include <errno.h>
#include <inttypes.h>

enum { MASK_SIZE = 4 };

unsigned int index_entry_size(const struct index_walk *w)
{
	const unsigned int stored = w->layout->stored_len;
	return w->f->addr_size + (w->filtered ? stored + MASK_SIZE : 0);
}

void index_entry(const struct index_walk *w, struct cursor *c, struct h5_chunk *chunk)
{
	chunk->addr = h5_cur_addr(w->f, c);
	chunk->size = w->filtered ? cur_uint(c, w->layout->stored_len) : w->chunk_bytes;
	chunk->filter_mask = w->filtered ? cur_u32(c) : 0;
}

static int damaged(const struct h5_chunk *chunk, const char *what, struct err *err)
{
	return err_set(err, -EIO, "chunk %" PRIu64 " at %" PRIu64 " (%" PRIu64 " bytes): %s",
		       chunk->number, chunk->addr, chunk->size, what);
}

int index_found(const struct index_walk *w, const struct h5_chunk *chunk, struct err *err)
{
	uint64_t end;
	if (chunk->addr == H5_UNDEF)
		return 0;
	if (chunk->size == 0)
		return damaged(chunk, "the chunk has no bytes", err);
	if (!w->filtered && chunk->size != w->chunk_bytes)
		return damaged(chunk, "the size is wrong for a chunk without filters", err);
	if (!add_u64(chunk->addr, chunk->size, &end) || end > h5_file_size(w->f))
		return damaged(chunk, "the chunk is outside of the file", err);
	return w->fn(w->ctx, chunk, err);
}

int index_found_at(const struct index_walk *w, const uint64_t *coords, struct h5_chunk *chunk,
		   struct err *err)
{
	for (uint32_t d = 0; d < w->grid->rank; d++)
		if (coords[d] >= w->grid->count[d])
			return 0;
	chunk->number = grid_number(w->grid, coords);
	if (chunk->number < w->first || chunk->number >= w->end)
		return 0;
	return index_found(w, chunk, err);
}
