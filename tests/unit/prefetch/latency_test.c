/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest recent load. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <prefetch/latency.h>

enum { WINDOW = 32 };

static void record(struct latency *l, uint64_t ns, int times)
{
	while (times-- > 0)
		latency_record(l, ns);
}

static void the_shortest_load_counts(void **state)
{
	struct latency l = {0};
	assert_int_equal(latency_shortest(&l), 0);
	record(&l, 700, 1);
	record(&l, 500, 1);
	record(&l, 9000, WINDOW - 3);
	assert_int_equal(latency_shortest(&l), 500);
	record(&l, 9000, WINDOW); /* the previous window still contains it */
	assert_int_equal(latency_shortest(&l), 500);
}

static void a_store_that_becomes_slower_is_followed(void **state)
{
	struct latency l = {0};
	record(&l, 500, WINDOW);
	record(&l, 9000, WINDOW - 1);
	assert_int_equal(latency_shortest(&l), 500);
	record(&l, 9000, 1);
	assert_int_equal(latency_shortest(&l), 9000);
}

static void a_load_that_took_no_time_is_a_load(void **state)
{
	struct latency l = {0};
	record(&l, 0, 1);
	assert_int_equal(latency_shortest(&l), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_load_counts),
		cmocka_unit_test(a_store_that_becomes_slower_is_followed),
		cmocka_unit_test(a_load_that_took_no_time_is_a_load),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
