/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of file addresses, by which a walk recognizes what it has read. Each address may have a
 * number, such as that of the object whose header is there. One thread changes a set; then any
 * thread reads it.
 */
#ifndef H5_ADDRS_H
#define H5_ADDRS_H

#include <stddef.h>
#include <stdint.h>

/* An all-zero struct is an empty set. */
struct h5_addrs {
	struct h5_addr {
		uint64_t addr; /* H5_UNDEF if the entry is free */
		uint32_t number;
	} * entries;
	size_t n, capacity;
};

/* Returns 1 if it has added addr, 0 if addr is H5_UNDEF or in the set, or -ENOMEM. */
int h5_addrs_add(struct h5_addrs *s, uint64_t addr, uint32_t number);
/* Returns the number of an address, or UINT32_MAX if it is not in the set. */
uint32_t h5_addrs_get(const struct h5_addrs *s, uint64_t addr);
void h5_addrs_release(struct h5_addrs *s);

#endif
