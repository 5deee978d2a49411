/* SPDX-License-Identifier: Apache-2.0 */
/* The problems of a file: see struct h5file_problem. */
#ifndef H5FILE_PROBLEMS_H
#define H5FILE_PROBLEMS_H

#include <base/mem.h>
#include <h5file/h5file.h>

enum { PROBLEMS_KEPT = 1000 };

struct problems {
	struct bytes kept; /* of struct h5file_problem */
	uint64_t n;	   /* all of them */
	uint64_t by_severity[H5FILE_NOTE + 1];
};
/* Adds a problem. path and the message of why are copied to the arena. If memory is short, the
 * problem is only counted. */
void problems_add(struct problems *p, struct arena *a, enum h5file_severity severity,
		  uint32_t object, const char *path, const struct err *why);
/* Returns the n-th problem, or NULL past the last one that is kept. */
const struct h5file_problem *problems_nth(const struct problems *p, uint64_t n);
void problems_release(struct problems *p);

#endif
