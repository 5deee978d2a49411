/* SPDX-License-Identifier: Apache-2.0 */
/* A set of file addresses: which nodes a walk has read, so that no node is read twice. */
#ifndef H5_ADDRSET_H
#define H5_ADDRSET_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. */
struct addrset {
	uint64_t *slots; /* open addressing; H5_UNDEF: free */
	size_t nslots;	 /* a power of two, or 0 */
	size_t n;
};

/* 1: added, 0: was there, -ENOMEM. H5_UNDEF is never added. */
int addrset_add(struct addrset *set, uint64_t addr);
void addrset_release(struct addrset *set);

#endif
