/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Global heap collections (Spec III.E). A writer fills one collection after the other in a region
 * of the file. It closes a collection, with its exact size, if the next object would exceed the
 * target size, or if the collection has 65,535 objects. But a collection has at least 4,096 bytes:
 * the writer does not close a smaller one, and adds a filler object to the last one. (libhdf5 would
 * use free space for other data.)
 */
#ifndef H5_GHEAP_H
#define H5_GHEAP_H

#include <h5/format.h>

enum {
	H5_GHEAP_MIN = 4096,
	H5_GHEAP_MAX_OBJECTS = 65535,
	H5_GHEAP_TARGET_DATA = 64 * 1024,  /* for chunks of variable-length datasets */
	H5_GHEAP_TARGET_ATTRS = 16 * 1024, /* for attributes */
};

struct h5_gheap_writer {
	struct bytes out;  /* the region */
	uint64_t base;	   /* file address of its first byte, 8-aligned */
	size_t target;	   /* bytes of a collection */
	size_t collection; /* offset of the open collection in out */
	uint32_t next;	   /* index of the next object; 0 if no collection is open */
};
void h5_gheap_init(struct h5_gheap_writer *w, uint64_t base, size_t target);
/* Adds an object of n bytes (0 for an empty string) with reference count 1. Sets *addr to the file
 * address of its collection and *index to its index in it. Fails with -ENOMEM. */
int h5_gheap_add(struct h5_gheap_writer *w, const void *obj, size_t n, uint64_t *addr,
		 uint32_t *index, struct err *err);
/* Closes the open collection. The caller may then take ownership of w->out. */
int h5_gheap_finish(struct h5_gheap_writer *w, struct err *err);
void h5_gheap_release(struct h5_gheap_writer *w);
/* Returns the bytes of a collection that a writer has made. */
uint64_t h5_gheap_encoded_size(const uint8_t *collection);
/* Returns an upper limit of the bytes of a region with nobjects objects, some of which may be
 * empty, of nbytes in total, whatever their sizes and order are. It is 0 for no objects, increases
 * monotonically with nobjects and nbytes, and is UINT64_MAX on overflow. */
uint64_t h5_gheap_bound(uint64_t nobjects, uint64_t nbytes, size_t target);

/* Gets the bytes of the collection at addr. Reads only its header. Fails with -EIO if there is
 * none, or if it passes the end of the file. */
int h5_gheap_size(const struct h5_file *f, uint64_t addr, uint64_t *size, struct err *err);

#endif
