/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the kernel reads ahead of a program, which is a setting of each mount. If the daemon has
 * no permission to change it, sequential reads are slower. prefetch/kernel.h uses the number to
 * distinguish the access pattern of a program from that of the kernel.
 */
#ifndef FUSE_READ_AHEAD_H
#define FUSE_READ_AHEAD_H

enum { READ_AHEAD_KB = 2048 };

/* Sets the read-ahead of the mount to READ_AHEAD_KB, if that is permitted. */
void read_ahead_tune(const char *mountpoint);

#endif
