/* SPDX-License-Identifier: Apache-2.0 */
/* The first difference of two types in words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <data/describe.h>

static int setup(void **state)
{
	*state = arena_new(1 << 20);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static void assert_diff(const struct dtype *a, const struct dtype *b, const char *text)
{
	auto_str struct str out = {0};
	assert_non_null(a);
	assert_non_null(b);
	assert_false(dtype_equal(a, b));
	describe_type_diff(&out, a, b);
	assert_string_equal(str_text(&out), text);
}

static void numbers(void **state)
{
	struct arena *a = *state;
	const struct dtype *i2 = dtype_integer(a, 2, true, false, NULL);
	const struct dtype *f8 = dtype_ieee(a, 8, false, NULL);
	struct dtype t = *i2;
	assert_diff(i2, f8, "float64 instead of int16");
	assert_diff(i2, dtype_integer(a, 4, true, false, NULL), "int32 instead of int16");
	assert_diff(i2, dtype_integer(a, 2, false, false, NULL), "uint16 instead of int16");
	assert_diff(i2, dtype_integer(a, 2, true, true, NULL),
		    "int16 (big-endian) instead of int16");
	t.integer.precision = 12;
	assert_diff(i2, dtype_checked(a, &t, NULL), "precision 12 instead of 16");
	t.integer.bit_offset = 3;
	t.integer.precision = 13;
	struct dtype u = t;
	u.integer.bit_offset = 2;
	assert_diff(&u, &t, "bit offset 3 instead of 2");
	assert_diff(f8, dtype_ieee(a, 8, true, NULL), "float64 (big-endian) instead of float64");
	t = *f8;
	t.floating.exp_bias = 7;
	assert_diff(f8, &t, "exponent bias 7 instead of 1023");
}

static void texts(void **state)
{
	struct arena *a = *state;
	const struct dtype *s = dtype_string(a, 4, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	const struct dtype *v = dtype_vlen_string(a, DTYPE_PAD_NULLPAD, DTYPE_CSET_UTF8, NULL);
	assert_diff(s, dtype_string(a, 4, DTYPE_PAD_SPACEPAD, DTYPE_CSET_ASCII, NULL),
		    "space-padded instead of NUL-terminated");
	assert_diff(s, dtype_string(a, 4, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL),
		    "UTF-8 instead of ASCII");
	assert_diff(v, dtype_vlen_string(a, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII, NULL),
		    "ASCII instead of UTF-8");
	assert_diff(dtype_opaque(a, 2, "x", NULL), dtype_opaque(a, 2, "y", NULL),
		    "tag \"y\" instead of \"x\"");
	assert_diff(dtype_reference(a, DTYPE_REF_OBJECT, NULL),
		    dtype_reference(a, DTYPE_REF_REGION, NULL),
		    "region reference instead of object reference");
}

static void parts(void **state)
{
	static const uint32_t two[] = {2}, three[] = {3};
	static const char *const ny[] = {"n", "y"}, *const nj[] = {"n", "j"};
	static const uint8_t v01[] = {0, 1}, v02[] = {0, 2};
	struct arena *a = *state;
	const struct dtype *i1 = dtype_integer(a, 1, false, false, NULL);
	const struct dtype *i4 = dtype_integer(a, 4, false, false, NULL);
	const struct dtype_member packed[] = {{"a", 0, i1}, {"b", 1, i4}};
	const struct dtype_member padded[] = {{"a", 0, i1}, {"b", 4, i4}};
	const struct dtype_member renamed[] = {{"a", 0, i1}, {"c", 1, i4}};
	const struct dtype_member retyped[] = {{"a", 0, i1}, {"b", 1, i1}};
	const struct dtype *c = dtype_compound(a, 2, packed, 0, NULL);
	const struct dtype *e = dtype_enum(a, i1, 2, ny, v01, NULL);
	assert_diff(c, dtype_compound(a, 2, padded, 8, NULL),
		    "member \"b\": offset 4 instead of 1 (8 bytes instead of 5)");
	assert_diff(c, dtype_compound(a, 2, renamed, 0, NULL), "member \"c\" instead of \"b\"");
	assert_diff(c, dtype_compound(a, 2, retyped, 0, NULL),
		    "member \"b\": uint8 instead of uint32 (2 bytes instead of 5)");
	assert_diff(c, dtype_compound(a, 1, packed, 0, NULL),
		    "number of members 1 instead of 2 (1 bytes instead of 5)");
	assert_diff(e, dtype_enum(a, i1, 2, nj, v01, NULL), "symbol \"j\" instead of \"y\"");
	assert_diff(e, dtype_enum(a, i1, 2, ny, v02, NULL), "the number of symbol \"y\"");
	assert_diff(dtype_vlen(a, i1, NULL), dtype_vlen(a, i4, NULL), "uint32 instead of uint8");
	assert_diff(dtype_array(a, i1, 1, two, NULL), dtype_array(a, i1, 1, three, NULL),
		    "array[3] of uint8 instead of array[2] of uint8");
	assert_diff(dtype_array(a, i1, 1, two, NULL), dtype_array(a, i4, 1, two, NULL),
		    "uint32 instead of uint8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(texts, setup, teardown),
		cmocka_unit_test_setup_teardown(parts, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
