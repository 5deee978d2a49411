/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from JSON to bytes; the rules are in number.h. Pure. */
#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <base/emit.h>

struct schema_num schema_num_int(int64_t v)
{
	return (struct schema_num){.bits = (uint64_t)v, .real = (double)v};
}

static uint64_t truncate(double v)
{
	if (v != v)
		return 0;
	if (v >= 0x1p63)
		return v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
	return v <= -0x1p63 ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)v;
}

struct schema_num schema_num_real(double v)
{
	return (struct schema_num){.bits = truncate(v), .real = v};
}

/* ---- text ---- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A decimal integer of any length, wholly; modulo 2^64. */
static bool integer_text(const char *s, size_t n, uint64_t *bits)
{
	bool negative = n > 0 && s[0] == '-';
	size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
	if (i == n)
		return false;
	uint64_t v = 0;
	for (; i < n; i++) {
		if (!is_digit(s[i]))
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*bits = negative ? 0 - v : v;
	return true;
}

/* A spelling of strtod that is also one of Python's float(): no hexadecimal, no "nan(…)". */
static bool is_real_text(const char *s, size_t n)
{
	size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
	size_t rest = n - i;
	if ((rest == 3 && (!strncasecmp(s + i, "nan", 3) || !strncasecmp(s + i, "inf", 3))) ||
	    (rest == 8 && !strncasecmp(s + i, "infinity", 8)))
		return true;
	for (size_t k = i; k < n; k++)
		if (!is_digit(s[k]) && !strchr("+-.eE", s[k]))
			return false;
	return rest > 0;
}

bool schema_num_text(const char *s, size_t n, struct schema_num *out)
{
	/* Longer reals are no numbers of anybody's. strtod: the programs keep the numeric locale
	 * "C"; in another one a fraction is no number, never a wrong one. */
	char text[400];
	while (n > 0 && is_space(s[0])) {
		s++;
		n--;
	}
	while (n > 0 && is_space(s[n - 1]))
		n--;
	uint64_t bits = 0;
	bool integer = integer_text(s, n, &bits);
	if (integer && n >= sizeof(text)) {
		/* Beyond any double. */
		*out = (struct schema_num){bits, s[0] == '-' ? -INFINITY : INFINITY};
		return true;
	}
	if (n >= sizeof(text) || memchr(s, '\0', n) || !is_real_text(s, n))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	char *end;
	double real = strtod(text, &end);
	if (end != text + n)
		return false;
	*out = schema_num_real(real);
	if (integer)
		out->bits = bits;
	return true;
}

/* ---- bytes ---- */

void schema_put_int(uint8_t *at, uint32_t size, bool big_endian, uint64_t bits)
{
	struct emit e = emit_to(at, size);
	if (big_endian)
		bits = __builtin_bswap64(bits) >> (64 - 8 * size);
	emit_uint(&e, bits, size);
}

/* To the nearest integer, ties to even, of 0 <= v < 2^51: the sum has no room for a fraction. */
static double round_even(double v)
{
	volatile double sum = v + 0x1p52;
	return sum - 0x1p52;
}

/* IEEE 754 binary16 of a double, rounded once. */
static uint16_t half_of(double v)
{
	enum { EXP_BIAS = 15, MANT_BITS = 10, INFINITE = 0x7c00, QUIET_NAN = 0x7e00 };
	uint64_t bits;
	memcpy(&bits, &v, sizeof(bits));
	uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
	double abs = sign ? -v : v;
	if (v != v)
		return sign | QUIET_NAN;
	if (abs >= 65520) /* halfway from the greatest finite half to 2^16 */
		return sign | INFINITE;
	if (abs < 0x1p-14) /* subnormal; a carry out of it is the least normal number */
		return (uint16_t)(sign | (uint16_t)round_even(abs * 0x1p24));
	int exp = (int)(bits >> 52 & 0x7ff) - 1023;
	/* The mantissa, the hidden bit included, as an integer of 11 bits; a carry out of it raises
	 * the exponent by itself. */
	uint64_t one_exp = (uint64_t)(1023 + MANT_BITS) << 52;
	uint64_t scaled = (bits & (((uint64_t)1 << 52) - 1)) | one_exp;
	double mant;
	memcpy(&mant, &scaled, sizeof(mant));
	return (uint16_t)(sign | (((unsigned int)(exp + EXP_BIAS - 1) << MANT_BITS) +
				  (unsigned int)round_even(mant)));
}

void schema_put_float(uint8_t *at, uint32_t size, bool big_endian, double v)
{
	uint64_t bits = 0;
	if (size == 2) {
		bits = half_of(v);
	} else if (size == 4) {
		float f = (float)v;
		uint32_t b;
		memcpy(&b, &f, sizeof(b));
		bits = b;
	} else {
		memcpy(&bits, &v, sizeof(bits));
	}
	schema_put_int(at, size, big_endian, bits);
}
