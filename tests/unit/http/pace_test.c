/* SPDX-License-Identifier: Apache-2.0 */
/* When paced calls begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/pace.h"

enum { MIB = 1 << 20 };

#define MS UINT64_C(1000000)

/* Begins calls as soon as they may, from `now` on. Returns how long that takes. */
static uint64_t begin(struct http_pace *p, unsigned int n, uint64_t length, uint64_t now)
{
	const uint64_t first = now;
	while (n--) {
		now += http_pace_wait(p, now);
		http_pace_begin(p, length, now);
	}
	return now - first;
}

/* Windows in which bodies arrive at this rate. */
static uint64_t receive(struct http_pace *p, unsigned int n, uint64_t rate, uint64_t now)
{
	uint64_t received = p->received;
	for (; n--; now += HTTP_PACE_WINDOW_NS)
		http_pace_measure(p, received += rate / 1000 * (HTTP_PACE_WINDOW_NS / MS),
				  now + HTTP_PACE_WINDOW_NS);
	return now;
}

static void large_calls_begin_at_intervals(void **state)
{
	(void)state;
	struct http_pace p = {0};
	const uint64_t each = MIB * UINT64_C(1000000000) / HTTP_PACE_MIN;
	assert_int_equal(begin(&p, 1, MIB, 100 * MS), 0);
	assert_in_range(begin(&p, 8, MIB, 100 * MS), 8 * each - MS, 8 * each);
	/* After a pause, the next one begins at once. */
	assert_int_equal(http_pace_wait(&p, 1000 * MS), 0);
}

static void other_calls_do_not_wait(void **state)
{
	(void)state;
	struct http_pace p = {0};
	assert_int_equal(begin(&p, 1000, 0, 100 * MS), 0);
	assert_int_equal(begin(&p, 40, 4096, 100 * MS), 0);
}

/* Calls that have waited for a thread without processor time begin together, as many as would have
 * begun meanwhile. */
static void what_the_thread_missed_is_made_up_for(void **state)
{
	(void)state;
	struct http_pace p = {0};
	const uint64_t each = MIB * UINT64_C(1000000000) / HTTP_PACE_MIN, submitted = 100 * MS;
	const uint64_t now = submitted + 10 * each;
	unsigned int n = 0;
	for (; n < 64 && http_pace_wait(&p, now) == 0; n++)
		http_pace_begin(&p, MIB, submitted);
	assert_in_range(n, 10, 12);
	/* Calls that are submitted later do not use up what nobody has used. */
	const uint64_t late = 1000 * MS;
	http_pace_begin(&p, MIB, late);
	assert_in_range(http_pace_wait(&p, late), each - MS, each);
}

/* A hostile length does not stop the others. */
static void a_length_is_limited(void **state)
{
	(void)state;
	struct http_pace p = {0};
	http_pace_begin(&p, UINT64_MAX, 100 * MS);
	assert_in_range(http_pace_wait(&p, 100 * MS), 1, 250 * MS);
}

static void the_pace_follows_the_rate(void **state)
{
	static const struct {
		uint64_t rate, pace;
	} cases[] = {
		{10 * MIB, HTTP_PACE_MIN},
		{300 * MIB, 600 * MIB},
		{UINT64_C(4096) * MIB, HTTP_PACE_MAX},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_pace p = {0};
		uint64_t now = receive(&p, 3, cases[i].rate, 100 * MS);
		const uint64_t all = 64 * MIB * UINT64_C(1000000000) / cases[i].pace;
		assert_in_range(begin(&p, 64, MIB, now), all / 100 * 90, all / 100 * 105);
		/* A program that reads slowly does not show how fast the network is. */
		now = receive(&p, 100, MIB, now + 1000 * MS);
		assert_in_range(begin(&p, 64, MIB, now), all / 100 * 90, all / 100 * 105);
	}
}

/* The thread was delayed, and found what had arrived meanwhile. */
static void one_burst_does_not_count(void **state)
{
	(void)state;
	struct http_pace p = {0};
	uint64_t now = receive(&p, 1, UINT64_C(2048) * MIB, 100 * MS);
	now = receive(&p, 5, 100 * MIB, now);
	assert_in_range(p.rate, 90 * MIB, 110 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_calls_begin_at_intervals),
		cmocka_unit_test(other_calls_do_not_wait),
		cmocka_unit_test(what_the_thread_missed_is_made_up_for),
		cmocka_unit_test(a_length_is_limited),
		cmocka_unit_test(the_pace_follows_the_rate),
		cmocka_unit_test(one_burst_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
