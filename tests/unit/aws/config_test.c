/* SPDX-License-Identifier: Apache-2.0 */
/* The formats in which credentials come: shared config files and flat JSON. */
#include "store_fixture.h"

#include "aws/flat_json.h"
#include <aws/ini.h>

static void test_ini(void **state)
{
	static const char text[] = "outside = ignored\n"
				   "[default]\n"
				   "region=eu-west-1\r\n"
				   "  # a comment\n"
				   "; another\n"
				   "output = json # said behind\n"
				   "secret = a#b=c;d\n"
				   "empty =\n"
				   "[ profile two ]\n"
				   "s3 =\n"
				   "  addressing_style = path\n"
				   "\tmax_concurrent_requests = 20\n"
				   "region = one\n"
				   "no pair\n"
				   "= no key\n"
				   "[default]\n"
				   "region = eu-north-1\n"
				   "[unclosed\n"
				   "region = nowhere";
	static const struct {
		const char *section, *key, *want;
	} cases[] = {
		{"default", "region", "eu-north-1"},
		{"default", "output", "json"},
		{"default", "secret", "a#b=c;d"},
		{"default", "empty", ""},
		{"profile two", "s3.addressing_style", "path"},
		{"profile two", "s3.max_concurrent_requests", "20"},
		{"profile two", "region", "one"},
		{"profile two", "addressing_style", NULL},
		{"default", "outside", NULL},
		{"nowhere", "region", NULL},
		{"unclosed", "region", NULL},
	};
	auto_ini struct ini ini = {0};
	assert_int_equal(ini_parse(text, sizeof(text) - 1, &ini, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = ini_get(&ini, cases[i].section, cases[i].key);
		if (!cases[i].want)
			assert_null(got);
		else
			assert_string_equal(got, cases[i].want);
	}
}

static void test_bad_ini(void **state)
{
	struct ini ini;
	auto_free char *large = calloc(1, INI_SIZE_MAX + 1);
	assert_int_equal(ini_parse("[a]\nb\0=c", 8, &ini, NULL), -EINVAL);
	memset(large, '#', INI_SIZE_MAX + 1);
	assert_int_equal(ini_parse(large, INI_SIZE_MAX + 1, &ini, NULL), -EINVAL);
	assert_int_equal(ini_parse(large, INI_SIZE_MAX, &ini, NULL), 0);
	ini_release(&ini);
	assert_int_equal(ini_parse("", 0, &ini, NULL), 0);
	assert_null(ini_get(&ini, "a", "b"));
	ini_release(&ini);
}

static void test_json(void **state)
{
	static const struct {
		const char *json;
		int code;
		const char *want; /* of "k" */
	} cases[] = {
		{"{\"k\": \"v\"}", 0, "v"},
		{" {\"a\":{\"k\":\"inner\"},\"k\":\"v\",\"k\":\"w\"} ", 0, "v"},
		{"{\"k\":\"\\u00e9\\n\\\"\\ud83d\\ude00\\/\"}", 0, "\xc3\xa9\n\"\xf0\x9f\x98\x80/"},
		{"{\"a\":[1,-2.5e3,true,null,\"x\",[],{}],\"k\":\"\"}", 0, ""},
		{"{}", -ENOENT, NULL},
		{"{\"k\":1}", -ENOENT, NULL},
		{"{\"k\":{\"k\":\"v\"}}", -ENOENT, NULL},
		{"[]", -EINVAL, NULL},
		{"", -EINVAL, NULL},
		{"{\"k\":\"v\"", -EINVAL, NULL},
		{"{\"k\":\"v\"}x", -EINVAL, NULL},
		{"{\"k\":\"v\",}", -EINVAL, NULL},
		{"{\"k\" \"v\"}", -EINVAL, NULL},
		{"{\"k\":\"\\x\"}", -EINVAL, NULL},
		{"{\"k\":\"\\ud83d\"}", -EINVAL, NULL},
		{"{\"k\":\"\\u0000\"}", -EINVAL, NULL},
		{"{\"k\":\"a\nb\"}", -EINVAL, NULL},
		{"{\"a\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}", -EINVAL, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_str struct str out = {0};
		int rc = flat_json_get(cases[i].json, strlen(cases[i].json), "k", &out);
		if (rc != cases[i].code)
			fail_msg("%s: %d", cases[i].json, rc);
		if (rc == 0)
			assert_string_equal(str_text(&out), cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ini),
		cmocka_unit_test(test_bad_ini),
		cmocka_unit_test(test_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
