/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of a file's objects. An object gets its number when the first link to it is read, and
 * objects are read in the order of their numbers. So the numbers are in breadth-first order.
 */
#ifndef H5FILE_OBJECTS_H
#define H5FILE_OBJECTS_H

#include "h5file_internal.h"

enum {
	/* A longer path is shortened in the middle: the paths of a chain of groups would need
	 * memory proportional to the square of its length. */
	OBJECTS_PATH_MAX = 4096
};

/* Finds the number of the object whose header is at addr. If it has none, adds it, with the path
 * parent/name. Returns -E2BIG if there are more than TREE_MAX_OBJECTS, or -ENOMEM. */
int objects_number(struct h5file *f, uint64_t addr, const char *parent, const char *name,
		   uint32_t *number, struct err *err);
/* Records what the header says of itself. If version is 0, the object is broken. birth is in
 * seconds, and is 0 if there is no birth time. */
void objects_set_header(struct h5file *f, uint32_t number, uint8_t version, uint32_t birth);
/* Makes a path in the arena of the tree. Returns NULL if out of memory. */
const char *objects_path(struct h5file *f, const char *parent, const char *name);

/* Records that an attribute, or the dataset itself if attr is OBJECT_NONE, uses the committed
 * datatype at addr. */
int objects_share(struct h5file *f, uint32_t number, uint32_t attr, uint64_t addr, struct err *err);
/* Adds the committed datatypes without a link, and sets *added to their number. */
int objects_add_unlinked(struct h5file *f, uint32_t *added, struct err *err);
/* Sets all `committed` members. */
void objects_set_committed(struct h5file *f);

/* Charges the memory of the tree and of the values. Returns -ENOMEM if it exceeds the budget or the
 * limit of values. */
int objects_charge(struct h5file *f, struct err *err);

#endif
