/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a group. */
#ifndef H5FILE_GROUP_H
#define H5FILE_GROUP_H

#include "header.h"

/* Fills in the object h->number of the tree as a group. A link that cannot be decoded is left out
 * and reported; if the storage of links is damaged, so are those behind the damage. Returns other
 * errors only. */
int group_read(struct h5file *f, const struct header *h, struct err *err);

#endif
