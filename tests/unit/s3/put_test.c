/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of a put, for each status of the server. */
#include "server_fixture.h"

/* 404 (no such bucket) and 501 (not implemented) say nothing about the object. */
static void test_failures(void **state)
{
	static const struct {
		unsigned int status;
		int code;
	} cases[] = {{404, -EIO}, {501, -EIO}, {403, -EACCES}, {412, -ESTALE}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server = {.status = {cases[i].status}};
		struct err err = ERR_INIT;
		server_start(&server);
		server_open(&server, f, STORE_S3_VERIFY_AUTO);
		const int code = call_put(f->s, "x", "12", 2, NULL, NULL, &err);
		if (code != cases[i].code || err.code != code)
			fail_msg("%u: %d %s", cases[i].status, code, err.msg);
		fixture_free(f);
		server_stop(&server);
	}
}

/* The MD5 in the ETag of the answer is not that of the bytes that were sent. If the request was
 * signed, the server has compared the SHA-256 of the body. */
static void test_damage(void **state)
{
	static const struct {
		enum store_s3_verify verify;
		bool is_signed;
		int code;
	} cases[] = {
		{STORE_S3_VERIFY_AUTO, false, -EAGAIN},	 {STORE_S3_VERIFY_AUTO, true, 0},
		{STORE_S3_VERIFY_ALWAYS, true, -EAGAIN}, {STORE_S3_VERIFY_NEVER, false, 0},
		{STORE_S3_VERIFY_NEVER, true, 0},
	};
	setenv("AWS_ACCESS_KEY_ID", "key", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server = {.status = {200},
					.is_signed = cases[i].is_signed,
					.header = "ETag: \"d41d8cd98f00b204e9800998ecf8427e\"\r\n"};
		server_start(&server);
		server_open(&server, f, cases[i].verify);
		assert_int_equal(call_put(f->s, "x", "12", 2, NULL, NULL, NULL), cases[i].code);
		fixture_free(f);
		server_stop(&server);
	}
}

/* A server that refuses the test of its conditions. If it does not support one (501), the store
 * compares by a HEAD before and after the PUT. */
static void test_server_without_conditions(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"}, version = {.if_match = "v"},
				       other = {.if_match = "w"};
	static const struct {
		const struct store_cond *cond;
		unsigned int status[6]; /* of PUT and HEAD in turn, the object has the ETag "v" */
		int code;
		unsigned int requests;
	} cases[] = {
		{&absent, {501, 404, 200, 200}, 0, 4},
		{&absent, {501, 200}, -EEXIST, 2},
		{&absent, {501, 404, 200, 404}, -ESTALE, 4},
		{&absent, {501, 403}, -EACCES, 2},
		{&absent, {412}, -EEXIST, 1},
		{&version, {200}, 0, 1},
		{&version, {501, 200, 200, 200}, 0, 4},
		{&version, {404}, -ESTALE, 1},
		{&version, {412}, -ESTALE, 1},
		{&other, {501, 200}, -ESTALE, 2},
		{&version, {501, 200, 403}, -EACCES, 3},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server = {.header = "ETag: \"v\"\r\n"};
		memcpy(server.status, cases[i].status, sizeof(server.status));
		server_start(&server);
		server_open(&server, f, STORE_S3_VERIFY_AUTO);
		const int code = call_put(f->s, "x", "12", 2, cases[i].cond, NULL, NULL);
		fixture_free(f);
		server_stop(&server);
		if (code != cases[i].code || server.answered != cases[i].requests)
			fail_msg("%zu: %d, %u requests", i, code, server.answered);
	}
}

/* The PUT was carried out, but the HEAD that follows it fails, or shows another object. Its error
 * is not one of a PUT that has changed nothing. */
static void test_a_put_that_cannot_be_confirmed(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"};
	static const struct {
		unsigned int status[6]; /* of PUT, HEAD, PUT and HEAD */
		int code;
		bool repeated;
	} cases[] = {
		{{501, 404, 200, 200}, 0, false},	{{501, 404, 200, 403}, -EACCES, true},
		{{501, 404, 200, 500}, -EAGAIN, true},	{{501, 404, 200, 404}, -ESTALE, true},
		{{501, 404, 403, 403}, -EACCES, false}, {{501, 403}, -EACCES, false},
	};
	const struct piece piece = {"12", 2};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server = {.header = "ETag: \"v\"\r\n"};
		memcpy(server.status, cases[i].status, sizeof(server.status));
		server_start(&server);
		server_open(&server, f, STORE_S3_VERIFY_AUTO);
		struct store_request *req = store_request_new(f->s, STORE_PUT);
		store_request_key(req, "x");
		req->pieces = &piece;
		req->n_pieces = 1;
		req->cond = absent;
		store_run(f->s, req);
		const int code = req->answer.err.code;
		if (code != cases[i].code || req->answer.repeated != cases[i].repeated)
			fail_msg("%zu: %d, %d", i, code, req->answer.repeated);
		store_request_free(req);
		fixture_free(f);
		server_stop(&server);
	}
}

/* Only the status and the code of a refusal show that a PUT has put nothing. */
static void test_a_put_that_is_refused(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"};
	static const struct {
		unsigned int status;
		const char *code;
		bool refused;
	} cases[] = {
		{503, "SlowDown", true},
		{409, "ConditionalRequestConflict", true},
		{409, "OperationAborted", true},
		{503, "ServiceUnavailable", false},
		{503, "", false},
		{500, "InternalError", false},
		{500, "SlowDown", false},
		{400, "RequestTimeout", false},
	};
	const struct piece piece = {"12", 2};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		char body[128];
		snprintf(body, sizeof(body), "<Error><Code>%s</Code></Error>", cases[i].code);
		struct server server = {.status = {cases[i].status, 412}, .body = body};
		server_start(&server);
		server_open(&server, f, STORE_S3_VERIFY_AUTO);
		struct store_request *req = store_request_new(f->s, STORE_PUT);
		store_request_key(req, "x");
		req->pieces = &piece;
		req->n_pieces = 1;
		req->cond = absent;
		store_run(f->s, req);
		assert_int_equal(req->answer.err.code, -EAGAIN);
		if (req->answer.refused != cases[i].refused)
			fail_msg("%zu: %d", i, req->answer.refused);
		/* The same document with another status is no refusal of this kind. */
		store_run(f->s, req);
		assert_false(req->answer.refused);
		store_request_free(req);
		fixture_free(f);
		server_stop(&server);
	}
}

/* A HEAD says 404, but a listing names the object: it is not replaced. */
static void test_lying_head(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"};
	struct fixture *f = fixture_new(1);
	struct server server = {
		.status = {501, 404, 200},
		.contents = "<Contents><Key>x</Key><Size>2</Size><ETag>\"v\"</ETag>"
			    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"};
	server_start(&server);
	server_open(&server, f, STORE_S3_VERIFY_AUTO);
	assert_int_equal(call_put(f->s, "x", "12", 2, &absent, NULL, NULL), -EEXIST);
	fixture_free(f);
	server_stop(&server);
	assert_int_equal(server.answered, 2);
}

/* The connection ends after the put was received, and libcurl sends it again: the refusal may be
 * due to the first one. Later ones are not. */
static void test_a_put_that_is_sent_twice(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"};
	const struct piece piece = {"12", 2};
	struct fixture *f = fixture_new(1);
	struct server server = {.status = {412}};
	server_start(&server);
	server_open(&server, f, STORE_S3_VERIFY_AUTO);
	auto_request struct store_request *req = store_request_new(f->s, STORE_PUT);
	for (int i = 0; i < 3; i++) {
		/* The connection of the HEAD ends with the PUT that follows. */
		server.dies = i == 1;
		if (i == 1)
			assert_int_equal(call_head(f->s, "x", NULL, NULL), -ESTALE);
		store_request_key(req, "x");
		req->pieces = &piece;
		req->n_pieces = 1;
		req->cond = absent;
		store_run(f->s, req);
		assert_int_equal(req->answer.err.code, -EEXIST);
		assert_int_equal(req->answer.repeated, i == 1);
	}
	fixture_free(f);
	server_stop(&server);
}

/* The note is a header, beside that of a condition; the signature covers it. */
static void test_note(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"};
	setenv("AWS_ACCESS_KEY_ID", "key", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	for (int i = 0; i < 4; i++) {
		const struct store_cond *cond = i & 1 ? &absent : NULL;
		struct fixture *f = fixture_new(1);
		struct server server = {.status = {200}, .is_signed = i & 2};
		server_start(&server);
		server_open(&server, f, STORE_S3_VERIFY_AUTO);
		assert_int_equal(call_put_note(f->s, "x", NULL, "why: 1 %", cond, NULL), 0);
		assert_non_null(
			strstr(server.head, "\r\nx-amz-meta-hsmount-kept: why%3A%201%20%25\r\n"));
		assert_int_equal(strstr(server.head, ";x-amz-meta-hsmount-kept,") != NULL, i / 2);
		assert_int_equal(strstr(server.head, "\r\nif-none-match: *\r\n") != NULL, i & 1);
		assert_int_equal(call_put(f->s, "x", "12", 2, cond, NULL, NULL), 0);
		assert_null(strstr(server.head, "x-amz-meta"));
		fixture_free(f);
		server_stop(&server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_server_without_conditions),
		cmocka_unit_test(test_a_put_that_cannot_be_confirmed),
		cmocka_unit_test(test_a_put_that_is_refused),
		cmocka_unit_test(test_lying_head),
		cmocka_unit_test(test_a_put_that_is_sent_twice),
		cmocka_unit_test(test_note),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
