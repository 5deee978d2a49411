/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunk indexes of a dataset behind one iterator: version 1 B-tree, single chunk, implicit,
 * fixed array, extensible array, version 2 B-tree (records 10 and 11). Spec III.A.1, III.A.2, VII,
 * IV.A.2.i.
 */
#ifndef H5_INDEX_H
#define H5_INDEX_H

#include <stdbool.h>

#include <data/dspace.h>
#include <h5/format.h>
#include <h5/message.h>

/* One chunk as its index records it. */
struct h5_chunk {
	uint64_t number; /* in the grid, in row-major order; see grid_number() */
	uint64_t addr;	 /* never H5_UNDEF */
	uint64_t size;	 /* stored bytes, > 0 */
	uint32_t filter_mask;
};
typedef int (*h5_index_fn)(void *ctx, const struct h5_chunk *chunk, struct err *err);

/* Calls fn for each stored chunk whose number is in [first, end), in the order of the index, which
 * need not be that of the numbers. Reads only the parts of the index that can hold such chunks, and
 * each part once. Chunks outside of the grid (of the extent) are left out. grid is that of the
 * dataset; its chunk is layout->chunk. space has the maximum dimensions, from which arrays are
 * numbered. filtered is true if the dataset has a pipeline. If fn returns non-zero, the walk ends
 * and returns that value. Fails with -EIO if the index is damaged, or if a chunk is outside of the
 * file; and with -EOPNOTSUPP, also for an array of more than 2^64 elements. If an index lists a
 * chunk twice, the walk notices this where the order of the index shows it. Otherwise the caller's
 * claims show it: the walk claims the index that it reads, but not the chunks.
 *
 * Takes memory for one path of nodes, or one block and page, whatever the number of chunks is; in a
 * version 2 B-tree, also 8 to 32 bytes for each node. */
int h5_index_walk(const struct h5_file *f, const struct h5_layout *layout,
		  const struct dspace *space, const struct grid *grid, bool filtered,
		  uint64_t first, uint64_t end, h5_index_fn fn, void *ctx, struct err *err);

/* As h5_index_walk() for all chunks. Parts of a version 1 B-tree that are as they were rendered are
 * not read: see h5_bt1_walk_known(). Of their chunks, those outside of the grid are not left out.
 */
struct h5_bt1_known;
int h5_index_walk_known(const struct h5_file *f, const struct h5_layout *layout,
			const struct dspace *space, const struct grid *grid, bool filtered,
			const struct h5_bt1_known *known, h5_index_fn fn, void *ctx,
			struct err *err);

#endif
