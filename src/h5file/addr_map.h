/* SPDX-License-Identifier: Apache-2.0 */
/* Which object has its header at an address. One thread changes a map; then any thread reads it. */
#ifndef H5FILE_ADDR_MAP_H
#define H5FILE_ADDR_MAP_H

#include <stddef.h>
#include <stdint.h>

struct addr_map {
	struct addr_entry {
		uint64_t addr;
		uint32_t number; /* UINT32_MAX if the entry is free */
	} * entries;
	size_t n, capacity;
};
/* Returns the number of an address, or UINT32_MAX if it is not in the map. */
uint32_t addr_map_get(const struct addr_map *m, uint64_t addr);
/* Adds an address that is not in the map. number is less than UINT32_MAX. Returns -ENOMEM if out of
 * memory. */
int addr_map_add(struct addr_map *m, uint64_t addr, uint32_t number);
void addr_map_release(struct addr_map *m);

#endif
