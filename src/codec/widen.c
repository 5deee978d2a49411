/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts half precision to single precision. A number of half precision has a sign, 5 bits of
 * exponent with the bias 15, and 10 bits of mantissa. One of single precision has a sign, 8 bits of
 * exponent with the bias 127, and 23 bits of mantissa. Pure.
 */
#include "widen.h"

#include <string.h>

enum {
	MANTISSA_BITS = 23,
	MORE_MANTISSA = 13, /* bits that a mantissa gets */
	MORE_BIAS = 127 - 15,
	HALF_EXPONENT = 0x1f,		 /* largest exponent, of infinity and NaN */
	LOWEST_EXPONENT = 1 + MORE_BIAS, /* of the smallest normal half, as a single */
};

/* Widens a subnormal half, whose value is its mantissa times 2^-24. With the exponent of the
 * smallest normal half, the same mantissa stands for 2^-14 more. The subtraction of 2^-14 is exact,
 * and its result is 0 or a normal single. */
static inline uint32_t widen_subnormal(uint32_t mantissa)
{
	const uint32_t hidden = (uint32_t)LOWEST_EXPONENT << MANTISSA_BITS;
	uint32_t bits = hidden | mantissa;
	float more, one;
	memcpy(&more, &bits, sizeof(more));
	memcpy(&one, &hidden, sizeof(one));
	more -= one;
	memcpy(&bits, &more, sizeof(bits));
	return bits;
}

static inline uint32_t widen(uint16_t half)
{
	const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
	const uint32_t bits = (uint32_t)(half & 0x7fff) << MORE_MANTISSA;
	const uint32_t exponent = bits >> MANTISSA_BITS;
	const uint32_t more = (uint32_t)MORE_BIAS << MANTISSA_BITS;
	if (exponent == 0)
		return sign | widen_subnormal(bits);
	return sign | (bits + (exponent == HALF_EXPONENT ? 2 * more : more));
}

static inline __attribute__((always_inline)) void widen_all(uint8_t *to, const uint8_t *from,
							    size_t n, bool swap)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t half;
		memcpy(&half, from + 2 * i, sizeof(half));
		uint32_t single = widen(swap ? __builtin_bswap16(half) : half);
		single = swap ? __builtin_bswap32(single) : single;
		memcpy(to + 4 * i, &single, sizeof(single));
	}
}

void widen_halves(uint8_t *to, const uint8_t *from, size_t n, bool big_endian)
{
	if (big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
		widen_all(to, from, n, true);
	else
		widen_all(to, from, n, false);
}
