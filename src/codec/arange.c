/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets whose elements are computed: start + i * step. Integers that are given as such are
 * exact (and wrap, as in C); everything else is computed in double precision and rounded once, to
 * integers towards zero.
 */
#include <codec/chunk.h>

#include <errno.h>
#include <string.h>

struct progression {
	double start, step;
	bool integral; /* both are integers of at most 2^63 */
};

static bool is_int64(double v)
{
	const double limit = 9223372036854775808.0; /* 2^63 */
	return v >= -limit && v < limit && (double)(int64_t)v == v;
}

/* Towards zero; what does not fit gives the nearest that does. */
static uint64_t integer_of(double v, bool is_signed)
{
	const double limit = is_signed ? 9223372036854775808.0 : 18446744073709551616.0;
	if (v != v)
		return 0;
	if (v >= limit)
		return is_signed ? INT64_MAX : UINT64_MAX;
	if (is_signed)
		return v < -limit ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)v;
	return v < 0 ? 0 : (uint64_t)v;
}

static uint64_t integer_at(const struct progression *p, uint64_t i, bool is_signed)
{
	if (p->integral)
		return (uint64_t)(int64_t)p->start + i * (uint64_t)(int64_t)p->step;
	return integer_of(p->start + (double)i * p->step, is_signed);
}

/* IEEE binary64 -> binary16, to nearest, ties to even. */
static uint16_t half_of(double v)
{
	uint64_t bits = 0;
	memcpy(&bits, &v, sizeof(bits));
	uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
	int exp = (int)(bits >> 52 & 0x7ff) - 1023;
	uint64_t mant = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	if (v != v)
		return sign | 0x7e00;
	if (exp > 15)
		return sign | 0x7c00;
	/* 11 significant bits, fewer below 2^-14. A carry out of them is right as it is. */
	int drop = exp >= -14 ? 42 : 42 + (-14 - exp);
	if (drop > 54)
		return sign;
	uint64_t half = UINT64_C(1) << (drop - 1);
	uint64_t q = mant >> drop;
	uint64_t rest = mant & ((UINT64_C(1) << drop) - 1);
	if (rest > half || (rest == half && (q & 1)))
		q++;
	return (uint16_t)(sign | (q + (exp >= -14 ? (uint64_t)(exp + 14) << 10 : 0)));
}

static uint64_t float_at(const struct progression *p, uint64_t i, uint32_t size)
{
	double v = p->start + (double)i * p->step;
	uint64_t bits = 0;
	if (size == 2)
		return half_of(v);
	if (size == 4) {
		float f = (float)v;
		uint32_t bits32 = 0;
		memcpy(&bits32, &f, sizeof(f));
		return bits32;
	}
	memcpy(&bits, &v, sizeof(v));
	return bits;
}

static void put_uint(uint8_t *to, uint64_t v, uint32_t size, bool big_endian)
{
	for (uint32_t k = 0; k < size; k++)
		to[big_endian ? size - 1 - k : k] = (uint8_t)(v >> (8 * k));
}

static bool is_whole_integer(const struct dtype *t)
{
	return t->cls == DTYPE_INTEGER && t->size <= 8 && t->integer.bit_offset == 0 &&
	       t->integer.precision == 8 * t->size;
}

static bool is_ieee(const struct dtype *t)
{
	uint8_t exp_size = t->size == 2 ? 5 : t->size == 4 ? 8 : 11;
	return t->cls == DTYPE_FLOAT && (t->size == 2 || t->size == 4 || t->size == 8) &&
	       t->floating.bit_offset == 0 && t->floating.precision == 8 * t->size &&
	       t->floating.exp_size == exp_size &&
	       t->floating.mant_size == 8 * t->size - 1 - exp_size;
}

int codec_arange(const struct dtype *t, double start, double step, uint64_t first, uint64_t n,
		 uint8_t *out, struct err *err)
{
	const struct progression p = {
		.start = start,
		.step = step,
		.integral = is_int64(start) && is_int64(step),
	};
	bool is_float = is_ieee(t);
	if (!is_float && !is_whole_integer(t))
		return err_set(err, -EOPNOTSUPP, "a sequence of numbers in a type of class %d",
			       (int)t->cls);
	bool big_endian = is_float ? t->floating.big_endian : t->integer.big_endian;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v = is_float ? float_at(&p, first + i, t->size)
				      : integer_at(&p, first + i, t->integer.is_signed);
		put_uint(out + i * t->size, v, t->size, big_endian);
	}
	return 0;
}
