/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures and canonical forms, compared with the examples that AWS publishes. */
#include "store_fixture.h"

#include <aws/sigv4.h>
#include <aws/uri.h>

static const char empty_hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/* 2013-05-24T00:00:00Z, the time of the S3 examples; 2015-08-30T12:36:00Z, that of the others. */
static const int64_t s3_time = 1369353600, suite_time = 1440938160;

static void check_signature(const struct sigv4_request *req, const struct sigv4_key *key,
			    int64_t when, const char *want)
{
	auto_str struct str out = {0};
	assert_int_equal(sigv4_authorization(req, key, when, &out), 0);
	const char *at = strstr(str_text(&out), "Signature=");
	assert_non_null(at);
	assert_string_equal(at + strlen("Signature="), want);
}

/* "Signature calculations for the Authorization header", Amazon S3 API Reference. */
static void test_s3_examples(void **state)
{
	static const struct sigv4_key key = {"AKIAIOSFODNN7EXAMPLE",
					     "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
					     "us-east-1", "s3"};
	static const char put_hash[] =
		"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
	static const struct sigv4_pair get[] = {
		{"Host", "examplebucket.s3.amazonaws.com"},
		{"Range", "bytes=0-9"},
		{"x-amz-content-sha256", empty_hash},
		{"x-amz-date", "20130524T000000Z"},
	};
	static const struct sigv4_pair put[] = {
		{"x-amz-date", "20130524T000000Z"},
		{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
		{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
		{"x-amz-content-sha256", put_hash},
		{"host", "  examplebucket.s3.amazonaws.com "},
	};
	static const struct sigv4_pair bare[] = {
		{"host", "examplebucket.s3.amazonaws.com"},
		{"x-amz-content-sha256", empty_hash},
		{"x-amz-date", "20130524T000000Z"},
	};
	static const struct sigv4_pair lifecycle[] = {{"lifecycle", ""}};
	static const struct sigv4_pair list[] = {{"prefix", "J"}, {"max-keys", "2"}};
	static const struct {
		struct sigv4_request req;
		const char *want;
	} cases[] = {
		{{"GET", "/test.txt", NULL, get, 0, 4, empty_hash},
		 "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{{"PUT", "/test%24file.text", NULL, put, 0, 5, put_hash},
		 "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{{"GET", "/", lifecycle, bare, 1, 3, empty_hash},
		 "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{{"GET", "/", list, bare, 2, 3, empty_hash},
		 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_signature(&cases[i].req, &key, s3_time, cases[i].want);
}

/* get-vanilla of the signature version 4 test suite. */
static void test_suite_example(void **state)
{
	static const struct sigv4_key key = {
		"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service"};
	static const struct sigv4_pair header[] = {{"Host", "example.amazonaws.com"},
						   {"X-Amz-Date", "20150830T123600Z"}};
	const struct sigv4_request req = {"GET", "/", NULL, header, 0, 2, empty_hash};
	check_signature(&req, &key, suite_time,
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

static void test_date(void **state)
{
	char date[SIGV4_DATE_SIZE];
	sigv4_date(s3_time, date);
	assert_string_equal(date, "20130524T000000Z");
	sigv4_date(suite_time, date);
	assert_string_equal(date, "20150830T123600Z");
}

static void test_query_order(void **state)
{
	static const struct sigv4_pair pairs[] = {
		{"b", "2"}, {"a", "z"}, {"a-b", ""}, {"a", "\xc3\xa9/ +"}, {"A", "1"}};
	auto_str struct str out = {0};
	assert_int_equal(sigv4_query(pairs, 5, &out), 0);
	assert_string_equal(str_text(&out), "A=1&a=%C3%A9%2F%20%2B&a=z&a-b=&b=2");
	str_release(&out);
	assert_int_equal(sigv4_query(pairs, SIGV4_PAIRS_MAX + 1, &out), -EINVAL);
}

static void test_uri(void **state)
{
	static const char all[] = "AZaz09-._~/ \x01\x7f\xff%";
	static const struct {
		const char *text, *want;
		int code;
	} decoded[] = {
		{"a%2Fb", "a/b", 0},	   {"a+b%2B", "a b+", 0},
		{"%e9%E9", "\xe9\xe9", 0}, {"", "", 0},
		{"%", NULL, -EINVAL},	   {"a%2", NULL, -EINVAL},
		{"%2g", NULL, -EINVAL},	   {"a%00b", NULL, -EILSEQ},
	};
	auto_str struct str out = {0};
	char text[64];
	uri_encode(&out, all, sizeof(all) - 1, true);
	assert_string_equal(str_text(&out), "AZaz09-._~/%20%01%7F%FF%25");
	assert_int_equal(uri_decode(str_text(&out), out.b.len, text), 0);
	assert_string_equal(text, all);
	for (size_t i = 0; i < sizeof(decoded) / sizeof(decoded[0]); i++) {
		int rc = uri_decode(decoded[i].text, strlen(decoded[i].text), text);
		assert_int_equal(rc, decoded[i].code);
		if (rc == 0)
			assert_string_equal(text, decoded[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_s3_examples), cmocka_unit_test(test_suite_example),
		cmocka_unit_test(test_date),	    cmocka_unit_test(test_query_order),
		cmocka_unit_test(test_uri),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
