/* SPDX-License-Identifier: Apache-2.0 */
/* Findings and results: counts, outcomes, the limit, and a sink that stops. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"

struct seen {
	unsigned int findings, results;
	struct engine_check_result result;
	char last[256];
	uint64_t done, total;
	int stop;
};

static int take_finding(void *arg, const struct engine_check_finding *f)
{
	struct seen *s = arg;
	s->findings++;
	snprintf(s->last, sizeof(s->last), "%s|%s|%s|%s|%s",
		 engine_check_severity_name(f->severity), f->path, f->object, f->key, f->text);
	return s->stop;
}

static int take_result(void *arg, const struct engine_check_result *r)
{
	struct seen *s = arg;
	s->results++;
	s->result = *r;
	return s->stop;
}

static void take_progress(void *arg, uint64_t done, uint64_t total)
{
	struct seen *s = arg;
	s->done = done;
	s->total = total;
}

static struct engine_check_sink sink_of(struct seen *s)
{
	return (struct engine_check_sink){.finding = take_finding,
					  .result = take_result,
					  .progress = take_progress,
					  .arg = s};
}

static void outcomes(void **state)
{
	static const struct {
		enum engine_check_severity severity;
		const char *outcome;
	} cases[] = {
		{ENGINE_CHECK_ERROR, "damaged"},
		{ENGINE_CHECK_UNCHECKED, "unchecked"},
		{ENGINE_CHECK_UNFINISHED, "unfinished"},
		{ENGINE_CHECK_WARNING, "sound"},
		{ENGINE_CHECK_NOTE, "sound"},
	};
	struct seen s = {0};
	const struct engine_check_sink sink = sink_of(&s);
	struct check c = {.sink = &sink};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_begin(&c, "/a.h5");
		assert_int_equal(check_find(&c, cases[i].severity, NULL, NULL, "x"), 0);
		assert_int_equal(check_end(&c), 0);
		assert_string_equal(engine_check_outcome_name(engine_check_outcome(&s.result)),
				    cases[i].outcome);
		assert_int_equal(s.result.findings[cases[i].severity], 1);
	}
	check_begin(&c, "/a.h5");
	check_find(&c, ENGINE_CHECK_UNFINISHED, NULL, NULL, "x");
	check_find(&c, ENGINE_CHECK_UNCHECKED, NULL, NULL, "x");
	assert_int_equal(engine_check_outcome(&c.result), ENGINE_CHECK_NOT_CHECKED);
	check_find(&c, ENGINE_CHECK_ERROR, NULL, NULL, "x");
	assert_int_equal(engine_check_outcome(&c.result), ENGINE_CHECK_DAMAGED);
}

static void a_finding_has_all_its_parts(void **state)
{
	struct seen s = {0};
	const struct engine_check_sink sink = sink_of(&s);
	struct check c = {.sink = &sink};
	check_begin(&c, "/a.h5");
	check_find(&c, ENGINE_CHECK_WARNING, "/g", "db/k", "%d of %d", 1, 2);
	assert_string_equal(s.last, "warning|/a.h5|/g|db/k|1 of 2");
	check_find(&c, ENGINE_CHECK_NOTE, NULL, NULL, "none");
	assert_string_equal(s.last, "note|/a.h5|||none");
}

static void the_number_of_findings_is_limited(void **state)
{
	struct seen s = {0};
	const struct engine_check_sink sink = sink_of(&s);
	struct check c = {.sink = &sink};
	check_begin(&c, "/a.h5");
	for (int i = 0; i < 10007; i++)
		assert_int_equal(check_find(&c, ENGINE_CHECK_ERROR, NULL, NULL, "x"), 0);
	assert_int_equal(s.findings, 10000);
	assert_int_equal(c.result.findings[ENGINE_CHECK_ERROR], 10007);
	assert_int_equal(c.result.omitted, 7);
	check_begin(&c, "/b.h5");
	check_find(&c, ENGINE_CHECK_ERROR, NULL, NULL, "x");
	assert_int_equal(s.findings, 10001);
	assert_int_equal(c.result.omitted, 0);
}

static void the_sink_stops(void **state)
{
	struct seen s = {.stop = -EPIPE};
	const struct engine_check_sink sink = sink_of(&s);
	struct check c = {.sink = &sink};
	check_begin(&c, "/a.h5");
	assert_int_equal(check_find(&c, ENGINE_CHECK_NOTE, NULL, NULL, "x"), -EPIPE);
	assert_int_equal(check_end(&c), -EPIPE);
}

static void progress(void **state)
{
	struct seen s = {0};
	struct engine_check_sink sink = sink_of(&s);
	struct check c = {.sink = &sink};
	check_begin(&c, "/a.h5");
	c.expected = 100;
	check_handled(&c, 60);
	assert_true(s.done == 60 && s.total == 100);
	check_handled(&c, 60); /* more than expected */
	assert_true(s.done == 120 && s.total == 120);
	c.expected = 200;
	check_handled(&c, 30);
	assert_true(s.done == 150 && s.total == 200);
	assert_int_equal(check_end(&c), 0); /* the rest does not exist */
	assert_true(s.done == 150 && s.total == 150);
	sink.progress = NULL;
	check_handled(&c, 1);
	assert_int_equal(c.handled, 151);
	assert_int_equal(c.result.decoded_bytes, 0);
	check_decoded(&c, 7);
	assert_true(c.result.decoded == 1 && c.result.decoded_bytes == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outcomes),
		cmocka_unit_test(a_finding_has_all_its_parts),
		cmocka_unit_test(the_number_of_findings_is_limited),
		cmocka_unit_test(the_sink_stops),
		cmocka_unit_test(progress),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
