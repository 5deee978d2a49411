/* SPDX-License-Identifier: Apache-2.0 */
/* The set of addresses against a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <h5/addrs.h>

static void finds_what_was_added(void **state)
{
	struct h5_addrs m = {0};
	assert_int_equal(h5_addrs_get(&m, 0), UINT32_MAX);
	for (uint32_t i = 0; i < 5000; i++) {
		const uint64_t addr = (uint64_t)i * i * 512;
		assert_int_equal(h5_addrs_get(&m, addr), UINT32_MAX);
		assert_int_equal(h5_addrs_add(&m, addr, i), 1);
		assert_int_equal(h5_addrs_add(&m, addr, i + 1), 0);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		assert_int_equal(h5_addrs_get(&m, (uint64_t)i * i * 512), i);
		assert_int_equal(h5_addrs_get(&m, (uint64_t)i * i * 512 + 1), UINT32_MAX);
	}
	assert_int_equal(h5_addrs_add(&m, UINT64_MAX, 1), 0);
	assert_int_equal(h5_addrs_get(&m, UINT64_MAX), UINT32_MAX);
	h5_addrs_release(&m);
	assert_int_equal(h5_addrs_get(&m, 512), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_was_added)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
