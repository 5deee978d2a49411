/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers of any number of bits from bytes, the most significant bit first, as the filters
 * N-bit and scale-offset pack them. The caller has checked that there are enough bits. After the
 * last byte, the functions return zeros. */
#ifndef CODEC_BITS_H
#define CODEC_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bits {
	const uint8_t *next;
	size_t left;	/* bytes at next */
	uint64_t held;	/* bits that were read and not yet taken, at its high end */
	unsigned int n; /* number of bits in held */
};

static inline void bits_fill(struct bits *b)
{
	if (b->left >= 8) {
		uint64_t word;
		const unsigned int bytes = (64 - b->n) / 8;
		memcpy(&word, b->next, 8);
		if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
			word = __builtin_bswap64(word);
		b->held |= b->n < 64 ? word >> b->n : 0;
		b->n += 8 * bytes;
		b->next += bytes;
		b->left -= bytes;
		/* The next call reads a byte again of which only some bits were added, so they are
		 * cleared. */
		if (b->n < 64)
			b->held &= ~(UINT64_MAX >> b->n);
		return;
	}
	for (; b->n <= 56 && b->left > 0; b->left--, b->n += 8)
		b->held |= (uint64_t)*b->next++ << (56 - b->n);
	if (b->left == 0)
		b->n = 64;
}

/* Returns the next `count` bits, 1 to 56. */
static inline uint64_t bits_take_few(struct bits *b, unsigned int count)
{
	if (b->n < count)
		bits_fill(b);
	const uint64_t v = b->held >> (64 - count);
	b->held <<= count;
	b->n -= count;
	return v;
}

/* Returns the next `count` bits, 1 to 64. */
static inline uint64_t bits_take(struct bits *b, unsigned int count)
{
	if (count <= 56)
		return bits_take_few(b, count);
	const uint64_t high = bits_take_few(b, count - 32);
	return high << 32 | bits_take_few(b, 32);
}

#endif
