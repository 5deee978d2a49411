/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of credentials: shared config files, and the JSON of services and processes. */
#include "store_fixture.h"

#include "aws/provider.h"
#include <aws/ini.h>

static void test_ini(void **state)
{
	static const char text[] = "outside = ignored\n"
				   "[default]\n"
				   "region=eu-west-1\r\n"
				   "  # a comment\n"
				   "; another\n"
				   "output = json # a comment\n"
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

static void test_byte_order_mark(void **state)
{
	static const char text[] = "\xef\xbb\xbf[default]\r\nregion = eu-north-1\r\n";
	auto_ini struct ini ini = {0};
	assert_int_equal(ini_parse(text, sizeof(text) - 1, &ini, NULL), 0);
	assert_string_equal(ini_get(&ini, "default", "region"), "eu-north-1");
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

#define KEYS "\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\""

static void test_json(void **state)
{
	static const struct {
		const char *json;
		int code;
		const char *secret, *token;
		int64_t expires;
	} cases[] = {
		{"{" KEYS "}", 0, "s", "", 0},
		{" {" KEYS ",\"Token\":\"t\",\"Expiration\":\"1970-01-01T00:01:00Z\"} \n", 0, "s",
		 "t", 60},
		{"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"\\u00e9\\n\\\"\\ud83d\\ude00\\/\"}",
		 0, "\xc3\xa9\n\"\xf0\x9f\x98\x80/", "", 0},
		{"{\"Version\":1,\"x\":[1,-2.5e3,true,null,\"x\",[],{}]," KEYS "}", 0, "s", "", 0},
		{"{" KEYS ",\"Token\":1,\"Expiration\":null}", 0, "s", "", 0},
		{"{" KEYS ",\"x\":{\"Token\":\"inner\"}}", 0, "s", "", 0},
		{"{" KEYS ",\"Expiration\":\"soon\"}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",\"Expiration\":\"\"}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS "," KEYS "}", -EINVAL, NULL, NULL, 0},
		{"{\"AccessKeyId\":\"a\"}", -EINVAL, NULL, NULL, 0},
		{"{\"AccessKeyId\":\"\",\"SecretAccessKey\":\"s\"}", -EINVAL, NULL, NULL, 0},
		{"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"\"}", -EINVAL, NULL, NULL, 0},
		{"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":[\"s\"]}", -EINVAL, NULL, NULL, 0},
		{"[{" KEYS "}]", -EINVAL, NULL, NULL, 0},
		{"\"s\"", -EINVAL, NULL, NULL, 0},
		{"", -EINVAL, NULL, NULL, 0},
		{"{" KEYS, -EINVAL, NULL, NULL, 0},
		{"{" KEYS "}x", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",\"Token\" \"t\"}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",\"Token\":\"\\x\"}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",\"Token\":\"\\ud83d\"}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",\"Token\":\"\\u0000\"}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",\"Token\":\"a\nb\"}", -EINVAL, NULL, NULL, 0},
		{"{" KEYS ",\"Token\":\"\xff\"}", -EINVAL, NULL, NULL, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_str struct str json = {0};
		auto_cred struct cred out = {0};
		struct err err = ERR_INIT;
		str_add(&json, cases[i].json);
		const int rc = cred_from_json(&json, "Token", "test", &out, &err);
		if (rc != cases[i].code)
			fail_msg("%s: %d", cases[i].json, rc);
		if (rc) {
			assert_string_equal(err.msg, "test: the answer contains no credentials");
			assert_int_equal(out.access_key.b.len, 0);
			continue;
		}
		assert_string_equal(str_text(&out.access_key), "a");
		assert_string_equal(str_text(&out.secret_key), cases[i].secret);
		assert_string_equal(str_text(&out.token), cases[i].token);
		assert_int_equal(out.expires, cases[i].expires);
	}
}

static void add_times(struct str *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_add(out, text);
}

static void test_large_or_deep_json(void **state)
{
	static const struct {
		size_t depth, padding;
		int code;
	} cases[] = {{100, 0, 0}, {100000, 0, -EINVAL}, {0, 200 << 10, 0}, {0, 256 << 10, -EINVAL}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_str struct str json = {0};
		auto_cred struct cred out = {0};
		str_add(&json, "{\"x\":[");
		add_times(&json, "[", cases[i].depth);
		add_times(&json, "]", cases[i].depth);
		str_add(&json, "]," KEYS);
		add_times(&json, " ", cases[i].padding);
		str_add(&json, "}");
		assert_int_equal(cred_from_json(&json, "Token", "test", &out, NULL), cases[i].code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ini),
		cmocka_unit_test(test_byte_order_mark),
		cmocka_unit_test(test_bad_ini),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_large_or_deep_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
