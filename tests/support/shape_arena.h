/* SPDX-License-Identifier: Apache-2.0 */
/* An arena for dataspaces and grids that a test makes by itself. It lives as long as the test. */
#ifndef TESTS_SHAPE_ARENA_H
#define TESTS_SHAPE_ARENA_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <base/mem.h>

static inline struct arena *shape_arena(void)
{
	static struct arena *a;
	if (!a)
		a = arena_new(64 << 20);
	assert(a);
	return a;
}

/* A copy of `rank` numbers, of which number i is v. */
static inline const uint64_t *shape_with(uint32_t rank, const uint64_t *numbers, uint32_t i,
					 uint64_t v)
{
	uint64_t *copy = arena_array(shape_arena(), rank, sizeof(*copy));
	assert(copy && i < rank);
	memcpy(copy, numbers, rank * sizeof(*copy));
	copy[i] = v;
	return copy;
}

static inline const uint32_t *shape_with_chunk(uint32_t rank, const uint32_t *chunk, uint32_t i,
					       uint32_t v)
{
	uint32_t *copy = arena_array(shape_arena(), rank, sizeof(*copy));
	assert(copy && i < rank);
	memcpy(copy, chunk, rank * sizeof(*copy));
	copy[i] = v;
	return copy;
}

#endif
