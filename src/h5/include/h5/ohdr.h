/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers (Spec IV.A.1). The encoder writes version 2 in one chunk. The decoder reads
 * version 2 with continuation chunks.
 */
#ifndef H5_OHDR_H
#define H5_OHDR_H

#include <stdbool.h>

#include <h5/format.h>

struct h5_msg {
	uint8_t type;	     /* enum h5_msg_type */
	uint8_t flags;	     /* enum h5_msg_flags */
	uint16_t corder;     /* creation order, if the header tracks that of attributes */
	uint32_t len;	     /* at most 65,535 */
	const uint8_t *body; /* borrowed; may be NULL while the emitter counts */
};

struct h5_ohdr {
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
 * continuation messages, and keeps messages of unknown types. Checks signatures and checksums.
 * -EIO: also for more than 2^20 messages or 64 MiB. */
int h5_ohdr_decode(const struct h5_file *f, uint64_t addr, struct arena *a, struct h5_ohdr *h,
		   struct err *err);

#endif
