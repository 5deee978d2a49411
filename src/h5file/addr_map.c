/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open addressing and linear probing, at most half full. See addr_map.h. */
#include "addr_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* Returns the entry with an address, or the free one for it. The table is not empty. */
static struct addr_entry *probe(const struct addr_map *m, uint64_t addr)
{
	/* Fibonacci hashing: headers are often at regular distances. */
	size_t i = (size_t)((addr * 0x9e3779b97f4a7c15ULL) >> 32) & (m->capacity - 1);
	while (m->entries[i].number != UINT32_MAX && m->entries[i].addr != addr)
		i = (i + 1) & (m->capacity - 1);
	return &m->entries[i];
}

uint32_t addr_map_get(const struct addr_map *m, uint64_t addr)
{
	return m->capacity ? probe(m, addr)->number : UINT32_MAX;
}

static int grow(struct addr_map *m)
{
	struct addr_map bigger = {.n = m->n,
				  .capacity = m->capacity ? 2 * m->capacity : FIRST_CAPACITY};
	bigger.entries = reallocarray(NULL, bigger.capacity, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	memset(bigger.entries, 0xff, bigger.capacity * sizeof(*bigger.entries));
	for (size_t i = 0; i < m->capacity; i++)
		if (m->entries[i].number != UINT32_MAX)
			*probe(&bigger, m->entries[i].addr) = m->entries[i];
	free(m->entries);
	*m = bigger;
	return 0;
}

int addr_map_add(struct addr_map *m, uint64_t addr, uint32_t number)
{
	const int rc = m->n >= m->capacity / 2 ? grow(m) : 0;
	if (rc)
		return rc;
	*probe(m, addr) = (struct addr_entry){.addr = addr, .number = number};
	m->n++;
	return 0;
}

void addr_map_release(struct addr_map *m)
{
	free(m->entries);
	*m = (struct addr_map){0};
}
