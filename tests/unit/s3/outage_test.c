/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a service counts as unreachable, with a false clock: each transition of the table in
 * outage.h, and what must not cause one. */
#include "store_fixture.h"

#include "s3/outage.h"

static const uint64_t second = UINT64_C(1000000000);

enum { LIMIT_S = 60, TIMEOUT_S = 20, START_S = 1000 };

/* What happens at `at_s`. A request or a probe that ends without an answer was sent at `sent_s`. */
enum what { NO_ANSWER = 1, ANSWER, OWN_SENT, OWN_NO_ANSWER, OWN_NOTHING };
enum { NEVER = -1 };
struct event {
	enum what what;
	int at_s, sent_s;
	enum s3_outage_state state; /* afterwards */
	int due_s;		    /* the next own probe */
	bool is_news; /* of NO_ANSWER: the service is silent now. Others: a log line */
};

static int due_of(const struct s3_outage *o)
{
	const uint64_t due = s3_outage_due(o);
	return due == UINT64_MAX ? NEVER : (int)(due / second) - START_S;
}

static bool apply(struct s3_outage *o, const struct event *e, uint64_t *heard)
{
	const uint64_t now = (uint64_t)(START_S + e->at_s) * second;
	const uint64_t sent = (uint64_t)(START_S + e->sent_s) * second;
	switch (e->what) {
	case NO_ANSWER:
		return s3_outage_silent(o, sent, *heard, now);
	case ANSWER:
		*heard = now;
		return s3_outage_answered(o);
	case OWN_SENT:
		s3_outage_own_sent(o);
		return false;
	case OWN_NO_ANSWER:
		return s3_outage_own_ended(o, S3_NO_ANSWER, sent, *heard, now);
	case OWN_NOTHING:
		return s3_outage_own_ended(o, S3_SHOWS_NOTHING, sent, *heard, now);
	}
	return false;
}

static struct s3_outage answering(void)
{
	return (struct s3_outage){.limit_ns = LIMIT_S * second, .timeout_ns = TIMEOUT_S * second};
}

static void test_transitions(void **state)
{
	static const struct {
		const char *name;
		struct event events[12];
	} cases[] = {
		{"a service that hangs: the own probe ends when the minute is over",
		 {{NO_ANSWER, 20, 0, S3_SILENT, 40, true},
		  {NO_ANSWER, 40, 20, S3_SILENT, 40, false},
		  {OWN_SENT, 40, 0, S3_SILENT, NEVER, false},
		  {OWN_NO_ANSWER, 60, 40, S3_UNREACHABLE, 70, true},
		  {OWN_SENT, 70, 0, S3_UNREACHABLE, NEVER, false},
		  {OWN_NO_ANSWER, 90, 70, S3_UNREACHABLE, 100, false},
		  {OWN_SENT, 100, 0, S3_UNREACHABLE, NEVER, false},
		  {ANSWER, 119, 0, S3_ANSWERS, NEVER, true},
		  {ANSWER, 120, 0, S3_ANSWERS, NEVER, false}}},
		{"a service that refuses connections: a probe at the end of the minute",
		 {{NO_ANSWER, 0, 0, S3_SILENT, 40, true},
		  {OWN_SENT, 40, 0, S3_SILENT, NEVER, false},
		  {OWN_NO_ANSWER, 41, 40, S3_SILENT, 51, false},
		  {OWN_SENT, 51, 0, S3_SILENT, NEVER, false},
		  {OWN_NO_ANSWER, 52, 51, S3_SILENT, 60, false},
		  {OWN_SENT, 60, 0, S3_SILENT, NEVER, false},
		  {OWN_NO_ANSWER, 60, 60, S3_UNREACHABLE, 70, true}}},
		{"requests of programs never declare it, however long they get no answer",
		 {{NO_ANSWER, 20, 0, S3_SILENT, 40, true},
		  {NO_ANSWER, 100, 80, S3_SILENT, 40, false},
		  {NO_ANSWER, 300, 280, S3_SILENT, 40, false}}},
		{"one prefix hangs, the own probe is answered",
		 {{NO_ANSWER, 20, 0, S3_SILENT, 40, true},
		  {OWN_SENT, 40, 0, S3_SILENT, NEVER, false},
		  {ANSWER, 40, 0, S3_ANSWERS, NEVER, false},
		  {OWN_NOTHING, 40, 0, S3_ANSWERS, NEVER, false},
		  {NO_ANSWER, 41, 21, S3_ANSWERS, NEVER, false},
		  {NO_ANSWER, 61, 41, S3_SILENT, 81, true}}},
		{"an answer begins the minute anew, also for a probe that is on its way",
		 {{NO_ANSWER, 20, 0, S3_SILENT, 40, true},
		  {OWN_SENT, 40, 0, S3_SILENT, NEVER, false},
		  {ANSWER, 45, 0, S3_ANSWERS, NEVER, false},
		  {NO_ANSWER, 59, 46, S3_SILENT, NEVER, true},
		  {OWN_NO_ANSWER, 60, 40, S3_SILENT, 70, false},
		  {OWN_SENT, 106, 0, S3_SILENT, NEVER, false},
		  {OWN_NO_ANSWER, 126, 106, S3_UNREACHABLE, 136, true}}},
		{"the bucket itself hangs, but another request was answered meanwhile",
		 {{NO_ANSWER, 20, 0, S3_SILENT, 40, true},
		  {OWN_SENT, 100, 0, S3_SILENT, NEVER, false},
		  {ANSWER, 101, 0, S3_ANSWERS, NEVER, false},
		  {NO_ANSWER, 110, 102, S3_SILENT, NEVER, true},
		  {OWN_NO_ANSWER, 170, 100, S3_SILENT, 180, false}}},
		{"other requests were answered while this one was not",
		 {{ANSWER, 10, 0, S3_ANSWERS, NEVER, false},
		  {NO_ANSWER, 20, 0, S3_ANSWERS, NEVER, false},
		  {NO_ANSWER, 30, 10, S3_ANSWERS, NEVER, false},
		  {NO_ANSWER, 31, 11, S3_SILENT, 51, true}}},
		{"a probe that cannot be sent shows nothing",
		 {{NO_ANSWER, 20, 0, S3_SILENT, 40, true},
		  {OWN_SENT, 60, 0, S3_SILENT, NEVER, false},
		  {OWN_NOTHING, 61, 0, S3_SILENT, 71, false}}},
		{"the first request was noted late",
		 {{NO_ANSWER, 300, 0, S3_SILENT, 300, true},
		  {OWN_SENT, 300, 0, S3_SILENT, NEVER, false},
		  {OWN_NO_ANSWER, 301, 300, S3_UNREACHABLE, 311, true}}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_outage o = answering();
		uint64_t heard = (START_S - 1) * second;
		for (const struct event *e = cases[i].events; e->what; e++) {
			const bool is_news = apply(&o, e, &heard);
			if (o.state != e->state || due_of(&o) != e->due_s || is_news != e->is_news)
				fail_msg("%s: at %d: state %d, due %d, news %d", cases[i].name,
					 e->at_s, (int)o.state, due_of(&o), is_news);
		}
	}
}

/* If the limit is shorter than a request may take, the probe follows the request at once. */
static void test_short_limit(void **state)
{
	struct s3_outage o = {.limit_ns = 3 * second, .timeout_ns = TIMEOUT_S * second};
	assert_true(s3_outage_silent(&o, 100 * second, 0, 103 * second));
	assert_int_equal(s3_outage_due(&o), 103 * second);
}

static struct s3_outage unreachable(void)
{
	struct s3_outage o = answering();
	assert_true(s3_outage_silent(&o, second, 0, 2 * second));
	s3_outage_own_sent(&o);
	assert_true(s3_outage_own_ended(&o, S3_NO_ANSWER, 41 * second, 0, 61 * second));
	return o;
}

/* While the service is silent, all requests are sent. */
static void test_silence_stops_nothing(void **state)
{
	struct s3_outage o = answering();
	for (int may_probe = 0; may_probe < 2; may_probe++) {
		assert_int_equal(s3_outage_admit(&o, may_probe, second), S3_ADMIT);
		s3_outage_silent(&o, second, 0, 2 * second);
		assert_int_equal(s3_outage_admit(&o, may_probe, 500 * second), S3_ADMIT);
	}
}

/* One request at a time is a probe; the others, and those that cannot be it, are not sent. */
static void test_guests(void **state)
{
	struct s3_outage o = unreachable();
	assert_int_equal(s3_outage_admit(&o, true, 62 * second - 1), S3_ADMIT_NOT);
	assert_int_equal(s3_outage_admit(&o, false, 62 * second), S3_ADMIT_NOT);
	assert_int_equal(s3_outage_admit(&o, true, 62 * second), S3_ADMIT_AS_GUEST);
	assert_int_equal(s3_outage_admit(&o, true, 63 * second), S3_ADMIT_NOT);
	s3_outage_guest_ended(&o, 64 * second);
	/* A call that sends many requests, one after the other, does not wait for each. */
	assert_int_equal(s3_outage_admit(&o, true, 65 * second - 1), S3_ADMIT_NOT);
	assert_int_equal(s3_outage_admit(&o, true, 65 * second), S3_ADMIT_AS_GUEST);
	assert_true(s3_outage_answered(&o));
	s3_outage_guest_ended(&o, 66 * second);
	assert_int_equal(s3_outage_admit(&o, false, 66 * second), S3_ADMIT);
	/* The next outage begins as the first one did. */
	assert_true(s3_outage_silent(&o, 100 * second, 66 * second, 101 * second));
	assert_int_equal(s3_outage_due(&o), 140 * second);
}

/* What programs do delays no own probe, and an own probe no program's. */
static void test_kinds_are_independent(void **state)
{
	struct s3_outage o = unreachable();
	for (uint64_t s = 62; s < 71; s += 3) {
		assert_int_equal(s3_outage_due(&o), 71 * second);
		assert_int_equal(s3_outage_admit(&o, true, s * second), S3_ADMIT_AS_GUEST);
		assert_int_equal(s3_outage_due(&o), 71 * second);
		s3_outage_guest_ended(&o, (s + 2) * second);
		s3_outage_silent(&o, s * second, 0, (s + 2) * second);
	}
	s3_outage_own_sent(&o);
	assert_int_equal(s3_outage_due(&o), UINT64_MAX);
	assert_int_equal(s3_outage_admit(&o, true, 72 * second), S3_ADMIT_AS_GUEST);
	assert_false(s3_outage_own_ended(&o, S3_NO_ANSWER, 71 * second, 0, 91 * second));
	assert_int_equal(s3_outage_due(&o), 101 * second);
	assert_int_equal(s3_outage_admit(&o, true, 92 * second), S3_ADMIT_NOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transitions),	      cmocka_unit_test(test_short_limit),
		cmocka_unit_test(test_silence_stops_nothing), cmocka_unit_test(test_guests),
		cmocka_unit_test(test_kinds_are_independent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
