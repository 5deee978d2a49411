/* SPDX-License-Identifier: Apache-2.0 */
/* Time-outs of a call, with a false clock. */
#include "store_fixture.h"

#include <http/timeouts.h>

enum { TICK_MS = 100 };

/* The phase of a call from a time on, and its bytes. */
struct step {
	unsigned int from_ms;
	enum http_phase phase;
	uint64_t bytes;	   /* at from_ms */
	uint64_t per_tick; /* added with each tick */
};

/* Returns when the call times out, in ms; -1: it does not. */
static int ends_at(const struct step *steps, size_t n, unsigned int end_ms)
{
	static const struct http_limits limits = {
		.first_byte_ms = 2000, .low_speed_s = 3, .low_speed_bytes = 1000};
	const uint64_t start = UINT64_C(5000000000), ms = 1000000;
	struct http_timeouts p;
	size_t at = 0;
	http_timeouts_begin(&p, steps[0].phase, start);
	for (unsigned int now = TICK_MS; now <= end_ms; now += TICK_MS) {
		while (at + 1 < n && steps[at + 1].from_ms <= now)
			at++;
		const uint64_t bytes =
			steps[at].bytes + (now - steps[at].from_ms) / TICK_MS * steps[at].per_tick;
		if (http_timeouts_ends(&p, steps[at].phase, bytes, start + now * ms, &limits))
			return (int)now;
	}
	return -1;
}

static void test_cases(void **state)
{
	static const struct {
		struct step steps[4];
		size_t n;
		int want;
	} cases[] = {
		/* no answer */
		{{{0, HTTP_AWAITING, 0, 0}}, 1, 2000},
		/* an answer whose body does not arrive */
		{{{0, HTTP_AWAITING, 0, 0}, {1900, HTTP_RECEIVING, 0, 0}}, 2, 4900},
		/* just fast enough, and just too slow */
		{{{0, HTTP_RECEIVING, 0, 100}}, 1, -1},
		{{{0, HTTP_RECEIVING, 0, 99}}, 1, 3000},
		/* a byte at long intervals */
		{{{0, HTTP_RECEIVING, 0, 1}}, 1, 3000},
		/* it stops, and continues in time */
		{{{0, HTTP_RECEIVING, 0, 5000},
		  {1000, HTTP_RECEIVING, 50000, 0},
		  {3900, HTTP_RECEIVING, 55000, 5000}},
		 3,
		 -1},
		{{{0, HTTP_RECEIVING, 0, 5000}, {1000, HTTP_RECEIVING, 45000, 0}}, 2, 3900},
		/* the time for the first byte begins at the end of a long upload */
		{{{0, HTTP_SENDING, 0, 5000}, {8000, HTTP_AWAITING, 400000, 0}}, 2, 10000},
		{{{0, HTTP_SENDING, 0, 0}}, 1, 3000},
		/* sent again from its beginning: this is not progress at first */
		{{{0, HTTP_SENDING, 0, 5000}, {1000, HTTP_SENDING, 0, 0}}, 2, 3900},
		{{{0, HTTP_SENDING, 0, 5000}, {1000, HTTP_SENDING, 0, 200}}, 2, -1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int got = ends_at(cases[i].steps, cases[i].n, 12000);
		if (got != cases[i].want)
			fail_msg("case %zu ends at %d, not %d", i, got, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
