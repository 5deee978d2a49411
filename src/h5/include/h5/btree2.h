/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 2 B-trees (Spec III.A.2) of records of a fixed size: links by name (type 5) and creation
 * order (6), shared messages (7), attributes by name (8) and creation order (9), huge objects of
 * fractal heaps (1 to 4), chunks (10, 11). The encoder writes a whole tree from sorted records. The
 * decoder walks it.
 */
#ifndef H5_BTREE2_H
#define H5_BTREE2_H

#include <h5/format.h>

enum h5_bt2_type {
	H5_BT2_HUGE = 1,
	H5_BT2_HUGE_FILTERED = 2,
	H5_BT2_HUGE_DIRECT = 3,
	H5_BT2_HUGE_DIRECT_FILTERED = 4,
	H5_BT2_LINK_NAME = 5,
	H5_BT2_LINK_CORDER = 6,
	H5_BT2_SHARED = 7,
	H5_BT2_ATTR_NAME = 8,
	H5_BT2_ATTR_CORDER = 9,
	H5_BT2_CHUNK = 10,
	H5_BT2_CHUNK_FILTERED = 11,
};

struct h5_bt2 {
	enum h5_bt2_type type;
	uint32_t node_size;	/* libhdf5 uses 512 for all of the above */
	uint16_t record_size;	/* bytes */
	uint64_t n;		/* records */
	const uint8_t *records; /* n * record_size bytes, sorted; may be NULL while counting */
};

/* Returns the bytes of header and nodes, which do not depend on the records. */
uint64_t h5_bt2_size(const struct h5_bt2 *t);
/* Encodes the header, then the nodes. addr is the file address of the emitter's position. */
void h5_bt2_encode(struct emit *e, const struct h5_bt2 *t, uint64_t addr);

/* Calls fn for each record in order. Checks checksums, depth, counts and node sizes, and reads each
 * node once. If fn returns non-zero, the walk ends and returns that value. */
typedef int (*h5_bt2_fn)(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err);
int h5_bt2_walk(const struct h5_file *f, uint64_t addr, enum h5_bt2_type type, h5_bt2_fn fn,
		void *ctx, struct err *err);
/* The same for a range of records. side returns where a record is: < 0 before the range, 0 in it, >
 * 0 after it. It has the ctx of fn, and may be called several times for a record. Only nodes that
 * can hold records of the range are read. If side is NULL, all records are in the range. */
typedef int (*h5_bt2_side_fn)(void *ctx, const uint8_t *record, uint16_t record_size);
int h5_bt2_walk_range(const struct h5_file *f, uint64_t addr, enum h5_bt2_type type,
		      h5_bt2_side_fn side, h5_bt2_fn fn, void *ctx, struct err *err);

/* Bytes of records. Heap ids have 7 bytes for links and 8 for attributes. */
enum {
	H5_BT2_LINK_NAME_SIZE = 11,   /* hash 4, heap id 7 */
	H5_BT2_LINK_CORDER_SIZE = 15, /* creation order 8, heap id 7 */
	H5_BT2_ATTR_NAME_SIZE = 17,   /* heap id 8, message flags 1, creation order 4, hash 4 */
	H5_BT2_ATTR_CORDER_SIZE = 13, /* heap id 8, message flags 1, creation order 4 */
	H5_BT2_HUGE_SIZE = 24,	      /* address 8, length 8, id 8 */
};

#endif
