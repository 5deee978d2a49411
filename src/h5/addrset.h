/* SPDX-License-Identifier: Apache-2.0 */
/* A set of file addresses, by which a walk recognizes nodes that it has read. */
#ifndef H5_ADDRSET_H
#define H5_ADDRSET_H

#include <stddef.h>
#include <stdint.h>

/* An all-zero struct is an empty set. */
struct addrset {
	uint64_t *cells; /* open addressing; a free cell is H5_UNDEF */
	size_t ncells;	 /* a power of two, or 0 */
	size_t n;
};

/* Returns 1 if it has added addr, 0 if addr is H5_UNDEF or in the set, or -ENOMEM. */
int addrset_add(struct addrset *set, uint64_t addr);
void addrset_release(struct addrset *set);

#endif
