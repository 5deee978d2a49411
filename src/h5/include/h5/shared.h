/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared messages (Spec IV.A.2 "shared message", III.H): messages whose body is in another object
 * header (a committed datatype) or in the file's heap of shared messages.
 */
#ifndef H5_SHARED_H
#define H5_SHARED_H

#include <h5/format.h>
#include <h5/ohdr.h>

/* Finds the bodies of shared messages of one file. Opens the master table and each heap when it
 * first needs them, and keeps them open. One thread. */
struct h5_shared;
/* f is copied with f->claims, which only h5_shared_claim() uses. Returns NULL if out of memory. */
struct h5_shared *h5_shared_new(const struct h5_file *f);
void h5_shared_free(struct h5_shared *s); /* s may be NULL */

/* c is at the body of a message of this type with the flag H5_MSG_SHARED, or at a part of an
 * attribute message that is shared, and moves past it. *body becomes the message body, in the
 * arena, and *committed the address of the object header that holds it, or H5_UNDEF if the heap
 * holds it. Fails with -EIO, also if that object has no message of this type, or if its message is
 * shared, too. */
int h5_shared_resolve(struct h5_shared *s, enum h5_msg_type type, struct cursor *c, struct arena *a,
		      struct cursor *body, uint64_t *committed, struct err *err);

/* Gets the body of a message of this type in the heap of shared messages, by its id. Dense
 * attributes need it: if the flag H5_MSG_SHARED is set in a record of their B-tree (types 8 and 9),
 * its id belongs to that heap. */
enum { H5_SHARED_ID = 8 };
int h5_shared_get(struct h5_shared *s, enum h5_msg_type type, const uint8_t *id, struct arena *a,
		  struct cursor *body, struct err *err);

/* Reads the master table, its indexes and its heaps, checks them, and claims their bytes in
 * f->claims. After -EAGAIN, it goes on where it was. To be called once. */
int h5_shared_claim(struct h5_shared *s, struct err *err);

#endif
