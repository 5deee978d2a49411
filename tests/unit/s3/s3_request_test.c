/* SPDX-License-Identifier: Apache-2.0 */
/* The interpretation of answers. */
#include "store_fixture.h"

#include "s3/s3_internal.h"

#define ERROR_OF(code) "<Error><Code>" code "</Code><Message>no</Message></Error>"

#define KEY_OF(key) "<Error><Code>NoSuchKey</Code><Key>" key "</Key></Error>"

static void test_not_there(void **state)
{
	static const struct {
		const char *method;
		enum http_method metered;
		long status;
		const char *body;
		int code;
	} cases[] = {
		{"GET", HTTP_GET, 404, ERROR_OF("NoSuchKey"), -ENOENT},
		{"GET", HTTP_GET, 404, ERROR_OF("SomethingNew"), S3_UNPROVEN},
		/* a status that contradicts the code */
		{"GET", HTTP_GET, 400, ERROR_OF("NoSuchKey"), S3_UNPROVEN},
		{"GET", HTTP_GET, 502, ERROR_OF("NoSuchKey"), S3_UNPROVEN},
		{"GET", HTTP_GET, 404, ERROR_OF("NoSuchBucket"), -EIO},
		{"GET", HTTP_GET, 404, "", S3_UNPROVEN},
		/* keys that XML does not allow */
		{"GET", HTTP_GET, 404, KEY_OF("a\x01"), -ENOENT},
		{"GET", HTTP_GET, 404, KEY_OF("a&#x1;"), -ENOENT},
		{"GET", HTTP_GET, 404, KEY_OF("a\xff"), -ENOENT},
		{"HEAD", HTTP_HEAD, 404, "", S3_UNPROVEN},
		/* the page of a proxy */
		{"GET", HTTP_GET, 404, "default backend - 404", S3_UNPROVEN},
		{"GET", HTTP_GET, 404, "<html><body>Not Found</body></html>", S3_UNPROVEN},
		/* not about an object */
		{"GET", HTTP_LIST, 404, "<html><body>Not Found</body></html>", -ENOENT},
		{"GET", HTTP_GET, 403, "<html><body>Forbidden</body></html>", -EACCES},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_store s = {0};
		struct err err = ERR_INIT;
		struct s3_request call = {
			.http = {.end = HTTP_ANSWERED,
				 .status = cases[i].status,
				 .metered = cases[i].metered},
			.s = &s,
			.method = cases[i].method,
			.what = "key",
			.answer.is_heard = true,
		};
		assert_int_equal(
			bytes_append(&call.http.answer, cases[i].body, strlen(cases[i].body)), 0);
		const int code = s3_request_judge(&call, NULL, &err);
		const int expected = code == S3_UNPROVEN ? -ENOENT : code;
		if (code != cases[i].code || err.code != expected || !strstr(err.msg, " key: "))
			fail_msg("%zu: %d %s", i, code, err.msg);
		s3_request_release(&call);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
