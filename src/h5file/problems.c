/* SPDX-License-Identifier: Apache-2.0 */
/* The problems of a file. See problems.h. */
#include "problems.h"

#include <string.h>

void problems_add(struct problems *p, struct arena *a, enum h5file_severity severity,
		  uint32_t object, const char *path, const struct err *why)
{
	const struct h5file_problem one = {
		.severity = severity,
		.object = object,
		.path = arena_strndup(a, path, strlen(path)),
		.text = arena_strndup(a, why->msg, strlen(why->msg)),
	};
	p->n++;
	p->by_severity[severity]++;
	if (p->kept.len / sizeof(one) < PROBLEMS_KEPT && one.path && one.text)
		(void)bytes_append(&p->kept, &one, sizeof(one));
}

const struct h5file_problem *problems_nth(const struct problems *p, uint64_t n)
{
	const struct h5file_problem *all = (const void *)p->kept.data;
	return n < p->kept.len / sizeof(*all) ? &all[n] : NULL;
}

void problems_release(struct problems *p)
{
	bytes_release(&p->kept);
	*p = (struct problems){0};
}
