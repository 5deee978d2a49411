/* SPDX-License-Identifier: Apache-2.0 */
/* The language of injected failures: accepted rules and their meaning, refused rules. */
#include "store_fixture.h"

#include <store/fault_spec.h>

static void test_accepted(void **state)
{
	static const struct {
		const char *text;
		struct fault_rule rule;
	} cases[] = {
		{"fail:1", {FAULT_FAIL, FAULT_NTH, 1, EIO, ""}},
		{"fail:0001", {FAULT_FAIL, FAULT_NTH, 1, EIO, ""}},
		{"fail:1:EIO", {FAULT_FAIL, FAULT_NTH, 1, EIO, ""}},
		{"fail:7+:ENOENT@*.json", {FAULT_FAIL, FAULT_FROM, 7, ENOENT, "*.json"}},
		{"fail:2.5%:ENOSPC@a*", {FAULT_FAIL, FAULT_PPM, 25000, ENOSPC, "a*"}},
		{"truncate:*3", {FAULT_TRUNCATE, FAULT_EVERY, 3, 0, ""}},
		{"truncate:*3:18446744073709551615",
		 {FAULT_TRUNCATE, FAULT_EVERY, 3, UINT64_MAX, ""}},
		{"delay:5%:0", {FAULT_DELAY, FAULT_PPM, 50000, 0, ""}},
		{"delay:0.5%:3600000", {FAULT_DELAY, FAULT_PPM, 5000, 3600000, ""}},
		{"flip:12.3400%:7@a:b@c", {FAULT_FLIP, FAULT_PPM, 123400, 7, "a:b@c"}},
		{"flip:0.0001%", {FAULT_FLIP, FAULT_PPM, 1, 0, ""}},
		{"fail:0%", {FAULT_FAIL, FAULT_PPM, 0, EIO, ""}},
		{"fail:0.0000%", {FAULT_FAIL, FAULT_PPM, 0, EIO, ""}},
		{"fail:100.0%", {FAULT_FAIL, FAULT_PPM, 1000000, EIO, ""}},
		{"fail:1@x", {FAULT_FAIL, FAULT_NTH, 1, EIO, "x"}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct fault_rule *want = &cases[i].rule;
		struct fault_spec spec;
		struct err err = ERR_INIT;
		if (fault_spec_parse(cases[i].text, &spec, &err))
			fail_msg("%s: %s", cases[i].text, err.msg);
		assert_int_equal(spec.n, 1);
		assert_int_equal(spec.rules[0].what, want->what);
		assert_int_equal(spec.rules[0].when, want->when);
		assert_int_equal(spec.rules[0].n, want->n);
		assert_int_equal(spec.rules[0].value, want->value);
		assert_string_equal(spec.rules[0].glob, want->glob);
	}
}

static void test_several_rules(void **state)
{
	struct fault_spec spec;
	assert_int_equal(fault_spec_parse("", &spec, NULL), 0);
	assert_int_equal(spec.n, 0);
	assert_int_equal(fault_spec_parse("fail:1,delay:2:3,flip:4", &spec, NULL), 0);
	assert_int_equal(spec.n, 3);
	assert_int_equal(spec.rules[1].what, FAULT_DELAY);
	assert_int_equal(spec.rules[2].n, 4);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"fail",
		"fail:",
		",",
		"fail:1,",
		",fail:1",
		"fail:1,,fail:2",
		"Fail:1",
		"explode:1",
		":1",
		"fail:0",
		"fail:0+",
		"fail:*0",
		"fail:+",
		"fail:*",
		"fail:%",
		"fail:-1",
		"fail: 1",
		"fail:1 ",
		"fail:1x",
		"fail:*1+",
		"fail:101%",
		"fail:100.1%",
		"fail:1.%",
		"fail:.5%",
		"fail:1.23456%",
		"fail:1:",
		"fail:1:5",
		"fail:1:EWHAT",
		"fail:1:eio",
		"fail:1:EIO:x",
		"fail:1@",
		"fail@x",
		"delay:1",
		"delay:1:",
		"delay:1:1s",
		"delay:1:3600001",
		"truncate:1:-1",
		"flip:1:",
		"flip:1:0x10",
		"flip:99999999999999999999",
		"flip:1:18446744073709551616",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fault_spec spec;
		struct err err = ERR_INIT;
		if (fault_spec_parse(texts[i], &spec, &err) != -EINVAL)
			fail_msg("'%s' was accepted", texts[i]);
		assert_true(err.msg[0]);
	}
}

static void test_too_large(void **state)
{
	struct fault_spec spec;
	char text[600] = "fail:1";
	for (int i = 1; i < FAULT_RULES_MAX; i++)
		strcat(text, ",fail:1");
	assert_int_equal(fault_spec_parse(text, &spec, NULL), 0);
	strcat(text, ",fail:1");
	assert_int_equal(fault_spec_parse(text, &spec, NULL), -E2BIG);

	memset(text, 'x', sizeof(text));
	memcpy(text, "fail:1@", 7);
	text[7 + FAULT_GLOB_MAX] = '\0';
	assert_int_equal(fault_spec_parse(text, &spec, NULL), 0);
	text[7 + FAULT_GLOB_MAX] = 'x';
	text[8 + FAULT_GLOB_MAX] = '\0';
	assert_int_equal(fault_spec_parse(text, &spec, NULL), -EINVAL);
}

/* Two rules with the same percentage hit different requests. */
static void test_chance_depends_on_the_rule(void **state)
{
	const struct fault_rule half = {.when = FAULT_PPM, .n = 500000};
	unsigned int both = 0;
	for (uint64_t nth = 1; nth <= 1000; nth++)
		both += fault_rule_hits(&half, 0, nth) && fault_rule_hits(&half, 1, nth);
	assert_in_range(both, 200, 300);
}

static void test_names_of_errnos(void **state)
{
	assert_string_equal(fault_errno_name(EIO), "EIO");
	assert_string_equal(fault_errno_name(ETIMEDOUT), "ETIMEDOUT");
	assert_null(fault_errno_name(0));
	assert_null(fault_errno_name(ENOTTY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_several_rules),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_chance_depends_on_the_rule),
		cmocka_unit_test(test_names_of_errnos),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
