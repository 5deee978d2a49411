/* SPDX-License-Identifier: Apache-2.0 */
/* The hints that precede the service's own message. */
#include "store_fixture.h"

#include "s3/error_hints.h"

static void assert_hint(const struct s3_refusal *r, const char *want)
{
	auto_str struct str got = {0};
	s3_error_hint(r, &got);
	assert_string_equal(str_text(&got), want);
}

static void test_codes(void **state)
{
	static const struct {
		long status;
		const char *code;
		bool is_signed;
		const char *owner, *want;
	} cases[] = {
		{403, "SignatureDoesNotMatch", true, NULL,
		 "the secret access key is wrong; check the credentials"},
		{403, "InvalidAccessKeyId", true, NULL,
		 "the service does not know the access key; check credentials and endpoint"},
		{400, "ExpiredToken", true, NULL,
		 "the credentials have expired; log in again or get new ones"},
		{403, "ExpiredToken", true, NULL,
		 "the credentials have expired; log in again or get new ones"},
		{400, "InvalidToken", true, NULL,
		 "the session token is wrong; log in again or get a new one"},
		{301, "PermanentRedirect", true, NULL,
		 "the bucket is at another endpoint; use -o endpoint or -o region"},
		{403, "AccessDenied", true, NULL,
		 "the credentials do not allow listing the bucket; check the policy"},
		{403, "AccessDenied", true, "123",
		 "the credentials do not allow listing the bucket, or account 123 does not own it; "
		 "check the policy and -o bucket_owner"},
		{403, "AccessDenied", false, NULL, "the bucket is not public; use credentials"},
		{403, "", true, NULL,
		 "the credentials do not allow listing the bucket; check the policy"},
		{403, "SomethingNew", true, NULL, ""},
		{500, "", true, NULL, ""},
		{0, "", true, NULL, ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct s3_refusal r = {.status = cases[i].status,
					     .code = cases[i].code,
					     .is_signed = cases[i].is_signed,
					     .owner = cases[i].owner};
		assert_hint(&r, cases[i].want);
	}
}

/* Ceph sends only AccessDenied if a session has expired. */
static void test_sessions(void **state)
{
	const struct s3_refusal r = {
		.status = 403, .code = "AccessDenied", .is_signed = true, .of_session = true};
	assert_hint(
		&r,
		"the credentials do not allow listing the bucket, or their session has expired; "
		"check the policy or log in again");
}

static void test_trust(void **state)
{
	const struct s3_refusal r = {.untrusted = true, .code = "", .is_signed = true};
	assert_hint(&r, "the server's certificate is not valid; check endpoint and ca_bundle");
}

static void test_clocks(void **state)
{
	enum { NOW = 1000000000 };
	static const struct {
		int64_t our_time, server_time;
		const char *want;
	} cases[] = {
		{NOW + 1200, NOW, "the clock of this machine is 20 minutes ahead; set it"},
		{NOW + 1229, NOW, "the clock of this machine is 20 minutes ahead; set it"},
		{NOW, NOW + 1201, "the clock of this machine is 20 minutes behind; set it"},
		{NOW + 7199, NOW, "the clock of this machine is 120 minutes ahead; set it"},
		{NOW + 7200, NOW, "the clock of this machine is 2 hours ahead; set it"},
		{NOW, NOW + 172799, "the clock of this machine is 48 hours behind; set it"},
		{NOW, NOW + 864000, "the clock of this machine is 10 days behind; set it"},
		{NOW, 0, "the clock of this machine is wrong; set it"},
		{0, NOW, "the clock of this machine is wrong; set it"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct s3_refusal r = {.status = 403,
					     .code = "RequestTimeTooSkewed",
					     .is_signed = true,
					     .our_time = cases[i].our_time,
					     .server_time = cases[i].server_time};
		assert_hint(&r, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_trust),
		cmocka_unit_test(test_clocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
