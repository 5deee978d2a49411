/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the kernel reads ahead of a program. This is a setting of each mount, which the kernel
 * copies to a file when it is opened. So it is set for each file before the open is answered. If
 * two files are opened at the same time, one of them may get the value of the other, which costs a
 * few chunks or a little time. If the daemon has no permission to change it, sequential reads are
 * slower. prefetch/kernel.h chooses the value, and the prefetcher uses the one that is in effect to
 * distinguish the access pattern of a program from that of the kernel.
 */
#ifndef FUSE_READ_AHEAD_H
#define FUSE_READ_AHEAD_H

#include <pthread.h>
#include <stdbool.h>

enum { READ_AHEAD_KB = 2048 /* the most, and that of files that are not domains */ };

struct read_ahead {
	pthread_mutex_t lock; /* guards the following members, and the setting */
	bool is_known;	      /* `path` was looked for */
	char path[64];	      /* of the setting in sysfs; "" if it cannot be changed */
	unsigned int kb;      /* the value in effect, once `path` was looked for */
};

/* Sets the read-ahead of the mount, if that is permitted. Returns the KiB that are in effect. Any
 * thread may call it. */
unsigned int read_ahead_set(struct read_ahead *r, const char *mountpoint, unsigned int kb);

#endif
