/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open addressing and linear probing, at most half full. Not thread-safe. */
#include "addrset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <h5/format.h>

enum { FIRST_SLOTS = 64 };

/* The slot with addr, or the free slot for it. */
static uint64_t *probe(const struct addrset *set, uint64_t addr)
{
	/* Fibonacci hashing: nodes are at regular distances, so their low bits are often equal. */
	size_t i = (size_t)((addr * 0x9e3779b97f4a7c15ULL) >> 32) & (set->nslots - 1);
	while (set->slots[i] != addr && set->slots[i] != H5_UNDEF)
		i = (i + 1) & (set->nslots - 1);
	return &set->slots[i];
}

static int grow(struct addrset *set)
{
	struct addrset bigger = {.nslots = set->nslots ? set->nslots * 2 : FIRST_SLOTS};
	bigger.slots = malloc(bigger.nslots * sizeof(bigger.slots[0]));
	if (!bigger.slots)
		return -ENOMEM;
	memset(bigger.slots, 0xff, bigger.nslots * sizeof(bigger.slots[0]));
	for (size_t i = 0; i < set->nslots; i++)
		if (set->slots[i] != H5_UNDEF)
			*probe(&bigger, set->slots[i]) = set->slots[i];
	bigger.n = set->n;
	free(set->slots);
	*set = bigger;
	return 0;
}

int addrset_add(struct addrset *set, uint64_t addr)
{
	if (addr == H5_UNDEF)
		return 0;
	if (set->n >= set->nslots / 2) {
		int rc = grow(set);
		if (rc)
			return rc;
	}
	uint64_t *slot = probe(set, addr);
	if (*slot == addr)
		return 0;
	*slot = addr;
	set->n++;
	return 1;
}

void addrset_release(struct addrset *set)
{
	free(set->slots);
	*set = (struct addrset){0};
}
