/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open addressing and linear probing, at most half full. */
#include <h5/addrs.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <h5/format.h>

enum { FIRST_CAPACITY = 64 };

/* Returns the entry with an address, or the free one for it. The table is not empty. */
static struct h5_addr *probe(const struct h5_addrs *s, uint64_t addr)
{
	/* Fibonacci hashing, because structures are often at regular distances. */
	size_t i = (size_t)((addr * 0x9e3779b97f4a7c15ULL) >> 32) & (s->capacity - 1);
	while (s->entries[i].addr != addr && s->entries[i].addr != H5_UNDEF)
		i = (i + 1) & (s->capacity - 1);
	return &s->entries[i];
}

static int grow(struct h5_addrs *s)
{
	struct h5_addrs bigger = {.n = s->n,
				  .capacity = s->capacity ? 2 * s->capacity : FIRST_CAPACITY};
	bigger.entries = reallocarray(NULL, bigger.capacity, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	/* Free entries have the address H5_UNDEF and the number UINT32_MAX. */
	memset(bigger.entries, 0xff, bigger.capacity * sizeof(*bigger.entries));
	for (size_t i = 0; i < s->capacity; i++)
		if (s->entries[i].addr != H5_UNDEF)
			*probe(&bigger, s->entries[i].addr) = s->entries[i];
	free(s->entries);
	*s = bigger;
	return 0;
}

int h5_addrs_add(struct h5_addrs *s, uint64_t addr, uint32_t number)
{
	if (s->n >= s->capacity / 2 && grow(s))
		return -ENOMEM;
	struct h5_addr *entry = probe(s, addr);
	if (addr == H5_UNDEF || entry->addr == addr)
		return 0;
	*entry = (struct h5_addr){.addr = addr, .number = number};
	s->n++;
	return 1;
}

uint32_t h5_addrs_get(const struct h5_addrs *s, uint64_t addr)
{
	return s->capacity ? probe(s, addr)->number : UINT32_MAX;
}

void h5_addrs_release(struct h5_addrs *s)
{
	free(s->entries);
	*s = (struct h5_addrs){0};
}
