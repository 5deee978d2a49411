/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a service counts as unreachable, with a false clock. */
#include "store_fixture.h"

#include "s3/outage.h"

static const uint64_t second = UINT64_C(1000000000);

enum { LIMIT_S = 60 };

/* At `at_s` a request that was sent at `sent_s` ends without an answer, or (sent_s is ANSWER) one
 * is answered. The state follows. */
enum { ANSWER = -1 };
struct event {
	int at_s, sent_s;
	enum s3_outage_state state;
	bool is_news; /* the log gets a line */
};

static void test_states(void **state)
{
	static const struct {
		struct event events[8];
	} cases[] = {
		/* Counted from the time at which the first request was sent. */
		{{{20, 0, S3_SILENT, false},
		  {40, 20, S3_SILENT, false},
		  {59, 40, S3_SILENT, false},
		  {60, 50, S3_UNREACHABLE, true},
		  {70, 61, S3_UNREACHABLE, false},
		  {75, ANSWER, S3_ANSWERS, true},
		  {76, ANSWER, S3_ANSWERS, false}}},
		/* An answer begins the minute anew. */
		{{{20, 0, S3_SILENT, false},
		  {30, ANSWER, S3_ANSWERS, false},
		  {55, 35, S3_SILENT, false},
		  {94, 60, S3_SILENT, false},
		  {95, 94, S3_UNREACHABLE, true}}},
		/* Other requests were answered meanwhile. */
		{{{10, ANSWER, S3_ANSWERS, false},
		  {20, 0, S3_ANSWERS, false},
		  {30, 5, S3_ANSWERS, false},
		  {31, 11, S3_SILENT, false},
		  {71, 51, S3_UNREACHABLE, true}}},
		/* One that was sent before the outage ends late. */
		{{{20, 0, S3_SILENT, false}, {61, 1, S3_UNREACHABLE, true}}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_outage o = {.limit_ns = LIMIT_S * second};
		const uint64_t start = 1000 * second;
		uint64_t heard = start - second;
		for (const struct event *e = cases[i].events; e->at_s; e++) {
			const uint64_t now = start + (uint64_t)e->at_s * second;
			bool is_news;
			if (e->sent_s == ANSWER) {
				heard = now;
				is_news = s3_outage_answered(&o);
			} else {
				is_news = s3_outage_silent(&o, start + (uint64_t)e->sent_s * second,
							   heard, now);
			}
			assert_int_equal(o.state, e->state);
			assert_int_equal(is_news, e->is_news);
		}
	}
}

static struct s3_outage unreachable(void)
{
	struct s3_outage o = {.limit_ns = LIMIT_S * second};
	assert_false(s3_outage_silent(&o, second, 0, 2 * second));
	assert_true(s3_outage_silent(&o, 2 * second, 0, 61 * second));
	return o;
}

/* One request at a time is the probe; the others, and those that cannot be it, are not sent. */
static void test_probes(void **state)
{
	struct s3_outage o = {.limit_ns = LIMIT_S * second};
	assert_int_equal(s3_outage_admit(&o, false, 1), S3_ADMIT);
	o = unreachable();
	assert_int_equal(s3_outage_admit(&o, false, 62 * second), S3_ADMIT_NOT);
	assert_int_equal(s3_outage_admit(&o, true, 62 * second), S3_ADMIT_AS_PROBE);
	assert_int_equal(s3_outage_admit(&o, true, 62 * second), S3_ADMIT_NOT);
	assert_int_equal(s3_outage_admit(&o, true, 90 * second), S3_ADMIT_NOT);
	s3_outage_probed(&o, 90 * second);
	/* A call that sends many requests, one after the other, does not wait for each. */
	assert_int_equal(s3_outage_admit(&o, true, 91 * second - 1), S3_ADMIT_NOT);
	assert_int_equal(s3_outage_admit(&o, true, 91 * second), S3_ADMIT_AS_PROBE);
	assert_true(s3_outage_answered(&o));
	s3_outage_probed(&o, 92 * second);
	assert_int_equal(s3_outage_admit(&o, false, 92 * second), S3_ADMIT);
}

/* What the requests that are sent meanwhile may take. */
static void test_limits(void **state)
{
	enum { WANTED_MS = 20000 };
	struct s3_outage o = {.limit_ns = LIMIT_S * second};
	assert_int_equal(s3_outage_cut(&o, WANTED_MS, second), WANTED_MS);
	s3_outage_silent(&o, 10 * second, 0, 30 * second);
	assert_int_equal(s3_outage_cut(&o, WANTED_MS, 30 * second), WANTED_MS);
	assert_int_equal(s3_outage_cut(&o, WANTED_MS, 60 * second), 10000);
	assert_int_equal(s3_outage_cut(&o, WANTED_MS, 60 * second + 1), 10000);
	assert_int_equal(s3_outage_cut(&o, 5000, 60 * second), 5000);
	assert_int_equal(s3_outage_cut(&o, WANTED_MS, 69 * second), S3_PROBE_MS);
	assert_int_equal(s3_outage_cut(&o, WANTED_MS, 500 * second), S3_PROBE_MS);
	o = unreachable();
	assert_int_equal(s3_outage_cut(&o, WANTED_MS, 62 * second), S3_PROBE_MS);
	assert_int_equal(s3_outage_cut(&o, 500, 62 * second), 500);
}

/* The store's own probe: at the end of the minute, then ten seconds after each probe. */
static void test_own_probes(void **state)
{
	struct s3_outage o = {.limit_ns = LIMIT_S * second};
	assert_int_equal(s3_outage_due(&o), UINT64_MAX);
	s3_outage_silent(&o, 10 * second, 0, 30 * second);
	assert_int_equal(s3_outage_due(&o), 70 * second);
	s3_outage_silent(&o, 70 * second, 0, 72 * second);
	s3_outage_probed(&o, 72 * second);
	assert_int_equal(s3_outage_due(&o), 82 * second);
	assert_int_equal(s3_outage_admit(&o, true, 80 * second), S3_ADMIT_AS_PROBE);
	s3_outage_probed(&o, 81 * second);
	assert_int_equal(s3_outage_due(&o), 91 * second);
	s3_outage_answered(&o);
	assert_int_equal(s3_outage_due(&o), UINT64_MAX);
	/* The next outage begins as the first one did. */
	s3_outage_silent(&o, 100 * second, 91 * second, 101 * second);
	assert_int_equal(s3_outage_due(&o), 160 * second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_own_probes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
