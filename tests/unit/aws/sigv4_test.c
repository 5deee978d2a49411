/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures and canonical forms, compared with the examples that AWS publishes. */
#include "store_fixture.h"

#include <aws/sigv4.h>
#include <aws/uri.h>
#include <base/hex.h>

static const char empty_hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/* 2013-05-24T00:00:00Z, the time of the S3 examples; 2015-08-30T12:36:00Z, that of the others. */
static const int64_t s3_time = 1369353600, suite_time = 1440938160;

static void check_signature(const struct sigv4_request *req, const struct sigv4_key *key,
			    int64_t when, const char *want)
{
	auto_str struct str out = {0};
	struct sigv4_signer *signer = sigv4_signer_new();
	assert_non_null(signer);
	/* The second signature is made with the key that the signer has kept. */
	for (int again = 0; again < 2; again++) {
		str_release(&out);
		assert_int_equal(sigv4_authorization(signer, req, key, when, &out), 0);
	}
	sigv4_signer_free(signer);
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

static void sign_with(struct sigv4_signer *signer, const struct sigv4_key *key, int64_t when,
		      char hex[SHA256_HEX])
{
	static const struct sigv4_pair header[] = {{"Host", "example.amazonaws.com"},
						   {"X-Amz-Date", "20150830T123600Z"}};
	const struct sigv4_request req = {"GET", "/", NULL, header, 0, 2, empty_hash};
	auto_str struct str out = {0};
	assert_int_equal(sigv4_authorization(signer, &req, key, when, &out), 0);
	const char *at = strstr(str_text(&out), "Signature=");
	assert_non_null(at);
	assert_int_equal(strlen(at), strlen("Signature=") + SHA256_HEX - 1);
	strcpy(hex, at + strlen("Signature="));
}

/* A signer keeps a signing key. It uses it only for the day, secret, region and service that it was
 * derived from. */
static void test_kept_key(void **state)
{
	enum { DAY = 86400, CASES = 6 };
	const int64_t midnight = suite_time / DAY * DAY;
	static const char suite_secret[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
	const struct {
		struct sigv4_key key;
		int64_t when;
	} cases[CASES] = {
		{{"AKIDEXAMPLE", suite_secret, "us-east-1", "service"}, suite_time},
		{{"AKIDEXAMPLE", suite_secret, "us-east-1", "service"}, midnight + DAY},
		{{"AKIDEXAMPLE", suite_secret, "us-east-1", "service"}, midnight - 1},
		{{"AKIDEXAMPLE", suite_secret, "us-east-2", "service"}, suite_time},
		{{"AKIDEXAMPLE", suite_secret, "us-east-1", "s3"}, suite_time},
		{{"AKIDEXAMPLE", "another secret", "us-east-1", "service"}, suite_time},
	};
	char want[CASES][SHA256_HEX], got[SHA256_HEX];
	for (size_t i = 0; i < CASES; i++) {
		struct sigv4_signer *fresh = sigv4_signer_new();
		sign_with(fresh, &cases[i].key, cases[i].when, want[i]);
		sigv4_signer_free(fresh);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(want[i], want[j]);
	}
	assert_string_equal(want[0],
			    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
	struct sigv4_signer *signer = sigv4_signer_new();
	for (size_t i = 0; i < CASES; i++)
		for (size_t j = 0; j < CASES; j++) {
			sign_with(signer, &cases[i].key, cases[i].when, got);
			assert_string_equal(got, want[i]);
			sign_with(signer, &cases[j].key, cases[j].when, got);
			assert_string_equal(got, want[j]);
		}
	sigv4_signer_free(signer);
}

/* RFC 4231, test cases 1, 2 and 6: the last key is longer than a block. And the digest of nothing.
 */
static void test_digests(void **state)
{
	uint8_t bytes[131], mac[SHA256_SIZE];
	char hex[SHA256_HEX];
	static const char hi[] = "Hi There", jefe[] = "what do ya want for nothing?",
			  larger[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	const struct {
		struct piece key, text;
		uint8_t fill;
		const char *want;
	} cases[] = {
		{{bytes, 20},
		 {hi, sizeof(hi) - 1},
		 0x0b,
		 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{{"Jefe", 4},
		 {jefe, sizeof(jefe) - 1},
		 0,
		 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{{bytes, sizeof(bytes)},
		 {larger, sizeof(larger) - 1},
		 0xaa,
		 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	};
	struct sha256 *sha = sha256_new();
	assert_non_null(sha);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(bytes, cases[i].fill, sizeof(bytes));
		assert_int_equal(sha256_hmac(sha, cases[i].key, cases[i].text, mac), 0);
		hex_encode(mac, sizeof(mac), hex);
		assert_string_equal(hex, cases[i].want);
	}
	assert_int_equal(digest_sha256(NULL, 0, hex), 0);
	assert_string_equal(hex, empty_hash);
	assert_int_equal(sha256_digest(sha, NULL, 0, mac), 0);
	hex_encode(mac, sizeof(mac), hex);
	assert_string_equal(hex, empty_hash);
	sha256_free(sha);
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
		cmocka_unit_test(test_kept_key),    cmocka_unit_test(test_digests),
		cmocka_unit_test(test_date),	    cmocka_unit_test(test_query_order),
		cmocka_unit_test(test_uri),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
