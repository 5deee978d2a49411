/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latency of loads: the shortest time of the last 32 to 63 loads. It grows when the store
 * becomes slower, and contains no queueing time. Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_LATENCY_H
#define PREFETCH_LATENCY_H

#include <stdint.h>

/* Zeroed memory contains no load. Times are in nanoseconds, 0 if there is none. */
struct latency {
	uint64_t now, before; /* shortest of the current window, and of the one before */
	unsigned int n;	      /* loads in the current window */
};

/* Records the time of a load. */
void latency_record(struct latency *l, uint64_t ns);
/* Returns 0 if no load was recorded. */
uint64_t latency_shortest(const struct latency *l);

#endif
