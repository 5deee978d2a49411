/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of durations. The upper bounds of its buckets are 1, 2, 5, 10 and so on, from 100 µs
 * to 50 s, which suits requests to a disk as well as to a distant bucket.
 *
 * Threads: any thread may record and read, without locks. Each counter is a separate atomic: a
 * reader may see an observation in its bucket before it is in the sum.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS = 18, HISTOGRAM_BUCKETS = HISTOGRAM_BOUNDS + 1 };

/* Zeroed is empty. */
struct histogram {
	atomic_uint_fast64_t buckets[HISTOGRAM_BUCKETS];
	atomic_uint_fast64_t sum_ns;
};

/* A copy of the counters. buckets[i] counts the durations of at most bound i that exceed bound i -
 * 1; the last bucket counts those that exceed all bounds. */
struct histogram_counts {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t count; /* the sum of all buckets */
	uint64_t sum_ns;
};

/* Returns the upper bound of bucket i < HISTOGRAM_BOUNDS, inclusive, in microseconds. */
uint64_t histogram_bound_us(unsigned int i);
void histogram_record(struct histogram *h, uint64_t ns);
void histogram_read(const struct histogram *h, struct histogram_counts *out);

#endif
