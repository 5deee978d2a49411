/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers (Spec IV.A.1). The encoder writes version 2 in one chunk. The decoder reads
 * versions 1 and 2 with continuation chunks.
 */
#ifndef H5_OHDR_H
#define H5_OHDR_H

#include <stdbool.h>

#include <data/object.h>
#include <h5/format.h>

struct h5_msg {
	uint8_t type;	     /* enum h5_msg_type; 0xff if unknown and over 255 (version 1) */
	uint8_t flags;	     /* enum h5_msg_flags */
	uint16_t corder;     /* creation order, if the header tracks that of attributes */
	uint32_t len;	     /* at most 65,535 */
	const uint8_t *body; /* borrowed; may be NULL while the emitter counts */
};

struct h5_ohdr {
	uint8_t version;   /* 1 or 2; the encoder ignores it */
	uint32_t refcount; /* hard links to the object; the encoder ignores it */
	bool attr_order_tracked, attr_order_indexed;
	bool has_times;
	uint32_t atime, mtime, ctime, btime; /* seconds since the epoch */
	bool has_phase;			     /* it has phase change values: */
	uint16_t max_compact, min_dense;
	uint32_t n;
	const struct h5_msg *msgs;
};

/* The size depends only on the flags, n and the lengths of messages. */
void h5_ohdr_encode(struct emit *e, const struct h5_ohdr *h);
/* Reads the header at addr and its continuation chunks into the arena. Leaves out NIL and
 * continuation messages, and keeps messages of unknown types. Checks signatures and checksums. A
 * version 1 header has none, and its messages have no creation order. Fails with -EIO, also for
 * more than 2^20 messages or 64 MiB, and with -EOPNOTSUPP, also for a message of unknown type that
 * a reader must not ignore. */
int h5_ohdr_decode(const struct h5_file *f, uint64_t addr, struct arena *a, struct h5_ohdr *h,
		   struct err *err);

/* Returns the first message of a type, or NULL if there is none. */
const struct h5_msg *h5_ohdr_find(const struct h5_ohdr *h, enum h5_msg_type type);
/* Gets the kind of object that the header describes, by the messages that it has. Returns false if
 * it describes no object, like the extension of the superblock. */
bool h5_ohdr_kind(const struct h5_ohdr *h, enum object_kind *kind);

#endif
