/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of coordinate differences, one dimension after the other, fastest first. */
#include "grid_vector.h"

#include <assert.h>

uint64_t chunk_grid_size(const struct chunk_grid *g)
{
	uint64_t n = 1;
	for (unsigned int d = 0; d < g->rank; d++)
		n *= g->counts[d];
	return n;
}

/* Removes the fastest coordinate from a number and returns it. */
static uint64_t take(uint64_t *number, uint64_t count)
{
	uint64_t at = *number % count;
	*number /= count;
	return at;
}

/* Adds times * (to - from) to at. Returns false on overflow. */
static bool add(int64_t *at, uint64_t from, uint64_t to, uint64_t times)
{
	int64_t by = (int64_t)to - (int64_t)from;
	if (by == 0)
		return true;
	return times <= INT64_MAX && !__builtin_mul_overflow(by, (int64_t)times, &by) &&
	       !__builtin_add_overflow(*at, by, at);
}

bool grid_vector_sum(const struct chunk_grid *g, uint64_t origin, const struct grid_vector *steps,
		     unsigned int n, uint64_t *number)
{
	uint64_t from[GRID_VECTORS], to[GRID_VECTORS];
	uint64_t sum = 0, pitch = 1;
	assert(n <= GRID_VECTORS);
	for (unsigned int i = 0; i < n; i++) {
		from[i] = steps[i].from;
		to[i] = steps[i].to;
	}
	for (unsigned int d = g->rank; d-- > 0;) {
		const uint64_t count = g->counts[d];
		if (count == 0)
			return false;
		int64_t at = (int64_t)take(&origin, count);
		for (unsigned int i = 0; i < n; i++)
			if (!add(&at, take(&from[i], count), take(&to[i], count), steps[i].times))
				return false;
		if (at < 0 || (uint64_t)at >= count)
			return false;
		sum += (uint64_t)at * pitch;
		pitch *= count;
	}
	*number = sum;
	return true;
}

double grid_vector_simpler(const struct chunk_grid *g, uint64_t a, uint64_t b)
{
	double vectors = 1, chunks = 1;
	unsigned int extended = 0, moved = 0;
	for (unsigned int d = g->rank; d-- > 0;) {
		const uint64_t count = g->counts[d];
		if (count < 2)
			continue;
		const uint64_t from = take(&a, count), to = take(&b, count);
		const uint64_t by = from < to ? to - from : from - to;
		chunks *= (double)count;
		extended++;
		if (by == 0)
			continue;
		vectors *= 2.0 * (double)by;
		moved++;
	}
	/* The same number of dimensions can be chosen in several ways. */
	for (unsigned int i = 0; i < moved; i++)
		vectors = vectors * (extended - i) / (i + 1);
	return vectors < chunks ? vectors : chunks;
}
