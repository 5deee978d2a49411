/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the keys below a prefix, and whether the listing of its directory shows it. A prefix is
 * "unlistable" when listing it fails although listing its directory succeeds: then the failure
 * belongs to this prefix alone, and the listing of the directory proves that it exists. Any thread.
 */
#ifndef NAMES_CHILDREN_H
#define NAMES_CHILDREN_H

#include "names_internal.h"

enum { CHILDREN_LISTED_MAX = 1 << 20 /* entries of a directory; a larger one cannot be listed */ };

/* Makes req the listing that names_children_in() evaluates. */
void names_children_prepare(const char *path, struct store_request *req);
/* Returns an enum names_children, or the error of the listing. */
int names_children_in(const struct names *ns, const struct store_request *req);

struct names_below {
	const char *path; /* borrowed */
	int children;	  /* an enum names_children, or negative */
	char *why;	  /* heap; if children is negative */
};
/* Lists the keys below n paths in parallel. Returns 0 or -ENOMEM; other failures are in `all`. The
 * caller frees each `why` in both cases. */
int names_children_find(struct names *ns, struct names_below *all, size_t n);

/* Returns 0 if this directory can be listed now, or the error of the listing. */
int names_check_listing(struct names *ns, const char *dir, struct err *err);

enum names_listed { LISTED_NOT, LISTED_OBJECT, LISTED_PREFIX };
/* Returns how the listing of its directory shows a path: an enum names_listed, or a negative errno.
 */
int names_is_listed(struct names *ns, const char *path, struct err *err);

#endif
