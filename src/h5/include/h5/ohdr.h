/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers (Spec IV.A.1). Encoded as version 2 in one chunk; decoded as version 2 with
 * continuations ("OCHK"). (Version 1 headers follow with the scanner.)
 */
#ifndef H5_OHDR_H
#define H5_OHDR_H

#include <stdbool.h>

#include <h5/format.h>

struct h5_msg {
	uint8_t type;	     /* enum h5_msg_type */
	uint8_t flags;	     /* enum h5_msg_flags */
	uint16_t corder;     /* attribute messages, when the header tracks attribute order */
	uint32_t len;	     /* at most 65,535 */
	const uint8_t *body; /* borrowed; NULL while only counting */
};

struct h5_ohdr {
	bool attr_order_tracked, attr_order_indexed;
	bool has_times;
	uint32_t atime, mtime, ctime, btime; /* seconds since the epoch */
	bool has_phase;			     /* attribute storage phase change */
	uint16_t max_compact, min_dense;
	uint32_t n;
	const struct h5_msg *msgs;
};

/* Size is a function of the flags, n and the lengths alone. (A NIL message among them keeps room
 * for what a writer adds.) */
void h5_ohdr_encode(struct emit *e, const struct h5_ohdr *h);
/* Reads the header at addr with its continuations into the arena; NIL and continuation messages
 * are left out, unknown ones are kept. Checks signatures and checksums; at most 2^20 messages and
 * 64 MiB. */
int h5_ohdr_decode(const struct h5_file *f, uint64_t addr, struct arena *a, struct h5_ohdr *h,
		   struct err *err);

#endif
