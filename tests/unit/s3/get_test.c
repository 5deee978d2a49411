/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies are compared with the CRC or the MD5 of the answer. */
#include "server_fixture.h"

#define MD5	"ETag: \"25f9e794323b453885f5181f1b624d0b\"\r\n" /* of "123456789" */
#define BAD_MD5 "ETag: \"25f9e794323b453885f5181f1b624d0c\"\r\n"
#define CRC	"x-amz-checksum-crc32c: 4waSgw==\r\n"
#define BAD_CRC "x-amz-checksum-crc32c: 4waSfw==\r\n"
#define PARTS	"x-amz-checksum-crc32c: AAAAAA==-3\r\n"
#define KMS	"x-amz-server-side-encryption: aws:kms\r\n"
#define KEY	"x-amz-server-side-encryption-customer-algorithm: AES256\r\n"
#define S3_KEY	"x-amz-server-side-encryption: AES256\r\n"

static void test_damage(void **state)
{
	static const struct {
		const char *header;
		enum store_s3_verify verify;
		const char *message; /* NULL: no error */
	} cases[] = {
		{MD5 CRC, STORE_S3_VERIFY_AUTO, NULL},
		{BAD_MD5, STORE_S3_VERIFY_AUTO,
		 "GET x: the body is damaged (MD5 25f9e794323b453885f5181f1b624d0b, "
		 "ETag 25f9e794323b453885f5181f1b624d0c)"},
		{BAD_MD5, STORE_S3_VERIFY_ALWAYS, "GET x: the body is damaged (MD5 "},
		{BAD_MD5 S3_KEY, STORE_S3_VERIFY_AUTO, "GET x: the body is damaged (MD5 "},
		{MD5 BAD_CRC, STORE_S3_VERIFY_AUTO,
		 "GET x: the body is damaged (CRC e3069283, expected "},
		{BAD_MD5 BAD_CRC, STORE_S3_VERIFY_NEVER, NULL},
		{BAD_MD5 CRC, STORE_S3_VERIFY_ALWAYS, NULL}, /* the CRC has precedence */
		{BAD_MD5 PARTS, STORE_S3_VERIFY_AUTO, "GET x: the body is damaged (MD5 "},
		{BAD_MD5 KMS, STORE_S3_VERIFY_ALWAYS, NULL},
		{BAD_MD5 KEY, STORE_S3_VERIFY_ALWAYS, NULL},
		{"ETag: \"a-2\"\r\n", STORE_S3_VERIFY_ALWAYS, NULL},
		{"", STORE_S3_VERIFY_ALWAYS, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server = {
			.status = {200}, .header = cases[i].header, .body = "123456789"};
		struct err err = ERR_INIT;
		struct call_result res = {0};
		server_start(&server);
		server_open(&server, f, cases[i].verify);
		const int code = call_get(f->s, "x", 0, UINT64_MAX, 0, NULL, &res, &err);
		const bool right = cases[i].message
					   ? code == -EAGAIN && strstr(err.msg, cases[i].message)
					   : code == 0 && res.body.len == 9;
		if (!right)
			fail_msg("%zu: %d %s", i, code, err.msg);
		bytes_release(&res.body);
		fixture_free(f);
		server_stop(&server);
	}
}

#define KEPT "x-amz-meta-hsmount-kept: "

/* The note comes with every answer, and may be anything. */
static void test_note(void **state)
{
	static const struct {
		const char *header, *note;
	} cases[] = {
		{"", ""},
		{KEPT "it%20is%20damaged\r\n", "it is damaged"},
		{"X-Amz-Meta-Hsmount-Kept:a\r\n", "a"},
		{KEPT "it is damaged\r\n", ""},
		{KEPT "%1B%5B2J\r\n", ""},
		{KEPT "%FF\r\n", ""},
		{KEPT "a%0Ab\r\n", ""},
		{KEPT "%00\r\n", ""},
		{KEPT "%2\r\n", ""},
		{KEPT "good\r\n" KEPT "\x1b[2J\r\n", ""},
		{"x-amz-meta-kept: a\r\n", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server = {.status = {200}, .header = cases[i].header};
		struct err err = ERR_INIT;
		struct call_result res = {0};
		char note[STORE_NOTE_MAX + 1];
		server_start(&server);
		server_open(&server, f, STORE_S3_VERIFY_NEVER);
		if (call_note(f->s, "x", note, &err) || strcmp(note, cases[i].note) != 0)
			fail_msg("%zu: %s %s", i, note, err.msg);
		assert_int_equal(strncmp(server.head, "HEAD ", 5), 0);
		assert_int_equal(call_get(f->s, "x", 0, UINT64_MAX, 0, NULL, &res, NULL), 0);
		assert_true(res.has_note);
		assert_string_equal(res.note, cases[i].note);
		bytes_release(&res.body);
		fixture_free(f);
		server_stop(&server);
	}
}

/* An answer that fails has none. */
static void test_no_note(void **state)
{
	struct fixture *f = fixture_new(1);
	struct server server = {.status = {403}, .header = KEPT "a\r\n"};
	char note[STORE_NOTE_MAX + 1];
	server_start(&server);
	server_open(&server, f, STORE_S3_VERIFY_NEVER);
	assert_int_equal(call_note(f->s, "x", note, NULL), -EACCES);
	assert_string_equal(note, "");
	fixture_free(f);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_no_note),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
