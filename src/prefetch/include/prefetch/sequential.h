/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises a reader that goes through a file in its order, as cp does: what it has read is one
 * run without a gap from the metadata through all of a dataset well into another one. A program
 * that reads datasets goes from the metadata to where it wants to be. (One that reads the file's
 * first datasets whole, one after the other, is in its order too.)
 *
 * Several threads of the kernel's read ahead arrive out of order, so what lies a few MiB behind or
 * before the run belongs to it. Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_SEQUENTIAL_H
#define PREFETCH_SEQUENTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include <prefetch/kernel.h>

enum {
	SEQUENTIAL_PIECES = 16,		  /* that wait for the gap before them to close */
	SEQUENTIAL_GAP = 8 << 20,	  /* bytes; of what is read out of order */
	SEQUENTIAL_MARGIN = KERNEL_AHEAD, /* bytes into another dataset */
};

/* Where the run must begin, and where it must lead to. */
struct sequential_file {
	uint64_t data;	 /* first byte of a chunk: what is before is metadata */
	uint64_t second; /* end of the first dataset's chunks */
};

struct sequential {
	bool running;
	uint64_t end; /* of the run */
	unsigned int n;
	struct sequential_piece {
		uint64_t start, end;
	} pieces[SEQUENTIAL_PIECES];
};

/* There is nothing to read before `to`: who reads on begins there. */
void sequential_skip(struct sequential *o, uint64_t to);
/* Bytes [start, end) are read. True when this reader goes through the file in its order; what it
 * will want next begins at o->end. */
bool sequential_read(struct sequential *o, const struct sequential_file *f, uint64_t start,
		     uint64_t end);

#endif
