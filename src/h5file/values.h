/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of a file to elements of data/elems.h: heap references become items, addresses of object
 * headers become object numbers. This is the reverse of what image/ does.
 */
#ifndef H5FILE_VALUES_H
#define H5FILE_VALUES_H

#include "internal.h"

/* Converts n elements. *in: n * h5_dtype_file_size() bytes; taken over and emptied. References keep
 * the addresses of the file until values_resolve(). *out is empty before, and after an error.
 * -EIO: a heap reference is damaged, or the items have more bytes than the file. */
int values_decode(struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		  struct elems *out, struct err *err);
/* Turns the addresses of references into object numbers. One that leads to no object becomes the
 * null reference. *dangling: how many, if any; the address of the first is *addr. */
int values_resolve(const struct h5file *f, const struct dtype *t, struct elems *e, uint64_t n,
		   uint64_t *dangling, uint64_t *addr, struct err *err);

#endif
