/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of everything here that waits. */
#ifndef FUSE_CLOCK_H
#define FUSE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a monotonic clock. */
static inline uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#endif
