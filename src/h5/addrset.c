/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open addressing and linear probing, at most half full. Not thread-safe. */
#include "addrset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <h5/format.h>

enum { FIRST_CELLS = 64 };

/* Returns the cell with addr, or the free cell for it. */
static uint64_t *probe(const struct addrset *set, uint64_t addr)
{
	/* Fibonacci hashing, because nodes are at regular distances, so their low bits are often
	 * equal. */
	size_t i = (size_t)((addr * 0x9e3779b97f4a7c15ULL) >> 32) & (set->ncells - 1);
	while (set->cells[i] != addr && set->cells[i] != H5_UNDEF)
		i = (i + 1) & (set->ncells - 1);
	return &set->cells[i];
}

static int grow(struct addrset *set)
{
	struct addrset bigger = {.ncells = set->ncells ? set->ncells * 2 : FIRST_CELLS};
	bigger.cells = malloc(bigger.ncells * sizeof(bigger.cells[0]));
	if (!bigger.cells)
		return -ENOMEM;
	memset(bigger.cells, 0xff, bigger.ncells * sizeof(bigger.cells[0]));
	for (size_t i = 0; i < set->ncells; i++)
		if (set->cells[i] != H5_UNDEF)
			*probe(&bigger, set->cells[i]) = set->cells[i];
	bigger.n = set->n;
	free(set->cells);
	*set = bigger;
	return 0;
}

int addrset_add(struct addrset *set, uint64_t addr)
{
	if (addr == H5_UNDEF)
		return 0;
	if (set->n >= set->ncells / 2) {
		int rc = grow(set);
		if (rc)
			return rc;
	}
	uint64_t *cell = probe(set, addr);
	if (*cell == addr)
		return 0;
	*cell = addr;
	set->n++;
	return 1;
}

void addrset_release(struct addrset *set)
{
	free(set->cells);
	*set = (struct addrset){0};
}
