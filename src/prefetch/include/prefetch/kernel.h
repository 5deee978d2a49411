/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the kernel reads a file for a program: in requests of its own size, and some way ahead of the
 * program. An access pattern is the program's only as far as it goes beyond that.
 *
 * The FUSE front asks the kernel to read 2 MiB ahead (fuse/read_ahead.h).
 */
#ifndef PREFETCH_KERNEL_H
#define PREFETCH_KERNEL_H

enum {
	KERNEL_REQUEST = 5 << 18, /* bytes: one request of the kernel, and a quarter */
	KERNEL_AHEAD = 6 << 20,	  /* bytes: more than the kernel reads ahead, two windows of it */
};

#endif
