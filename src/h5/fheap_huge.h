/* SPDX-License-Identifier: Apache-2.0 */
/* Where the huge objects of a fractal heap are: from ids or from a v2 B-tree. */
#ifndef H5_FHEAP_HUGE_H
#define H5_FHEAP_HUGE_H

#include <h5/addrs.h>

#include "fheap_format.h"

struct fheap_extent {
	uint64_t addr;
	uint64_t stored; /* bytes in the file */
	uint64_t n;	 /* bytes of the object */
	uint64_t number; /* in ids without address */
	uint32_t mask;	 /* of filters that were not applied */
};

/* If it is all zero, nothing has been read. */
struct fheap_huge_index {
	bool is_read;
	int failed;		 /* code of a lasting failure; the tree is not read again */
	struct bytes all;	 /* of struct fheap_extent, by number */
	struct h5_addrs claimed; /* addresses of objects */
};

/* Finds the object of an id. The cursor is after the first byte of the id. Reads the B-tree (at
 * `tree`) the first time that it is needed, which is if ids have no addresses or if the file has
 * claims. */
int fheap_huge_find(struct fheap_huge_index *h, const struct fheap_table *t, uint64_t tree,
		    struct cursor *id, struct fheap_extent *out, struct err *err);
/* Claims the object, if that was not done before. */
int fheap_huge_claim(struct fheap_huge_index *h, const struct fheap_table *t,
		     const struct fheap_extent *object, struct err *err);
void fheap_huge_release(struct fheap_huge_index *h);

#endif
