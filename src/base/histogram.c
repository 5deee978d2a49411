/* SPDX-License-Identifier: Apache-2.0 */
/* See base/histogram.h. */
#include <base/histogram.h>

#include <assert.h>

enum { NS_PER_US = 1000 };

uint64_t histogram_bound_us(unsigned int i)
{
	static const uint32_t bounds[HISTOGRAM_BOUNDS] = {
		100,	200,	500,	1000,	 2000,	  5000,	   10000,    20000,    50000,
		100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000, 50000000,
	};
	assert(i < HISTOGRAM_BOUNDS);
	return bounds[i];
}

void histogram_record(struct histogram *h, uint64_t ns)
{
	unsigned int i = 0;
	while (i < HISTOGRAM_BOUNDS && ns > histogram_bound_us(i) * NS_PER_US)
		i++;
	atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->sum_ns, ns, memory_order_relaxed);
}

void histogram_read(const struct histogram *h, struct histogram_counts *out)
{
	*out = (struct histogram_counts){
		.sum_ns = atomic_load_explicit(&h->sum_ns, memory_order_relaxed)};
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		out->buckets[i] = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
		out->count += out->buckets[i];
	}
}
