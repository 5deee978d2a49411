/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flat listing: the keys of all levels below a directory. It shows the versions of all domain
 * documents in it. It is made only if the directory probably has few keys; if it turns out to have
 * many, that is noted, and the directory is not listed in this way again. A record in the cache on
 * disk says to later mounts that the directory has few keys. Any thread.
 */
#ifndef NAMES_FLAT_LIST_H
#define NAMES_FLAT_LIST_H

#include "names_internal.h"

/* Records what an ordinary listing has shown: the number of entries, and whether all directories
 * are domains, so that there are probably few keys below them. */
void names_flat_note(struct names *ns, const char *dir, size_t entries, bool is_flat);
/* Returns how many keys a flat listing of the directory may find at most, or 0 if it should not be
 * made. */
uint32_t names_flat_limit(struct names *ns, const char *dir);
/* Makes the listing. Fails if there are more keys, or with the error of the request. */
int names_flat_list(struct names *ns, const char *dir, struct store_page *out);
/* Groups the keys of a flat listing, so that *out is the listing of one level. Returns -ENOMEM if
 * out of memory. */
int names_flat_group(const struct store_page *flat, const char *dir, struct store_page *out);

#endif
