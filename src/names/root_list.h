/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the root of a bucket. Some schemas keep the objects of all domains in the root,
 * which may be millions of keys. Any thread.
 */
#ifndef NAMES_ROOT_LIST_H
#define NAMES_ROOT_LIST_H

#include "names_internal.h"

/* Lists the root with delimiter: prefixes and objects, without the objects of schemas. If ns->roots
 * is set, the page has these prefixes and no request is sent; whether they exist is left to the
 * caller. *is_wide is set to true if the listing took so many requests that its result is worth
 * keeping. The caller releases the page. Fails with -E2BIG, with -ENOMEM, and with errors of the
 * store. */
int names_root_list(struct names *ns, struct store_page *page, bool *is_wide, struct err *err);

/* Returns false if ns->roots is set and the path is not below one of them. */
bool names_is_below_roots(const struct names *ns, const char *path);

#endif
