/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts elements of a file to elements of data/elems.h: heap references become items, addresses
 * of object headers become object numbers. This is the reverse of what image/ does.
 */
#ifndef H5FILE_VALUES_H
#define H5FILE_VALUES_H

#include "h5file_internal.h"

/* Converts n elements. *in has n * h5_dtype_file_size() bytes, which the function takes over; it is
 * empty afterwards. References keep the addresses of the file until values_resolve(). *out is empty
 * before, and after an error. Fails with -EIO if a heap reference is damaged or the items have more
 * bytes than the file, with -EOPNOTSUPP if they have more than 2^32 bytes, and with -ENOMEM. */
int values_decode(struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		  struct elems *out, struct err *err);
/* Turns the addresses of references into object numbers. One that leads to no object becomes the
 * null reference. *dangling is the number of these, and *addr is the address of the first one. */
int values_resolve(const struct h5file *f, const struct dtype *t, struct elems *e, uint64_t n,
		   uint64_t *dangling, uint64_t *addr, struct err *err);

/* ---- elements as the file has them, with addresses of 8 bytes ---- */

/* Turns n elements of the file into n * t->size bytes, if addresses have fewer than 8. Replaces the
 * bytes of *in. Returns -ENOMEM if out of memory. */
int values_widen(const struct h5file *f, const struct dtype *t, struct bytes *in, uint64_t n,
		 struct err *err);
struct values_vlen {
	uint32_t count;
	uint64_t addr; /* of the heap collection */
	uint32_t index;
};
/* These functions decode a vlen element and a region reference. They return false if there is no
 * value. */
bool values_vlen(const uint8_t *elem, struct values_vlen *out);
bool values_region(const uint8_t *elem, uint64_t *addr, uint32_t *index);

/* Reads items, with the limit for one call of values_decode(). */
struct values_items {
	struct h5file *f;
	uint64_t left; /* bytes of items that may still be read */
};
struct values_items values_items_of(struct h5file *f);
/* Reads the items of a variable-length element: count * base->size bytes, with addresses of 8
 * bytes. *items is empty before. Returns -EIO if the heap reference is damaged, or -ENOMEM. */
int values_read(struct values_items *r, const struct dtype *base, const struct values_vlen *v,
		struct bytes *items, struct err *err);

#endif
