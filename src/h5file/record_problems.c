/* SPDX-License-Identifier: Apache-2.0 */
/* Records the problems of a file, during the open and when chunks are decoded, by any thread. */
#include "h5file_internal.h"

void h5file_note(struct h5file *f, enum h5file_severity severity, uint32_t number,
		 const struct err *why)
{
	const char *path = number == OBJECT_NONE ? "" : tree_object(f->tree, number)->o.id;
	pthread_mutex_lock(&f->lock);
	problems_add(&f->problems, f->problem_texts, severity, number, path ? path : "", why);
	pthread_mutex_unlock(&f->lock);
}

void h5file_report(struct h5file *f, uint32_t number, const struct err *why)
{
	h5file_note(f, why->code == -EOPNOTSUPP ? H5FILE_UNSUPPORTED : H5FILE_DAMAGED, number, why);
}

uint64_t h5file_problems_of(const struct h5file *f, enum h5file_severity severity)
{
	return f->problems.by_severity[severity];
}

uint64_t h5file_problems(const struct h5file *f)
{
	return f->problems.n;
}

const struct h5file_problem *h5file_problem(const struct h5file *f, uint64_t n)
{
	return problems_nth(&f->problems, n);
}

const struct h5file_problem *h5file_first_problem(const struct h5file *f,
						  enum h5file_severity severity)
{
	const struct h5file_problem *p;
	uint64_t i = 0;
	while ((p = h5file_problem(f, i)) && p->severity != severity)
		i++;
	return p;
}
