/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the machine. Code that has a struct env uses env_now() and env_wall(). */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Monotonic nanoseconds. */
static inline uint64_t clock_ns(void)
{
	return (uint64_t)clock_read(CLOCK_MONOTONIC);
}

/* The same with the time that the machine has slept. */
static inline uint64_t clock_boot_ns(void)
{
	return (uint64_t)clock_read(CLOCK_BOOTTIME);
}

/* Nanoseconds since the epoch. */
static inline int64_t clock_wall_ns(void)
{
	return clock_read(CLOCK_REALTIME);
}

#endif
