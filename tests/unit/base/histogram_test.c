/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include <base/histogram.h>

static void bounds_grow(void **state)
{
	assert_int_equal(histogram_bound_us(0), 100);
	assert_int_equal(histogram_bound_us(HISTOGRAM_BOUNDS - 1), 50000000);
	for (unsigned int i = 1; i < HISTOGRAM_BOUNDS; i++)
		assert_true(histogram_bound_us(i) >= 2 * histogram_bound_us(i - 1));
}

static void every_duration_has_its_bucket(void **state)
{
	static const struct {
		uint64_t ns;
		unsigned int bucket;
	} cases[] = {
		{0, 0},
		{100000, 0}, /* bounds are inclusive */
		{100001, 1},
		{1000000, 3},
		{1000001, 4},
		{UINT64_C(50000000000), HISTOGRAM_BOUNDS - 1},
		{UINT64_C(50000000001), HISTOGRAM_BOUNDS},
		{UINT64_C(3600000000000), HISTOGRAM_BOUNDS},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct histogram h = {0};
		struct histogram_counts c;
		histogram_record(&h, cases[i].ns);
		histogram_read(&h, &c);
		assert_int_equal(c.count, 1);
		assert_int_equal(c.sum_ns, cases[i].ns);
		for (unsigned int k = 0; k < HISTOGRAM_BUCKETS; k++)
			assert_int_equal(c.buckets[k], k == cases[i].bucket);
	}
}

enum { THREADS = 4, EACH = 20000 };

static void *record_many(void *arg)
{
	for (uint64_t i = 0; i < EACH; i++)
		histogram_record(arg, i * 1000);
	return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
	struct histogram h = {0};
	struct histogram_counts c;
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_many, &h), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	histogram_read(&h, &c);
	assert_int_equal(c.count, THREADS * EACH);
	assert_int_equal(c.buckets[0], THREADS * 101); /* 0 … 100 µs */
	assert_int_equal(c.sum_ns, THREADS * (uint64_t)EACH * (EACH - 1) / 2 * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_grow),
		cmocka_unit_test(every_duration_has_its_bucket),
		cmocka_unit_test(nothing_is_lost_between_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
