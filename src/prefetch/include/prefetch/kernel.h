/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the kernel reads a file for a program. The kernel chooses the size of its requests, and it
 * reads ahead; fuse/read_ahead.h sets the read-ahead to 2 MiB. So reads within these limits do not
 * show how the program itself reads.
 */
#ifndef PREFETCH_KERNEL_H
#define PREFETCH_KERNEL_H

enum {
	KERNEL_REQUEST = 5 << 18, /* bytes; one request of 1 MiB, and a quarter */
	KERNEL_WINDOW = 3 << 20,  /* bytes; one window of read-ahead, and a request */
	KERNEL_AHEAD = 6 << 20,	  /* bytes; more than two windows of read-ahead */
};

#endif
