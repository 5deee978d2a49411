/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 1 B-trees that index chunks (Spec III.A.1, node type 1). The tree is a pure function of
 * its chunks: any byte of any node can be rendered alone, so an index of ten million chunks takes
 * no memory. K = 32 (64 children a node), nodes full from the left, root first, then level by
 * level down to the leaves, each level back to back.
 */
#ifndef H5_BTREE1_H
#define H5_BTREE1_H

#include <data/dspace.h>
#include <h5/format.h>

enum { H5_BT1_K = 32, H5_BT1_FANOUT = 2 * H5_BT1_K };

struct h5_bt1_chunk {
	uint32_t size; /* stored bytes */
	uint32_t filter_mask;
	uint64_t offset[DSPACE_MAX_RANK]; /* first element, in elements */
	uint64_t addr;
};

struct h5_bt1 {
	uint32_t rank;	    /* without the element-size dimension */
	uint32_t elem_size; /* not stored in keys (its offset is 0) but part of the upper bound key
			     */
	uint64_t n;	    /* chunks in the index, > 0 */
	uint64_t addr;	    /* file address of the root node */
	/* i-th chunk of the index, in row-major order of offsets. */
	void (*chunk)(void *ctx, uint64_t i, struct h5_bt1_chunk *out);
	/* The key right of everything, as libhdf5 leaves it: size and mask 0, the last chunk's
	 * offset plus one chunk in every dimension. addr is not used. */
	void (*end)(void *ctx, struct h5_bt1_chunk *out);
	void *ctx;
};

uint64_t h5_bt1_node_size(uint32_t rank);
/* Bytes of the whole index; UINT64_MAX on overflow. */
uint64_t h5_bt1_size(uint32_t rank, uint64_t n);
/* Bytes [offset, offset + n) of the index, rendering only the nodes touched. The caller keeps
 * offset + n within h5_bt1_size(). */
void h5_bt1_read(const struct h5_bt1 *t, uint64_t offset, void *buf, size_t n);

/* Walks the tree at addr in order. Checks signatures, levels, counts, that every node is visited
 * once (cycles), and the order of keys. */
typedef int (*h5_bt1_fn)(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err);
int h5_bt1_walk(const struct h5_file *f, uint64_t addr, uint32_t rank, h5_bt1_fn fn, void *ctx,
		struct err *err);

#endif
