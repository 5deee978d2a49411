/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 1 B-trees that index chunks (Spec III.A.1, node type 1).
 *
 * Encoding: the tree is a pure function of its chunks. Any byte of any node can be rendered alone,
 * so an index of ten million chunks takes no memory. K is 32, so a node has up to 64 children.
 * Nodes are filled from the left. The root comes first, then each level down to the leaves.
 */
#ifndef H5_BTREE1_H
#define H5_BTREE1_H

#include <stdbool.h>

#include <data/dspace.h>
#include <h5/format.h>

enum { H5_BT1_K = 32, H5_BT1_FANOUT = 2 * H5_BT1_K };

struct h5_bt1_chunk {
	uint32_t size; /* stored bytes */
	uint32_t filter_mask;
	uint64_t offset[DSPACE_MAX_RANK]; /* of the first element, in elements */
	uint64_t addr;
};

struct h5_bt1 {
	uint32_t rank;	    /* without the element-size dimension */
	uint32_t elem_size; /* bytes; part of the last key */
	uint64_t n;	    /* chunks in the index */
	uint64_t addr;	    /* file address of the root node */
	/* Gets the i-th chunk in row-major order of offsets. */
	void (*chunk)(void *ctx, uint64_t i, struct h5_bt1_chunk *out);
	/* Gets the key after the last chunk, as libhdf5 writes it: size and mask are 0, and the
	 * offset is that of the last chunk plus one chunk in every dimension. addr is not used. It
	 * is not called if n is 0. */
	void (*end)(void *ctx, struct h5_bt1_chunk *out);
	void *ctx;
};

uint64_t h5_bt1_node_size(uint32_t rank);
/* Returns the bytes of the whole index, which has at least one node, or UINT64_MAX on overflow. */
uint64_t h5_bt1_size(uint32_t rank, uint64_t n);
/* Renders bytes [offset, offset + n) of the index. offset + n is at most h5_bt1_size(). Takes time
 * for the entries in the range only. */
void h5_bt1_read(const struct h5_bt1 *t, uint64_t offset, void *buf, size_t n);

typedef int (*h5_bt1_fn)(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err);
struct h5_bt1_range {
	const uint64_t *first, *last; /* offsets in elements, rank of them */
};
/* Calls fn for each chunk of the tree at addr whose offsets are in the range, both ends included,
 * in row-major order. Reads only nodes that can hold such chunks. If range is NULL, it calls fn for
 * all chunks. Checks signatures, levels, counts and the order of chunks; so it visits each node at
 * most once. If fn returns non-zero, the walk ends and returns that value. */
int h5_bt1_walk_range(const struct h5_file *f, uint64_t addr, uint32_t rank,
		      const struct h5_bt1_range *range, h5_bt1_fn fn, void *ctx, struct err *err);

/* A tree that h5_bt1_read() has rendered into the file, in which nodes may have changed since. */
struct h5_bt1_known {
	uint64_t addr, n; /* as in struct h5_bt1 */
	/* Returns 1 if a byte of [start, end) may be another one than when it was rendered, 0 if
	 * not, or a negative errno, which ends the walk. */
	int (*is_changed)(void *ctx, uint64_t start, uint64_t end, struct err *err);
	/* Gets the offset of the i-th chunk, in elements. */
	void (*offset)(void *ctx, uint64_t i, uint64_t *offset);
	/* Called if the tree has chunks [first, end) as they were rendered. */
	int (*run)(void *ctx, uint64_t first, uint64_t end, struct err *err);
	void *ctx;
};
/* As h5_bt1_walk_range() for all chunks, but a node of the rendered tree is not read if no node of
 * its sub-tree was changed. Instead, run() is called for its chunks, and fn only for chunks of
 * other nodes. So the number of nodes that are read is in proportion to the nodes that have
 * changed. All chunks are in order, and those of such a node are within the keys of its parents;
 * otherwise -EIO. If the file has addresses or nodes of another size than a rendered file, all
 * nodes are read. */
int h5_bt1_walk_known(const struct h5_file *f, uint64_t addr, uint32_t rank,
		      const struct h5_bt1_known *known, h5_bt1_fn fn, void *ctx, struct err *err);

#endif
