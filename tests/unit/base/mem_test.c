/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic and growable bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <string.h>

#include <base/mem.h>

static void arithmetic(void **state)
{
	uint64_t v;
	assert_true(mul_u64(UINT64_C(1) << 32, UINT32_MAX, &v));
	assert_true(v == UINT64_C(0xffffffff00000000));
	assert_false(mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &v));
	assert_true(add_u64(UINT64_MAX, 0, &v));
	assert_false(add_u64(UINT64_MAX, 1, &v));
	assert_true(min_u64(1, UINT64_MAX) == 1);
	assert_true(max_u64(1, UINT64_MAX) == UINT64_MAX);
	assert_true(div_up_u64(0, 8) == 0);
	assert_true(div_up_u64(9, 8) == 2);
	assert_true(div_up_u64(UINT64_MAX, 2) == UINT64_C(1) << 63);
	assert_true(align_u64(0, 8) == 0);
	assert_true(align_u64(9, 8) == 16);
	assert_true(align_u64(16, 8) == 16);
}

static void bytes_grow(void **state)
{
	auto_bytes struct bytes b = {0};
	for (unsigned int i = 0; i < 5000; i++) {
		uint8_t v[3] = {(uint8_t)i, (uint8_t)(i >> 8), 0xaa};
		assert_int_equal(bytes_append(&b, v, sizeof(v)), 0);
		assert_int_equal(bytes_append_zero(&b, 2), 0);
	}
	assert_int_equal(b.len, 25000);
	assert_true(b.cap >= b.len);
	for (unsigned int i = 0; i < 5000; i++) {
		uint8_t v[5] = {(uint8_t)i, (uint8_t)(i >> 8), 0xaa, 0, 0};
		assert_memory_equal(b.data + 5 * i, v, sizeof(v));
	}
}

static void bytes_of_nothing(void **state)
{
	struct bytes b = {0};
	assert_int_equal(bytes_append(&b, NULL, 0), 0);
	assert_int_equal(bytes_append_zero(&b, 0), 0);
	assert_int_equal(b.len, 0);
	bytes_release(&b);
	assert_null(b.data);
	bytes_release(&b);
}

static void bytes_reserved_do_not_move(void **state)
{
	auto_bytes struct bytes b = {0};
	uint8_t *data;
	assert_int_equal(bytes_reserve(&b, 1000), 0);
	assert_int_equal(b.len, 0);
	data = b.data;
	assert_int_equal(bytes_append_zero(&b, 1000), 0);
	assert_ptr_equal(b.data, data);
}

static void bytes_are_trimmed(void **state)
{
	struct bytes b = {0};
	assert_int_equal(bytes_append(&b, "a", 1), 0);
	assert_int_equal(b.cap, 1); /* bytes that do not grow take no more than they need */
	assert_int_equal(bytes_append(&b, "bc", 2), 0);
	assert_true(b.cap > 3);
	bytes_trim(&b);
	assert_int_equal(b.cap, 3);
	assert_memory_equal(b.data, "abc", 3);
	bytes_trim(&b);
	assert_int_equal(b.cap, 3);
	b.len = 0;
	bytes_trim(&b);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
}

static void bytes_overflow(void **state)
{
	auto_bytes struct bytes b = {0};
	assert_int_equal(bytes_append(&b, "x", 1), 0);
	assert_int_equal(bytes_reserve(&b, SIZE_MAX), -ENOMEM);
	assert_int_equal(bytes_append_zero(&b, SIZE_MAX), -ENOMEM);
	assert_int_equal(b.len, 1);
	assert_int_equal(b.data[0], 'x');
}

static void arrays_grow(void **state)
{
	uint32_t *a = NULL;
	for (uint32_t round = 0; round < 2; round++) /* the second time, it has room already */
		for (uint32_t n = 0; n < 1000; n++) {
			a = array_grow(a, n, sizeof(*a));
			assert_non_null(a);
			assert_true(malloc_usable_size(a) >= (n + 1) * sizeof(*a));
			a[n] = n;
			assert_int_equal(a[n / 2], n / 2);
		}
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic),	     cmocka_unit_test(bytes_grow),
		cmocka_unit_test(bytes_of_nothing),  cmocka_unit_test(bytes_reserved_do_not_move),
		cmocka_unit_test(bytes_are_trimmed), cmocka_unit_test(bytes_overflow),
		cmocka_unit_test(arrays_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
