/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The siblings of the nodes of a version 1 B-tree, for a walk that visits all nodes from left to
 * right. Each node has the addresses of those beside it in its level. No reader needs them, but
 * libhdf5 follows them when it changes the tree.
 */
#ifndef H5_SIBLINGS_H
#define H5_SIBLINGS_H

#include <h5/file.h>

enum { H5_SIBLING_LEVELS = 256 };

/* A zeroed one has no nodes. */
struct h5_siblings {
	struct {
		uint64_t addr, right; /* of the last node */
		bool any;
	} level[H5_SIBLING_LEVELS];
};

/* Adds the next node of a level. Fails with -EIO if it or the one before it names another one. */
int h5_siblings_add(struct h5_siblings *s, uint8_t level, uint64_t addr, uint64_t left,
		    uint64_t right, struct err *err);
/* Fails with -EIO if the last node of a level names another one. */
int h5_siblings_end(const struct h5_siblings *s, struct err *err);

#endif
