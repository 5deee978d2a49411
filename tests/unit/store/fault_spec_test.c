/* SPDX-License-Identifier: Apache-2.0 */
/* The fault language: what is accepted, as what, and what is refused. */
#include "store_fixture.h"

#include <store/fault_spec.h>

static void test_accepted(void **state)
{
	static const struct {
		const char *text, *shortest;
	} cases[] = {
		{"", ""},
		{"fail:1", "fail:1"},
		{"fail:1:EIO", "fail:1"},
		{"fail:7+:ENOENT@*.json", "fail:7+:ENOENT@*.json"},
		{"truncate:*3:0", "truncate:*3"},
		{"truncate:*3:18446744073709551615", "truncate:*3:18446744073709551615"},
		{"delay:5%:0", "delay:5%:0"},
		{"delay:0.5%:3600000", "delay:0.5%:3600000"},
		{"flip:12.3400%:7@a:b@c", "flip:12.34%:7@a:b@c"},
		{"fail:0%", "fail:0%"},
		{"fail:0.0000%", "fail:0%"},
		{"fail:100.0%", "fail:100%"},
		{"fail:0001", "fail:1"},
		{"fail:1@x", "fail:1@x"},
		{"fail:1,delay:2:3,flip:4", "fail:1,delay:2:3,flip:4"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault_spec spec;
		struct err err = ERR_INIT;
		char text[128];
		if (fault_spec_parse(cases[i].text, &spec, &err))
			fail_msg("%s: %s", cases[i].text, err.msg);
		assert_int_equal(fault_spec_format(&spec, text, sizeof(text)), 0);
		assert_string_equal(text, cases[i].shortest);
		assert_int_equal(fault_spec_format(&spec, text, strlen(text)), -ENOSPC);
	}
}

static void test_fields(void **state)
{
	struct fault_spec spec;
	assert_int_equal(fault_spec_parse("fail:2.5%:ENOSPC@a*", &spec, NULL), 0);
	assert_int_equal(spec.n, 1);
	assert_int_equal(spec.rules[0].what, FAULT_FAIL);
	assert_int_equal(spec.rules[0].when, FAULT_PPM);
	assert_int_equal(spec.rules[0].n, 25000);
	assert_int_equal(spec.rules[0].value, ENOSPC);
	assert_string_equal(spec.rules[0].glob, "a*");
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

static void test_every_errno_has_its_word(void **state)
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
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_every_errno_has_its_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
