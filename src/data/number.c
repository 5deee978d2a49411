/* SPDX-License-Identifier: Apache-2.0 */
#include <data/number.h>

#include <string.h>

#include <base/emit.h>

void number_put_int(uint8_t *at, uint32_t size, bool big_endian, uint64_t bits)
{
	struct emit e = emit_to(at, size);
	if (big_endian)
		bits = __builtin_bswap64(bits) >> (64 - 8 * size);
	emit_uint(&e, bits, size);
}

/* Converts IEEE 754 binary64 to binary16. */
static uint16_t half_of(double v)
{
	enum {
		MANT_BITS = 52,
		HALF_MANT_BITS = 10,
		HALF_EXP_MIN = -14, /* of a normal number */
		HALF_EXP_MAX = 15,
		HALF_INFINITY = 0x7c00,
		HALF_NAN = 0x7e00,
	};
	uint64_t bits = 0;
	memcpy(&bits, &v, sizeof(bits));
	const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
	const int exp = (int)(bits >> MANT_BITS & 0x7ff) - 1023;
	const uint64_t mant = (bits & ((UINT64_C(1) << MANT_BITS) - 1)) | UINT64_C(1) << MANT_BITS;
	if (v != v)
		return sign | HALF_NAN;
	if (exp > HALF_EXP_MAX)
		return sign | HALF_INFINITY;
	/* Subnormal halves have fewer than 11 significant bits. */
	int drop = MANT_BITS - HALF_MANT_BITS;
	if (exp < HALF_EXP_MIN)
		drop += HALF_EXP_MIN - exp;
	if (drop > MANT_BITS + 2)
		return sign; /* less than half of the least subnormal number */
	const uint64_t half = UINT64_C(1) << (drop - 1);
	const uint64_t rest = mant & ((UINT64_C(1) << drop) - 1);
	uint64_t rounded = mant >> drop;
	if (rest > half || (rest == half && (rounded & 1)))
		rounded++;
	/* The hidden bit, and a carry out of the mantissa, add to the exponent: the greatest half
	 * becomes infinite, the greatest subnormal one becomes normal. */
	if (exp >= HALF_EXP_MIN)
		rounded += (uint64_t)(exp - HALF_EXP_MIN) << HALF_MANT_BITS;
	return (uint16_t)(sign | rounded);
}

void number_put_float(uint8_t *at, uint32_t size, bool big_endian, double v)
{
	uint64_t bits = 0;
	if (size == 2) {
		bits = half_of(v);
	} else if (size == 4) {
		const float f = (float)v;
		uint32_t b;
		memcpy(&b, &f, sizeof(b));
		bits = b;
	} else {
		memcpy(&bits, &v, sizeof(bits));
	}
	number_put_int(at, size, big_endian, bits);
}

uint64_t number_get_int(const uint8_t *at, uint32_t size, bool big_endian)
{
	uint64_t bits = 0;
	for (uint32_t i = 0; i < size; i++)
		bits |= (uint64_t)at[big_endian ? size - 1 - i : i] << 8 * i;
	return bits;
}

/* Converts IEEE 754 binary16 to binary64, bit by bit, so that a NaN keeps its payload. */
static double of_half(uint64_t half)
{
	const uint64_t sign = (half & 0x8000) << 48;
	uint64_t mant = half & 0x3ff;
	uint64_t exp = half >> 10 & 0x1f;
	double v;
	if (exp == 0 && mant == 0) {
		exp = 0;
	} else if (exp == 0) {
		exp = 1023 - 14;
		while (!(mant & 0x400)) { /* subnormal: at most 10 steps */
			mant <<= 1;
			exp--;
		}
		mant &= 0x3ff;
	} else {
		exp = exp == 0x1f ? 0x7ff : exp + 1023 - 15;
	}
	const uint64_t bits = sign | exp << 52 | mant << 42;
	memcpy(&v, &bits, sizeof(v));
	return v;
}

double number_get_float(const uint8_t *at, uint32_t size, bool big_endian)
{
	const uint64_t bits = number_get_int(at, size, big_endian);
	double v;
	if (size == 2)
		return of_half(bits);
	if (size == 4) {
		const uint32_t low = (uint32_t)bits;
		float f;
		memcpy(&f, &low, sizeof(f));
		return (double)f;
	}
	memcpy(&v, &bits, sizeof(v));
	return v;
}
