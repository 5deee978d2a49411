/* SPDX-License-Identifier: Apache-2.0 */
/* The errno of each status and code; times and ETags in AWS's formats. */
#include "store_fixture.h"

#include <time.h>

#include "s3/etag.h"
#include "s3/status.h"
#include <aws/time.h>

static void test_rows(void **state)
{
	static const struct {
		long status;
		const char *code;
		int want;
	} cases[] = {
		{200, "", 0},
		{204, "", 0},
		{206, "", 0},
		{304, "", -EALREADY},
		{307, "", -EAGAIN},
		{301, "PermanentRedirect", -EIO},
		{400, "", -EIO},
		{401, "", -EACCES},
		{403, "", -EACCES},
		{404, "", -ENOENT},
		{408, "", -EAGAIN},
		{409, "", -EAGAIN},
		{412, "", -ESTALE},
		{413, "", -EFBIG},
		{416, "", -ERANGE},
		{425, "", -EAGAIN},
		{429, "", -EAGAIN},
		{500, "", -EAGAIN},
		{501, "", -ENOSYS},
		{502, "", -EAGAIN},
		{503, "", -EAGAIN},
		{504, "", -EAGAIN},
		{507, "", -ENOSPC},
		{509, "", -EAGAIN},
		{0, "", -EIO},
		{999, "", -EIO},
		{503, "SlowDown", -EAGAIN},
		{200, "InternalError", -EAGAIN},
		{200, "ServiceUnavailable", -EAGAIN},
		{400, "RequestTimeout", -EAGAIN},
		{409, "OperationAborted", -EAGAIN},
		{409, "ConditionalRequestConflict", -EAGAIN},
		{400, "BadDigest", -EAGAIN},
		{400, "XAmzContentSHA256Mismatch", -EAGAIN},
		{400, "XAmzContentChecksumMismatch", -EAGAIN},
		{404, "NoSuchKey", -ENOENT},
		{404, "NoSuchBucket", -EIO},
		{403, "AccessDenied", -EACCES},
		{400, "ExpiredToken", -EACCES},
		{400, "InvalidToken", -EACCES},
		{403, "RequestTimeTooSkewed", -EACCES},
		{400, "AuthorizationHeaderMalformed", -EACCES},
		{403, "InvalidObjectState", -EIO},
		{400, "EntityTooLarge", -EFBIG},
		{400, "KeyTooLongError", -ENAMETOOLONG},
		{403, "QuotaExceeded", -ENOSPC},
		{404, "SomethingNew", -ENOENT},
		{400, "SomethingNew", -EIO},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (s3_status_errno(cases[i].status, cases[i].code) != cases[i].want)
			fail_msg("%ld %s", cases[i].status, cases[i].code);
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t iso, http;
	} cases[] = {
		{"2009-10-12T17:50:30.000Z", 1255369830, 0},
		{"2009-10-12T17:50:30Z", 1255369830, 0},
		{"Mon, 12 Oct 2009 17:50:30 GMT", 0, 1255369830},
		{"2009-13-12T17:50:30.000Z", 0, 0},
		{"2009-10-12T25:50:30.000Z", 0, 0},
		{"Mon, 12 anF 2009 17:50:30 GMT", 0, 0},
		{"Mon, 12 Oct 0009 17:50:30 GMT", 0, 0},
		{"2262-01-01T00:00:00Z", 0, 0},
		{"2261-12-31T23:59:59Z", 9214646399, 0},
		{"Mon, 2 Feb 2009 7:50:30 GMT", 0, 1233561030},
		{"Mon 12 Oct 2009 17:50:30 GMT", 0, 0},
		{"Mon, 12 Oct 2009 17:50", 0, 0},
		{"Mo", 0, 0},
		{"2009-10-12T17:50:", 0, 0},
		{"2009-1x-12T17:50:30", 0, 0},
		{"soon", 0, 0},
		{"", 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(s3_time_iso(cases[i].text), cases[i].iso);
		assert_int_equal(s3_time_http(cases[i].text), cases[i].http);
	}
}

/* Each day from 1970 to 2261, at another time of day. */
static void test_all_days(void **state)
{
	enum { DAY = 86400, DAYS = 106651, STEP = DAY + 4711 };
	for (time_t t = 0; t < (time_t)DAYS * DAY; t += STEP) {
		char iso[64], http[64];
		struct tm tm;
		assert_non_null(gmtime_r(&t, &tm));
		assert_true(strftime(iso, sizeof(iso), "%Y-%m-%dT%H:%M:%S.123Z", &tm));
		assert_true(strftime(http, sizeof(http), "%a, %d %b %Y %H:%M:%S GMT", &tm));
		assert_int_equal(s3_time_iso(iso), t);
		assert_int_equal(s3_time_http(http), t);
	}
}

static void test_etags(void **state)
{
	char long_one[2 * STORE_ETAG_MAX], etag[STORE_ETAG_MAX];
	static const struct {
		const char *text, *want;
		bool md5;
	} cases[] = {
		{"\"d41d8cd98f00b204e9800998ecf8427e\"", "d41d8cd98f00b204e9800998ecf8427e", true},
		{"W/\"d41d8cd98f00b204e9800998ecf8427e\"", "d41d8cd98f00b204e9800998ecf8427e",
		 true},
		{"d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e", true},
		{"\"d41d8cd98f00b204e9800998ecf8427e-2\"", "d41d8cd98f00b204e9800998ecf8427e-2",
		 false},
		{"\"D41D8CD98F00B204E9800998ECF8427E\"", "D41D8CD98F00B204E9800998ECF8427E", false},
		{"\"\"", "", false},
		{"\"a\r\nX: y\"", "", false},
		{"\"a\x7f\"", "", false},
		{"\"", "\"", false},
		{"", "", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s3_etag_read(cases[i].text, etag);
		assert_string_equal(etag, cases[i].want);
		assert_int_equal(s3_etag_is_md5(etag), cases[i].md5);
	}
	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	s3_etag_read(long_one, etag);
	assert_string_equal(etag, "");
}

static void test_retry_after(void **state)
{
	static const int64_t now = 1255369830; /* Mon, 12 Oct 2009 17:50:30 GMT */
	static const struct {
		const char *text;
		unsigned int ms;
	} cases[] = {
		{"0", 0},
		{"1", 1000},
		{"19", 19000},
		{"20", 20000},
		{"3600", 20000},
		{"99999999999999999999", 20000},
		{"Mon, 12 Oct 2009 17:50:33 GMT", 3000},
		{"Mon, 12 Oct 2009 18:50:30 GMT", 20000},
		{"Mon, 12 Oct 2009 17:50:30 GMT", 0},
		{"Sun, 11 Oct 2009 17:50:30 GMT", 0},
		{"", 0},
		{"-1", 0},
		{"5 s", 0},
		{"soon", 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (s3_time_after(cases[i].text, now, 20000) != cases[i].ms)
			fail_msg("'%s'", cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	    cmocka_unit_test(test_times),
		cmocka_unit_test(test_all_days),    cmocka_unit_test(test_etags),
		cmocka_unit_test(test_retry_after),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
