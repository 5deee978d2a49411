/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded cursor: values, bounds, stickiness. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <base/cursor.h>

static const uint8_t digits[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

static void integers(void **state)
{
	struct cursor c = cursor_of(digits, sizeof(digits));
	assert_int_equal(cur_u8(&c), 0x01);
	assert_int_equal(cur_u16(&c), 0x0302);
	assert_int_equal(cur_u24(&c), 0x060504);
	assert_int_equal(cur_u32(&c), 0x0a090807);
	assert_true(cur_ok(&c));
	assert_int_equal(cur_left(&c), 0);
	assert_int_equal(cur_pos(&c), 10);

	c = cursor_of(digits, sizeof(digits));
	assert_true(cur_u64(&c) == UINT64_C(0x0807060504030201));
	c = cursor_of(digits, sizeof(digits));
	assert_int_equal(cur_u32be(&c), 0x01020304);
	c = cursor_of(digits, sizeof(digits));
	assert_true(cur_u64be(&c) == UINT64_C(0x0102030405060708));
}

static void integers_of_any_width(void **state)
{
	uint64_t expected = 0;
	for (unsigned int n = 0; n <= 8; n++) {
		struct cursor c = cursor_of(digits, n);
		if (n > 0)
			expected |= (uint64_t)n << (8 * (n - 1));
		assert_true(cur_uint(&c, n) == expected);
		assert_true(cur_ok(&c));
		c = cursor_of(digits, n);
		assert_true(cur_uint(&c, n + 1) == 0);
		assert_false(cur_ok(&c));
	}
	struct cursor c = cursor_of(digits, sizeof(digits));
	assert_true(cur_uint(&c, 9) == 0);
	assert_false(cur_ok(&c));
}

static void bad_is_sticky(void **state)
{
	struct cursor c = cursor_of(digits, 3);
	assert_int_equal(cur_u8(&c), 1);
	assert_int_equal(cur_u32(&c), 0);
	assert_false(cur_ok(&c));
	/* Two bytes are left, but a bad cursor returns nothing. */
	assert_int_equal(cur_pos(&c), 1);
	assert_int_equal(cur_left(&c), 0);
	assert_int_equal(cur_u8(&c), 0);
	assert_null(cur_bytes(&c, 0));
	assert_null(cur_cstr(&c, NULL));
	assert_int_equal(cur_pos(&c), 1);
	c = cur_sub(&c, 1);
	assert_false(cur_ok(&c));
	assert_int_equal(cur_u8(&c), 0);
}

static void bytes_and_skip(void **state)
{
	struct cursor c = cursor_of(digits, sizeof(digits));
	assert_ptr_equal(cur_bytes(&c, 4), digits);
	cur_skip(&c, 2);
	assert_ptr_equal(cur_bytes(&c, 4), digits + 6);
	assert_ptr_equal(cur_bytes(&c, 0), digits + 10);
	assert_true(cur_ok(&c));
	assert_null(cur_bytes(&c, 1));
	assert_false(cur_ok(&c));
	c = cursor_of(digits, sizeof(digits));
	cur_skip(&c, SIZE_MAX);
	assert_false(cur_ok(&c));
	assert_int_equal(cur_pos(&c), 0);
}

static void sub_is_bounded(void **state)
{
	struct cursor c = cursor_of(digits, sizeof(digits));
	struct cursor sub;
	cur_skip(&c, 1);
	sub = cur_sub(&c, 3);
	assert_int_equal(cur_left(&sub), 3);
	assert_int_equal(cur_pos(&sub), 0);
	assert_int_equal(cur_u24(&sub), 0x040302);
	assert_int_equal(cur_u8(&sub), 0);
	assert_false(cur_ok(&sub));
	assert_true(cur_ok(&c)); /* the failure is the sub-cursor's own */
	assert_int_equal(cur_u8(&c), 5);
	sub = cur_sub(&c, 6);
	assert_false(cur_ok(&sub));
	assert_false(cur_ok(&c));
}

static void strings(void **state)
{
	static const char text[] = "ab\0\0tail"; /* without the NUL of the literal */
	struct cursor c = cursor_of(text, sizeof(text) - 1);
	size_t len = 99;
	assert_string_equal(cur_cstr(&c, &len), "ab");
	assert_int_equal(len, 2);
	assert_string_equal(cur_cstr(&c, &len), "");
	assert_int_equal(len, 0);
	assert_int_equal(cur_pos(&c), 4);
	len = 99;
	assert_null(cur_cstr(&c, &len));
	assert_int_equal(len, 0);
	assert_false(cur_ok(&c));
}

static void texts_of_known_length(void **state)
{
	static const char text[] = "ab\0cd\0\0\0";
	struct cursor c = cursor_of(text, sizeof(text));
	assert_string_equal(cur_text(&c, 2), "ab");
	assert_null(cur_text(&c, 3));
	assert_true(cur_is_zero(&c));
	assert_int_equal(cur_left(&c), 0);
	c = cursor_of(text, sizeof(text));
	assert_false(cur_is_zero(&c));
}

static void nothing_at_all(void **state)
{
	struct cursor c = cursor_of(NULL, 0);
	assert_true(cur_ok(&c));
	assert_int_equal(cur_left(&c), 0);
	cur_skip(&c, 0);
	assert_true(cur_ok(&c));
	assert_null(cur_cstr(&c, NULL));
	assert_false(cur_ok(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(integers_of_any_width),
		cmocka_unit_test(bad_is_sticky),
		cmocka_unit_test(bytes_and_skip),
		cmocka_unit_test(sub_is_bounded),
		cmocka_unit_test(strings),
		cmocka_unit_test(texts_of_known_length),
		cmocka_unit_test(nothing_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
