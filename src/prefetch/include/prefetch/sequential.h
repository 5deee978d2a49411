/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises a program that reads a file in file order, as cp does. Such a program reads one run
 * without a gap from the metadata through all of the first dataset and SEQUENTIAL_MARGIN bytes into
 * another one. A program that reads only some datasets leaves a gap between the metadata and the
 * dataset. (A program that reads the first datasets of the file completely, one after the other,
 * also reads in file order.)
 *
 * Requests of the kernel's read-ahead arrive out of order, so reads up to a few MiB after the end
 * of the run belong to it. Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_SEQUENTIAL_H
#define PREFETCH_SEQUENTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include <prefetch/kernel.h>

enum {
	SEQUENTIAL_PIECES = 16,		  /* reads after the run that may join it later */
	SEQUENTIAL_GAP = 8 << 20,	  /* bytes by which reads may be out of order */
	SEQUENTIAL_MARGIN = KERNEL_AHEAD, /* bytes into another dataset */
	SEQUENTIAL_TRIAL = 32, /* the inverse share of the run's chunks that is prefetched early */
};

/* The run of a program that reads in file order begins before `data` and reaches beyond `second`.
 */
struct sequential_file {
	uint64_t data;	 /* offset of the first chunk; metadata comes before */
	uint64_t second; /* end of the first dataset's chunks */
};

struct sequential {
	bool running;
	uint64_t start, end; /* of the run */
	unsigned int n;
	struct sequential_piece {
		uint64_t start, end;
	} pieces[SEQUENTIAL_PIECES];
};

/* Extends the run to `to`, because the file has no stored bytes between the end of the run and
 * `to`. */
void sequential_skip(struct sequential *o, uint64_t to);
/* Records that the program reads bytes [start, end). Returns true if it reads in file order and
 * continues at o->end. */
bool sequential_read(struct sequential *o, const struct sequential_file *f, uint64_t start,
		     uint64_t end);
/* Records that the program reads bytes [start, end), for a run that may begin anywhere. Returns the
 * bytes of the run, or 0 if the read does not extend it: it repeats a part of the run, or another
 * run begins with it. */
uint64_t sequential_run(struct sequential *o, uint64_t start, uint64_t end);
/* Returns the number of bytes after the first dataset that are worth a prefetch before it is
 * certain that the program reads in file order. It is 0 until its run reaches the last quarter of
 * that dataset. They are few in comparison with what it has read, because it may read no other
 * dataset. */
uint64_t sequential_trial(const struct sequential *o, const struct sequential_file *f);

#endif
