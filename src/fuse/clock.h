/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of all time limits in this layer. */
#ifndef FUSE_CLOCK_H
#define FUSE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic nanoseconds. */
static inline uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#endif
