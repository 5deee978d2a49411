/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the kernel reads ahead of a program: a property of the mount. Without the right to change
 * it everything works as it is, only slower for a sequential reader. prefetch/kernel.h counts on
 * the number, when it tells a program's pattern from the kernel's.
 */
#ifndef FUSE_READ_AHEAD_H
#define FUSE_READ_AHEAD_H

enum { READ_AHEAD_KB = 2048 };

/* Makes the kernel read READ_AHEAD_KB ahead. */
void read_ahead_tune(const char *mountpoint);

#endif
