/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations by how long they are: counters in buckets whose bounds go 1, 2, 5, 10 … from 100 µs to
 * 50 s, which places a request to a disk as well as one to a bucket that is far away.
 *
 * Threads: recording and reading are lock-free, from any thread. Each counter is an atomic of its
 * own: whoever reads may see an observation in its bucket and not yet in the sum.
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

/* What it has counted: buckets[i] observations that took no longer than bound i and longer than
 * the one before; the last bucket holds what exceeds all bounds. */
struct histogram_counts {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t count; /* the sum of all buckets */
	uint64_t sum_ns;
};

/* Upper bound of bucket i < HISTOGRAM_BOUNDS, inclusive, in microseconds. */
uint64_t histogram_bound_us(unsigned int i);
void histogram_record(struct histogram *h, uint64_t ns);
void histogram_read(const struct histogram *h, struct histogram_counts *out);

#endif
