/* SPDX-License-Identifier: Apache-2.0 */
/* Names of links and attributes, for the comparisons of trees. */
#ifndef DATA_NAMED_H
#define DATA_NAMED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct named {
	const char *name;
	uint32_t index;
};

static inline int named_compare(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	const int r = strcmp(a->name, b->name);
	return r ? r : (a->index > b->index) - (a->index < b->index);
}

/* Sorts two lists by their names, unless both have the same names in the same order. */
static inline void named_sort(struct named *a, uint32_t na, struct named *b, uint32_t nb)
{
	bool same = na == nb;
	for (uint32_t i = 0; same && i < na; i++)
		same = strcmp(a[i].name, b[i].name) == 0;
	if (same)
		return;
	qsort(a, na, sizeof(*a), named_compare);
	qsort(b, nb, sizeof(*b), named_compare);
}

/* NULL counts as an empty text. */
static inline bool texts_equal(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

#endif
