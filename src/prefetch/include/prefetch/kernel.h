/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the kernel reads a file for a program. The kernel chooses the size of its requests, and it
 * reads ahead. The daemon tells it how far, for each file (fuse/read_ahead.h). So reads within
 * these limits do not show how the program itself reads.
 *
 * The kernel reads at most KERNEL_AHEAD_CHUNKS chunks ahead. With small chunks, more would be a
 * request to the store for each of many chunks that a program which reads a few does not need.
 * This does not hold for chunks in files, because their requests are joined.
 */
#ifndef PREFETCH_KERNEL_H
#define PREFETCH_KERNEL_H

#include <stdint.h>

enum {
	KERNEL_READ_AHEAD = 2 << 20, /* bytes; the most that the kernel is told to read ahead */
	KERNEL_READ_AHEAD_MIN = 64 << 10, /* bytes; a smaller one would make reads in order slow */
	KERNEL_AHEAD_CHUNKS = 4,
	KERNEL_REQUEST = 5 << 18, /* bytes; one request of 1 MiB, and a quarter */
	KERNEL_AHEAD = 6 << 20,	  /* bytes; more than two windows of read-ahead */
};

/* Returns how many bytes the kernel should read ahead in a file whose largest chunks take so many
 * bytes. */
static inline uint64_t kernel_read_ahead(uint64_t chunk)
{
	uint64_t n = KERNEL_READ_AHEAD_MIN;
	while (n < KERNEL_READ_AHEAD && n / KERNEL_AHEAD_CHUNKS < chunk)
		n *= 2;
	return n;
}

/* Returns the bytes of one window of read-ahead, and of a request. */
static inline uint64_t kernel_window(uint64_t read_ahead)
{
	return read_ahead + read_ahead / 2;
}

#endif
