/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of an object header. */
#ifndef H5FILE_OBJECT_HEADER_H
#define H5FILE_OBJECT_HEADER_H

#include <h5/ohdr.h>

#include "h5file_internal.h"

/* The header of the object that is being read. */
struct header {
	struct h5_ohdr h;
	struct arena *scratch; /* for what is not kept; freed with the header */
	uint32_t number;       /* of the object */
	const char *path;
};

/* Finds the body of a message, which another object header or the heap of shared messages holds if
 * it is shared. *committed is the address of that header, or H5_UNDEF if there is none; committed
 * may be NULL. */
int header_body(struct h5file *f, const struct header *h, const struct h5_msg *m,
		struct cursor *body, uint64_t *committed, struct err *err);
/* Finds the body of the first message of a type. Returns 1, 0 if there is none, or a negative
 * errno. */
int header_find(struct h5file *f, const struct header *h, enum h5_msg_type type,
		struct cursor *body, struct err *err);
/* Decodes the datatype message into the arena of the tree. Returns -EIO if there is none. */
int header_type(struct h5file *f, const struct header *h, const struct dtype **type,
		uint64_t *committed, struct err *err);

#endif
