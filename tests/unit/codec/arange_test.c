/* SPDX-License-Identifier: Apache-2.0 */
/* Computed elements, compared with values of numpy. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <codec/chunk.h>

static void integers(void **state)
{
	static const struct {
		uint32_t size;
		bool is_signed, big_endian;
		double start, step;
		uint64_t first;
		uint8_t bytes[16];
	} cases[] = {
		{1, true, false, 5, 3, 0, {5, 8}},
		{1, false, false, 250, 5, 0, {250, 255}},
		{2, true, false, -1, -1, 255, {0x00, 0xff, 0xff, 0xfe}},
		{2, true, true, 5, 3, 100, {0x01, 0x31, 0x01, 0x34}},
		{3, false, true, 65535, 1, 0, {0, 0xff, 0xff, 1, 0, 0}},
		{4, true, false, 0, 0.5, 3, {1, 0, 0, 0, 2, 0, 0, 0}},
		{4, true, false, -1.5, 1, 0, {255, 255, 255, 255, 0, 0, 0, 0}},
		{8,
		 true,
		 false,
		 1,
		 1,
		 UINT64_C(1) << 53,
		 {1, 0, 0, 0, 0, 0, 0x20, 0, 2, 0, 0, 0, 0, 0, 0x20, 0}},
		{8,
		 false,
		 false,
		 9223372036854775808.0,
		 0,
		 0,
		 {0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x80}},
	};
	struct arena *a = arena_new(65536);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t out[16] = {0};
		const struct dtype *t = dtype_integer(a, cases[i].size, cases[i].is_signed,
						      cases[i].big_endian, NULL);
		print_message("case %zu\n", i);
		assert_int_equal(codec_arange(t, cases[i].start, cases[i].step, cases[i].first, 2,
					      out, NULL),
				 0);
		assert_memory_equal(out, cases[i].bytes, 2 * (size_t)cases[i].size);
	}
	arena_free(a);
}

/* half: numpy.float16(v). */
static void halves(void **state)
{
	static const struct {
		double v;
		uint16_t half;
	} cases[] = {
		{0.0, 0x0000},	     {1.0, 0x3c00},	{-2.5, 0xc100},
		{0.1, 0x2e66},	     {65504.0, 0x7bff}, {65519.99, 0x7bff},
		{65520.0, 0x7c00},   {1e300, 0x7c00},	{6.1e-5, 0x03ff},
		{6.2e-5, 0x0410},    {5.97e-8, 0x0001}, {2.98e-8, 0x0000},
		{2.9803e-8, 0x0001}, {1e-40, 0x0000},	{2049.0, 0x6800},
		{2051.0, 0x6802},    {-1e9, 0xfc00},	{0.00006103515625, 0x0400},
	};
	struct arena *a = arena_new(65536);
	const struct dtype *t = dtype_ieee(a, 2, false, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t out[2];
		assert_int_equal(codec_arange(t, cases[i].v, 0, 0, 1, out, NULL), 0);
		if ((out[0] | out[1] << 8) != cases[i].half)
			fail_msg("%g: %04x", cases[i].v, (unsigned int)(out[0] | out[1] << 8));
	}
	arena_free(a);
}

static void floats(void **state)
{
	struct arena *a = arena_new(65536);
	uint8_t out[16];
	const struct dtype *f4 = dtype_ieee(a, 4, true, NULL), *f8 = dtype_ieee(a, 8, false, NULL);
	assert_int_equal(codec_arange(f4, 0.5, 0.25, 2, 2, out, NULL), 0);
	assert_memory_equal(out, "\x3f\x80\0\0\x3f\xa0\0\0", 8);
	assert_int_equal(codec_arange(f8, 5, 3, 1, 2, out, NULL), 0);
	assert_memory_equal(out, "\0\0\0\0\0\0\x20\x40\0\0\0\0\0\0\x26\x40", 16);
	arena_free(a);
}

static void other_types_are_refused(void **state)
{
	struct arena *a = arena_new(65536);
	uint8_t out[16];
	assert_int_equal(codec_arange(dtype_opaque(a, 4, "", NULL), 0, 1, 0, 1, out, NULL),
			 -EOPNOTSUPP);
	assert_int_equal(
		codec_arange(dtype_integer(a, 16, true, false, NULL), 0, 1, 0, 1, out, NULL),
		-EOPNOTSUPP);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(halves),
		cmocka_unit_test(floats),
		cmocka_unit_test(other_types_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
