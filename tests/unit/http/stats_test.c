/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include <http/stats.h>

static struct http_stats_counts read_of(const struct http_stats *m)
{
	static struct http_stats_counts counts;
	http_stats_read(m, &counts);
	return counts;
}

static void attempts_are_told_apart(void **state)
{
	static const struct {
		enum http_method method;
		long status, counter;
	} cases[] = {
		{HTTP_GET, 200, 200},  {HTTP_GET, 206, 206},  {HTTP_LIST, 200, 200},
		{HTTP_HEAD, 404, 404}, {HTTP_PUT, 412, 412},  {HTTP_DELETE, 204, 204},
		{HTTP_GET, 0, 0},      {HTTP_GET, -1, 0},     {HTTP_GET, 599, 599},
		{HTTP_GET, 600, 0},    {HTTP_GET, 100000, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_stats *m = http_stats_new();
		http_stats_request(m, cases[i].method, cases[i].status, 3000000, 10, 20);
		const struct http_stats_counts c = read_of(m);
		for (int method = 0; method < HTTP_METHODS; method++)
			for (int status = 0; status < HTTP_STATUSES; status++)
				assert_int_equal(c.requests[method][status],
						 method == (int)cases[i].method &&
							 status == cases[i].counter);
		assert_int_equal(c.seconds[cases[i].method].count, 1);
		assert_int_equal(c.seconds[cases[i].method].sum_ns, 3000000);
		assert_int_equal(c.bytes_in, 10);
		assert_int_equal(c.bytes_out, 20);
		http_stats_free(m);
	}
}

static void connections_come_and_go(void **state)
{
	struct http_stats *m = http_stats_new();
	for (int i = 0; i < 5; i++)
		http_stats_connected(m);
	http_stats_disconnected(m);
	http_stats_disconnected(m);
	const struct http_stats_counts c = read_of(m);
	assert_int_equal(c.connections_opened, 5);
	assert_int_equal(c.connections, 3);
	http_stats_free(m);
}

static void no_meter_counts_nothing(void **state)
{
	http_stats_request(NULL, HTTP_GET, 200, 1, 1, 1);
	http_stats_connected(NULL);
	http_stats_disconnected(NULL);
	const struct http_stats_counts c = read_of(NULL);
	assert_int_equal(c.bytes_in + c.connections + c.requests[HTTP_GET][200], 0);
}

enum { THREADS = 4, EACH = 10000 };

static void *count_many(void *arg)
{
	for (int i = 0; i < EACH; i++) {
		http_stats_request(arg, HTTP_GET, i % 2 ? 200 : 503, 1000, 3, 0);
		http_stats_connected(arg);
		http_stats_disconnected(arg);
	}
	return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
	struct http_stats *m = http_stats_new();
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_many, m), 0);
	for (int i = 0; i < 100; i++)
		assert_in_range(read_of(m).connections, 0, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	const struct http_stats_counts c = read_of(m);
	assert_int_equal(c.requests[HTTP_GET][200], THREADS * EACH / 2);
	assert_int_equal(c.requests[HTTP_GET][503], THREADS * EACH / 2);
	assert_int_equal(c.seconds[HTTP_GET].count, THREADS * EACH);
	assert_int_equal(c.bytes_in, 3 * THREADS * EACH);
	assert_int_equal(c.connections, 0);
	http_stats_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempts_are_told_apart),
		cmocka_unit_test(connections_come_and_go),
		cmocka_unit_test(no_meter_counts_nothing),
		cmocka_unit_test(nothing_is_lost_between_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
