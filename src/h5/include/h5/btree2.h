/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 2 B-trees (Spec III.A.2) over fixed-size records: links by name (type 5) and creation
 * order (6), attributes by name (8) and creation order (9), huge heap objects (1). Encoded whole
 * from sorted records; decoded by walking.
 */
#ifndef H5_BTREE2_H
#define H5_BTREE2_H

#include <h5/format.h>

enum h5_bt2_type {
	H5_BT2_HUGE = 1,
	H5_BT2_LINK_NAME = 5,
	H5_BT2_LINK_CORDER = 6,
	H5_BT2_ATTR_NAME = 8,
	H5_BT2_ATTR_CORDER = 9,
};

struct h5_bt2 {
	enum h5_bt2_type type;
	uint32_t node_size;	/* libhdf5 uses 512 for all of the above */
	uint16_t record_size;	/* bytes */
	uint64_t n;		/* records */
	const uint8_t *records; /* n * record_size, in the tree's order */
};

/* Bytes of header and nodes together, a function of the sizes and n. */
uint64_t h5_bt2_size(const struct h5_bt2 *t);
/* Lays header and nodes down back to back; addr: file address of the header (the emitter's
 * position now). */
void h5_bt2_encode(struct emit *e, const struct h5_bt2 *t, uint64_t addr);

/* Calls fn for each record in order. Depth, counts and node sizes are checked; every node is read
 * once. A non-zero result of fn stops and is returned. */
typedef int (*h5_bt2_fn)(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err);
int h5_bt2_walk(const struct h5_file *f, uint64_t addr, enum h5_bt2_type type, h5_bt2_fn fn,
		void *ctx, struct err *err);

/* Records (all little-endian), as encoders above lay them down. heap ids: 7 bytes for links, 8 for
 * attributes. */
enum {
	H5_BT2_LINK_NAME_SIZE = 11,   /* hash 4, heap id 7 */
	H5_BT2_LINK_CORDER_SIZE = 15, /* creation order 8, heap id 7 */
	H5_BT2_ATTR_NAME_SIZE = 17,   /* heap id 8, message flags 1, creation order 4, hash 4 */
	H5_BT2_ATTR_CORDER_SIZE = 13, /* heap id 8, message flags 1, creation order 4 */
	H5_BT2_HUGE_SIZE = 24,	      /* address 8, length 8, id 8 */
};

#endif
