/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the elements of a dataset that has an initializer instead of stored elements: element i
 * is start + i * step. If start and step are integers, the result is exact and wraps around as in
 * C. Otherwise it is computed in double precision and then rounded once; to an integer type it is
 * rounded towards zero.
 */
#include <codec/chunk.h>

#include <errno.h>

#include <data/number.h>

struct progression {
	double start, step;
	bool integral; /* both are integers that int64_t can hold */
};

static bool is_int64(double v)
{
	const double limit = 9223372036854775808.0; /* 2^63 */
	return v >= -limit && v < limit && (double)(int64_t)v == v;
}

/* Rounds towards zero. A value out of range becomes the nearest integer in range, NaN becomes 0. */
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

static double real_at(const struct progression *p, uint64_t i)
{
	return p->start + (double)i * p->step;
}

static uint64_t integer_at(const struct progression *p, uint64_t i, bool is_signed)
{
	if (p->integral)
		return (uint64_t)(int64_t)p->start + i * (uint64_t)(int64_t)p->step;
	return integer_of(real_at(p, i), is_signed);
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
	for (uint64_t i = first; i < first + n; i++, out += t->size) {
		if (is_float)
			number_put_float(out, t->size, big_endian, real_at(&p, i));
		else
			number_put_int(out, t->size, big_endian,
				       integer_at(&p, i, t->integer.is_signed));
	}
	return 0;
}
