/* SPDX-License-Identifier: Apache-2.0 */
/* The requests around the parts of an upload: conditions, the last request, and lost answers. */
#include "parts_fixture.h"

enum { SIZE = (64 << 20) + 5, N = 5 };

struct result {
	int code;
	struct store_meta meta;
	struct err err;
};

static struct result put(struct parts_server *server, const struct store_cond *cond)
{
	struct fixture *f = fixture_new(2);
	struct result r = {.err = ERR_INIT};
	struct patterned body;
	server->n = N;
	server->size = SIZE;
	patterned_init(&body, SIZE);
	parts_start(server);
	parts_open(server, f, STORE_S3_VERIFY_NEVER);
	r.code = call_put_source(f->s, "x", &body.source, true, cond, &r.meta, &r.err);
	fixture_free(f);
	parts_stop(server);
	return r;
}

/* The last request is repeated after a temporary failure. If it has made the object although its
 * answer says otherwise, the ETag of the object shows it. */
static void test_last_request(void **state)
{
	static const struct {
		unsigned int status, first, last;
		bool loses_end;
		int code;
		unsigned int ends, heads;
	} cases[] = {
		{503, 1, 1, false, 0, 2, 0},	   {503, 1, 3, true, 0, 4, 0},
		{503, 1, 999, true, 0, 8, 1},	   {503, 1, 999, false, -EAGAIN, 8, 1},
		{403, 1, 1, false, -EACCES, 1, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parts_server server = {.fails = UPLOAD_END,
					      .status = cases[i].status,
					      .first = cases[i].first,
					      .last = cases[i].last,
					      .loses_end = cases[i].loses_end};
		const struct result r = put(&server, NULL);
		if (r.code != cases[i].code || server.requests[UPLOAD_END] != cases[i].ends ||
		    server.requests[UPLOAD_HEAD] != cases[i].heads)
			fail_msg("%zu: %d, %u, %u: %s", i, r.code, server.requests[UPLOAD_END],
				 server.requests[UPLOAD_HEAD], r.err.msg);
		assert_int_equal(server.requests[UPLOAD_PART], N);
		assert_int_equal(server.requests[UPLOAD_ABORT], r.code != 0);
		if (r.code == 0)
			assert_int_equal(r.meta.size, SIZE);
	}
}

/* The object exists. It is ours only if an earlier attempt can have made it. */
static void test_condition(void **state)
{
	static const struct {
		struct store_cond cond;
		uint64_t size;
		int code;
	} cases[] = {
		{{.if_none_match = "*"}, SIZE, -EEXIST},
		{{.if_none_match = "*", .retried = true}, SIZE, 0},
		{{.if_match = "other"}, SIZE, -ESTALE},
		{{.if_match = "other", .retried = true}, SIZE, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parts_server server = {.exists = true};
		const struct result r = put(&server, &cases[i].cond);
		if (r.code != cases[i].code)
			fail_msg("%zu: %d %s", i, r.code, r.err.msg);
		assert_int_equal(server.requests[UPLOAD_END], 0);
		assert_int_equal(server.requests[UPLOAD_ABORT], 1);
	}
}

static int put_marked(struct store *s, const char *mark, const struct store_cond *cond,
		      struct store_answer *answer)
{
	struct patterned body;
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	patterned_init(&body, SIZE);
	store_request_key(req, "x");
	req->body = &body.source;
	req->in_parts = true;
	req->mark = mark;
	req->cond = *cond;
	store_run(s, req);
	*answer = req->answer;
	return req->answer.err.code;
}

/* A service that checks the conditions of the last request: no HEAD is necessary, unless the
 * condition fails. Then the mark shows whose object it is. */
static void test_checked_condition(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"},
				       other = {.if_match = "other"};
	static const struct {
		bool exists;
		const char *of; /* the mark of the object; "": the service drops it */
		const struct store_cond *cond;
		int code;
		unsigned int heads;
	} cases[] = {
		{false, "", &absent, 0, 0},	 {true, "foreign", &absent, -EEXIST, 1},
		{true, "own", &absent, 0, 1},	 {true, "foreign", &other, -ESTALE, 1},
		{false, "", &other, -ESTALE, 1}, {true, "own", &other, 0, 1},
		{true, "", &absent, -EEXIST, 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(2);
		struct parts_server server = {.n = N,
					      .size = SIZE,
					      .checks = true,
					      .exists = cases[i].exists,
					      .drops_marks = cases[i].exists && !cases[i].of[0]};
		struct store_answer answer;
		strcpy(server.mark, cases[i].of);
		parts_start(&server);
		parts_open(&server, f, STORE_S3_VERIFY_NEVER);
		assert_int_equal(put_marked(f->s, "own", cases[i].cond, &answer), cases[i].code);
		fixture_free(f);
		parts_stop(&server);
		assert_int_equal(server.conditions, 1);
		assert_int_equal(server.requests[UPLOAD_HEAD], cases[i].heads);
		if (cases[i].code == 0)
			assert_int_equal(answer.meta.size, SIZE);
	}
}

/* A service that does not: a HEAD before and after the last request. */
static void test_compared_condition(void **state)
{
	static const struct store_cond absent = {.if_none_match = "*"};
	struct fixture *f = fixture_new(2);
	struct parts_server server = {.n = N, .size = SIZE};
	struct store_answer answer;
	parts_start(&server);
	parts_open(&server, f, STORE_S3_VERIFY_NEVER);
	assert_int_equal(put_marked(f->s, "own", &absent, &answer), 0);
	fixture_free(f);
	parts_stop(&server);
	assert_int_equal(server.conditions, 0);
	assert_int_equal(server.requests[UPLOAD_HEAD], 2);
}

static void test_note(void **state)
{
	struct fixture *f = fixture_new(2);
	struct parts_server server = {.n = N, .size = SIZE};
	struct patterned body;
	patterned_init(&body, SIZE);
	parts_start(&server);
	parts_open(&server, f, STORE_S3_VERIFY_NEVER);
	assert_int_equal(call_put_note(f->s, "x", &body.source, "why", NULL, NULL), 0);
	fixture_free(f);
	parts_stop(&server);
	assert_int_equal(server.requests[UPLOAD_PART], N);
	assert_int_equal(server.notes, 1);
}

/* A server that refuses to begin. */
static void test_begin_fails(void **state)
{
	struct parts_server server = {.fails = UPLOAD_BEGIN, .status = 403, .first = 1, .last = 1};
	const struct result r = put(&server, NULL);
	assert_int_equal(r.code, -EACCES);
	assert_int_equal(server.requests[UPLOAD_PART] + server.requests[UPLOAD_ABORT], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_request),
		cmocka_unit_test(test_condition),
		cmocka_unit_test(test_checked_condition),
		cmocka_unit_test(test_compared_condition),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_begin_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
