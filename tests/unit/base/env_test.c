/* SPDX-License-Identifier: Apache-2.0 */
/* The real env: the clock advances, sleep lasts long enough, random bytes differ. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <base/env.h>

static void sleep_takes_its_time(void **state)
{
	struct env env = env_real(NULL, NULL);
	uint64_t before = env.now(&env), after;
	env.sleep(&env, 20 * 1000000);
	after = env.now(&env);
	assert_true(after - before >= 20 * 1000000);
	assert_true(after - before < UINT64_C(30) * 1000000000);
}

static void random_fills_all(void **state)
{
	struct env env = env_real(NULL, NULL);
	uint8_t a[400] = {0}, b[400] = {0};
	env.random(&env, a, sizeof(a) - 8);
	env.random(&env, b, sizeof(b) - 8);
	assert_memory_not_equal(a, b, 16);
	assert_memory_not_equal(a + 376, b + 376, 16); /* up to the end */
	assert_memory_equal(a + 392, "\0\0\0\0\0\0\0\0", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleep_takes_its_time),
		cmocka_unit_test(random_fills_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
