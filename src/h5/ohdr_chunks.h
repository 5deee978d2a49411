/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of an object header while it is read. Both versions of headers use this: each chunk is
 * read once, into the arena, and the number of bytes and messages is limited.
 */
#ifndef H5_OHDR_CHUNKS_H
#define H5_OHDR_CHUNKS_H

#include <h5/addrs.h>
#include <h5/ohdr.h>

struct ohdr_extent {
	uint64_t addr, len;
};

struct ohdr_reader {
	const struct h5_file *f;
	struct arena *a;
	struct h5_ohdr *h;
	struct bytes msgs;   /* of struct h5_msg */
	struct bytes chunks; /* of struct ohdr_extent; all chunks, in the order they are read */
	struct bytes todo;   /* of struct ohdr_extent; continuations in the order of messages */
	struct h5_addrs seen;
	uint64_t total;	  /* bytes of all chunks */
	uint32_t entries; /* messages, including NIL and continuation */
	uint32_t count;	  /* recorded number of the same, in version 1 */
	struct err *err;
};

void ohdr_reader_release(struct ohdr_reader *r);
/* Reads a whole chunk into the arena. A chunk has at least `smallest` bytes. Fails with -EIO if the
 * chunk is too small or too large, or has been read before. */
int ohdr_read_chunk(struct ohdr_reader *r, struct ohdr_extent x, size_t smallest, struct cursor *c);
/* Adds a message, unless it is NIL. Remembers the chunk to which a continuation leads. */
int ohdr_add_message(struct ohdr_reader *r, const struct h5_msg *m, struct cursor *body);
/* Reports a message that does not fit in its chunk. */
int ohdr_message_cut(struct ohdr_reader *r, unsigned int type, uint32_t len);

#endif
