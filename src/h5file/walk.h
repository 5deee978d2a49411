/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over all objects of a file. */
#ifndef H5FILE_WALK_H
#define H5FILE_WALK_H

#include "h5file_internal.h"

/* Reads all objects that the root group leads to, and finishes the tree. Fails with -EIO if the
 * root group cannot be read, or structures overlap so much that the walk would read more than the
 * file's size permits; with -E2BIG if there are too many objects; with -ENOMEM; and with
 * -EAGAIN. */
int walk_file(struct h5file *f, struct err *err);

#endif
