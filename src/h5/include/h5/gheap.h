/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Global heap collections (Spec III.E). A writer fills collections one after the other in a
 * region of the file. A collection is closed, with its exact size, when the next object would
 * take it over its target or it has 65,535 objects. It is never smaller than 4,096 bytes: small
 * ones are left open whatever comes next, and what the last one lacks is covered by a filler
 * object, not by free space (libhdf5 would put other objects' data there).
 */
#ifndef H5_GHEAP_H
#define H5_GHEAP_H

#include <h5/format.h>

enum {
	H5_GHEAP_MIN = 4096,
	H5_GHEAP_MAX_OBJECTS = 65535,
	H5_GHEAP_TARGET_DATA = 64 * 1024,  /* regions of variable-length datasets */
	H5_GHEAP_TARGET_ATTRS = 16 * 1024, /* attribute data */
};

struct h5_gheap_writer {
	struct bytes out;  /* the region so far; the caller's when finished */
	uint64_t base;	   /* file address of its first byte, 8-aligned */
	size_t target;	   /* bytes of a collection before it is closed */
	size_t collection; /* where the open collection starts in out */
	uint32_t next;	   /* index of the next object; 0: no collection is open */
};
void h5_gheap_init(struct h5_gheap_writer *w, uint64_t base, size_t target);
/* Adds an object of n bytes (0 for an empty string) with reference count 1; -> collection's file
 * address and the index of the object in it. -ENOMEM. */
int h5_gheap_add(struct h5_gheap_writer *w, const void *obj, size_t n, uint64_t *addr,
		 uint32_t *index, struct err *err);
/* Closes the open collection. */
int h5_gheap_finish(struct h5_gheap_writer *w, struct err *err);
void h5_gheap_release(struct h5_gheap_writer *w);
/* Never less than what nobjects of nbytes in all can come to, however they are cut and ordered,
 * empty ones among them; 0 for none. Never falls when nobjects or nbytes rises. A pure function
 * of its arguments. UINT64_MAX on overflow.
 */
uint64_t h5_gheap_bound(uint64_t nobjects, uint64_t nbytes, size_t target);

/* Reads object `index` of the collection at addr; appends to out, at most max bytes. */
int h5_gheap_get(const struct h5_file *f, uint64_t addr, uint32_t index, size_t max,
		 struct bytes *out, struct err *err);

#endif
