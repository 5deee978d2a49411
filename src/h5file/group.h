/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a group. */
#ifndef H5FILE_GROUP_H
#define H5FILE_GROUP_H

#include "object_header.h"

/* Fills in the object h->number of the tree as a group. A link that cannot be decoded is left out
 * and reported; if the storage of links is damaged, so are those behind the damage. Returns other
 * errors only. */
int group_read(struct h5file *f, const struct header *h, struct err *err);

/* One link of a group. */
struct group_link {
	struct link link; /* texts are in the arena of the tree; no target */
	uint64_t addr;	  /* of a hard link's target */
};
/* Finds the link with this name. Reads only the structures that can have it. The tree is not
 * changed. Sets *found to false if the group does not have it. Returns -EIO also if the part that
 * may have it is damaged. */
int group_find(struct h5file *f, const struct header *h, const char *name, bool *found,
	       struct group_link *out, struct err *err);

#endif
