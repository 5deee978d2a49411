/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <data/number.h>

static void integers_are_read_back(void **state)
{
	static const uint64_t bits[] = {0, 1, 0x80, 0x1234, 0x89abcdef, UINT64_MAX};
	uint8_t at[8];
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		for (uint32_t size = 1; size <= 8; size++)
			for (int big = 0; big < 2; big++) {
				const uint64_t low =
					size == 8 ? bits[i]
						  : bits[i] & ((UINT64_C(1) << 8 * size) - 1);
				number_put_int(at, size, big, bits[i]);
				assert_int_equal(number_get_int(at, size, big), low);
			}
}

/* Every half has an exact double, and becomes the same half again. */
static void every_half_is_read_back(void **state)
{
	for (uint32_t half = 0; half < 0x10000; half++) {
		uint8_t at[2], again[2];
		number_put_int(at, 2, half & 1, half);
		const double v = number_get_float(at, 2, half & 1);
		number_put_float(again, 2, half & 1, v);
		if (v != v)
			assert_true((half & 0x7c00) == 0x7c00 && (half & 0x3ff));
		else
			assert_memory_equal(at, again, 2);
	}
}

static void floats_are_read_back(void **state)
{
	static const double values[] = {0.0, -0.0, 1.5, -2.25e-310, 1e300, INFINITY, -INFINITY};
	uint8_t at[8];
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		double v = values[i];
		number_put_float(at, 8, true, v);
		double got = number_get_float(at, 8, true);
		assert_memory_equal(&got, &v, sizeof(v));
		v = (double)(float)v;
		number_put_float(at, 4, false, v);
		got = number_get_float(at, 4, false);
		assert_memory_equal(&got, &v, sizeof(v));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_read_back),
		cmocka_unit_test(every_half_is_read_back),
		cmocka_unit_test(floats_are_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
