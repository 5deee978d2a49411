/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of an object. */
#ifndef H5FILE_ATTR_H
#define H5FILE_ATTR_H

#include "object_header.h"

/* Adds the attributes to the object h->number of the tree, which is otherwise complete. An
 * attribute that cannot be decoded is left out and reported. Returns other errors only. References
 * in values keep the addresses of the file. */
int attr_read(struct h5file *f, const struct header *h, struct err *err);

#endif
