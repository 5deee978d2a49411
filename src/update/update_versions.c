/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the chunk objects that updates have put. */
#include "update_internal.h"

#include <errno.h>
#include <stdlib.h>

int chunk_versions_add(struct chunk_versions *all, uint64_t number, const char *version)
{
	if (all->n == all->room) {
		const size_t room = all->room ? 2 * all->room : 16;
		struct chunk_version *v = reallocarray(all->v, room, sizeof(*v));
		if (!v)
			return -ENOMEM;
		all->v = v;
		all->room = room;
	}
	all->v[all->n] =
		(struct chunk_version){.number = number, .order = all->n, .version = version};
	all->n++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct chunk_version *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void chunk_versions_sort(struct chunk_versions *all)
{
	size_t n = 0;
	if (all->n)
		qsort(all->v, all->n, sizeof(*all->v), compare);
	for (size_t i = 0; i < all->n; i++) {
		if (n && all->v[n - 1].number == all->v[i].number)
			n--;
		all->v[n++] = all->v[i];
	}
	all->n = n;
	for (size_t i = 0; i < n; i++)
		all->v[i].order = i;
}

static int compare_number(const void *key, const void *element)
{
	const uint64_t number = *(const uint64_t *)key;
	const struct chunk_version *v = element;
	return number < v->number ? -1 : number > v->number;
}

const char *chunk_versions_find(const struct chunk_versions *all, uint64_t number)
{
	const struct chunk_version *found = NULL;
	if (all->n)
		found = bsearch(&number, all->v, all->n, sizeof(*all->v), compare_number);
	return found ? found->version : NULL;
}
