/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes between two steps. They are borrowed from the input until a step makes new ones; these
 * are owned. */
#ifndef CODEC_STEP_BYTES_H
#define CODEC_STEP_BYTES_H

#include <stdint.h>

#include <base/mem.h>

struct step_bytes {
	const uint8_t *data;
	size_t n;
	struct bytes own;
	/* If a zlib stream had the first `summed` bytes, adler32 is their checksum. Otherwise
	 * `summed` is 0. */
	size_t summed;
	uint32_t adler32;
};

/* Returns the most bytes between two steps if there are `max` behind the last one. */
static inline uint64_t step_bytes_limit(uint64_t max)
{
	enum { LIMIT_FACTOR = 8, LIMIT_MIN = 64 << 10 };
	uint64_t limit;
	return mul_u64(max, LIMIT_FACTOR, &limit) && add_u64(limit, LIMIT_MIN, &limit) ? limit
										       : UINT64_MAX;
}

/* Moves the output of a step to s, and frees the bytes that s owned. */
static inline void step_bytes_take(struct step_bytes *s, struct bytes *b)
{
	bytes_release(&s->own);
	s->own = *b;
	*b = (struct bytes){0};
	s->data = s->own.data;
	s->n = s->own.len;
	s->summed = 0;
}

/* Ends the steps: moves the bytes to *out, which is empty. Returns false and moves nothing if the
 * bytes are still those of the input. */
static inline bool step_bytes_give(struct step_bytes *s, struct bytes *out)
{
	if (!s->own.data || s->data != s->own.data)
		return false;
	*out = s->own;
	out->len = s->n;
	s->own = (struct bytes){0};
	return true;
}

#endif
