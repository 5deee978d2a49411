/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an upload: what is sent, how many at once, and which parts are sent again. */
#include "parts_fixture.h"

enum { PART = 16 << 20, SIZE = 4 * PART + 5, N = 5 };

struct upload {
	struct parts_server server;
	struct fixture *f;
	struct patterned body;
	struct err err;
};

static void start(struct upload *u, enum store_s3_verify verify)
{
	u->f = fixture_new(2);
	u->err = (struct err)ERR_INIT;
	u->server.n = N;
	u->server.size = SIZE;
	patterned_init(&u->body, SIZE);
	parts_start(&u->server);
	parts_open(&u->server, u->f, verify);
}

static int put(struct upload *u)
{
	return call_put_source(u->f->s, "x", &u->body.source, true, NULL, NULL, &u->err);
}

static void stop(struct upload *u)
{
	fixture_free(u->f);
	parts_stop(&u->server);
}

static void test_all_parts_are_sent(void **state)
{
	struct upload u = {.server = {.holds_first = true}};
	start(&u, STORE_S3_VERIFY_NEVER);
	if (put(&u))
		fail_msg("%s", u.err.msg);
	stop(&u);
	assert_int_equal(u.server.requests[UPLOAD_PART], N);
	for (unsigned int i = 0; i < N; i++) {
		assert_int_equal(u.server.length[i], i + 1 < N ? PART : 5);
		assert_int_equal(u.server.first_byte[i], patterned_byte((uint64_t)i * PART));
	}
	assert_in_range(u.server.most, 2, 4);
	assert_int_equal(u.server.requests[UPLOAD_END], 1);
	assert_int_equal(u.server.requests[UPLOAD_ABORT], 0);
}

/* Pieces that do not end where the parts end. */
static void test_pieces(void **state)
{
	struct upload u = {0};
	start(&u, STORE_S3_VERIFY_NEVER);
	auto_free uint8_t *bytes = malloc(SIZE);
	patterned_fill(bytes, 0, SIZE);
	const struct piece pieces[] = {{bytes, 7}, {NULL, 0}, {bytes + 7, SIZE - 7}};
	auto_request struct store_request *req = store_request_new(u.f->s, STORE_PUT);
	store_request_key(req, "x");
	req->pieces = pieces;
	req->n_pieces = 3;
	req->in_parts = true;
	store_run(u.f->s, req);
	assert_int_equal(req->answer.state, STORE_PRESENT);
	stop(&u);
	for (unsigned int i = 0; i < N; i++) {
		assert_int_equal(u.server.length[i], i + 1 < N ? PART : 5);
		assert_int_equal(u.server.first_byte[i], patterned_byte((uint64_t)i * PART));
	}
}

/* A part that fails for the moment is sent again, alone. A failure that lasts ends the upload, and
 * the parts are removed. */
static void test_failures(void **state)
{
	static const struct {
		unsigned int status, first, last;
		int code;
		unsigned int parts; /* requests; 0: any number */
	} cases[] = {
		{503, 2, 2, 0, N + 1},	 {503, 1, 7, 0, N + 7}, {503, 3, 999, -EAGAIN, 0},
		{403, 2, 2, -EACCES, 0}, {404, 1, 1, -EIO, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct upload u = {.server = {.fails = UPLOAD_PART,
					      .status = cases[i].status,
					      .first = cases[i].first,
					      .last = cases[i].last}};
		start(&u, STORE_S3_VERIFY_NEVER);
		const int rc = put(&u);
		stop(&u);
		if (rc != cases[i].code)
			fail_msg("%zu: %d %s", i, rc, u.err.msg);
		if (cases[i].parts)
			assert_int_equal(u.server.requests[UPLOAD_PART], cases[i].parts);
		assert_int_equal(u.server.requests[UPLOAD_END], rc == 0);
		assert_int_equal(u.server.requests[UPLOAD_ABORT], rc != 0);
	}
}

/* The source fails in the middle: nothing is stored, and nothing is repeated. */
static void test_source_fails(void **state)
{
	struct upload u = {0};
	start(&u, STORE_S3_VERIFY_NEVER);
	u.body.fail_at = 3 * PART;
	u.body.code = -EBADMSG;
	u.f->s = store_retry_new(u.f->s, NULL, NULL);
	assert_int_equal(put(&u), -EBADMSG);
	stop(&u);
	assert_int_equal(u.body.failures, 1);
	assert_int_equal(u.server.requests[UPLOAD_END], 0);
	assert_int_equal(u.server.requests[UPLOAD_ABORT], 1);
	assert_non_null(strstr(u.err.msg, "the pattern is torn"));
}

/* The MD5 in the ETag of a part is not that of its bytes. */
static void test_damage(void **state)
{
	struct upload u = {0};
	start(&u, STORE_S3_VERIFY_AUTO);
	assert_int_equal(put(&u), -EAGAIN);
	stop(&u);
	assert_non_null(strstr(u.err.msg, "other bytes in part"));
	assert_int_equal(u.server.requests[UPLOAD_ABORT], 1);
}

/* The server does not answer. The parts in flight end nevertheless, and no more are sent. */
static void test_cancelled(void **state)
{
	atomic_bool cancelled = false;
	struct upload u = {.server = {.cancels = &cancelled}};
	start(&u, STORE_S3_VERIFY_NEVER);
	auto_request struct store_request *req = store_request_new(u.f->s, STORE_PUT);
	store_request_key(req, "x");
	req->body = &u.body.source;
	req->in_parts = true;
	req->cancelled = cancelled_by(&cancelled);
	store_run(u.f->s, req);
	const int rc = store_failure(&req->answer, &u.err);
	parts_release(&u.server);
	stop(&u);
	assert_false(u.server.waited_out);
	assert_int_equal(rc, -ECANCELED);
	assert_in_range(u.server.requests[UPLOAD_PART], 1, 4);
	assert_int_equal(u.server.requests[UPLOAD_END], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_parts_are_sent),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_source_fails),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_cancelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
