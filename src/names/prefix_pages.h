/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings of all levels that show several prefixes of a directory at once. If the prefixes have
 * few keys, such as small Zarr stores, a page replaces a listing for each of them. The first page
 * shows how many prefixes fit a page; then the pages of the others are requested in parallel. A
 * prefix with more keys than that is left to names_children_find(). Any thread.
 */
#ifndef NAMES_PREFIX_PAGES_H
#define NAMES_PREFIX_PAGES_H

#include "children.h"

/* Fills in those of n prefixes of a directory that a page shows completely, and sets is_listed. If
 * one is a domain that the listing shows, its keys are kept, unless they would take too much
 * memory. `all` is in the order of the keys. The store must list a prefix only if it has an object.
 * Returns 0 or -ENOMEM; a listing that fails shows no prefix. */
int names_prefix_pages(struct names *ns, const char *dir, struct names_below *all, size_t n);

#endif
