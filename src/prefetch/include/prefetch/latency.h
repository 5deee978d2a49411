/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a load takes: the shortest of the last 32 to 64 loads. It follows a store that becomes
 * slower, and it leaves out the queues of a burst of loads. Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_LATENCY_H
#define PREFETCH_LATENCY_H

#include <stdint.h>

/* Zeroed memory has seen no load. Nanoseconds, 0: none. */
struct latency {
	uint64_t now, before; /* shortest of the current window, and of the one before */
	unsigned int n;	      /* loads in the current window */
};

/* A load has taken so long. */
void latency_record(struct latency *l, uint64_t ns);
/* 0 when none is known. */
uint64_t latency_shortest(const struct latency *l);

#endif
