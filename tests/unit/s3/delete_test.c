/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a delete, for each status of the server. */
#include "server_fixture.h"

#define NO_KEY "<Error><Code>NoSuchKey</Code></Error>"
#define DENIED "<Error><Code>AccessDenied</Code></Error>"

struct delete_case {
	const struct store_cond *cond; /* the object has the ETag "v" */
	unsigned int status[3];	       /* of the requests for the object in turn */
	const char *body;
	int code;
};

static void run(const struct delete_case *c)
{
	struct fixture *f = fixture_new(1);
	struct server server = {.header = "ETag: \"v\"\r\n", .body = c->body};
	struct err err = ERR_INIT;
	memcpy(server.status, c->status, sizeof(c->status));
	server_start(&server);
	server_open(&server, f, STORE_S3_VERIFY_AUTO);
	const int code = call_delete(f->s, "x", c->cond, &err);
	fixture_free(f);
	server_stop(&server);
	if (code != c->code || err.code != code)
		fail_msg("%u %u: %d %s", c->status[0], c->status[1], code, err.msg);
}

/* An object that is not there is as good as one that was deleted. */
static void test_deleted(void **state)
{
	static const struct store_cond version = {.if_match = "v"};
	static const struct delete_case cases[] = {
		{NULL, {204}, "", 0},	       {NULL, {200}, "", 0},
		{NULL, {404}, NO_KEY, 0},      {&version, {200, 204}, "", 0},
		{&version, {404, 204}, "", 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run(&cases[i]);
}

/* The object is still there, or may be. */
static void test_refused(void **state)
{
	static const struct store_cond version = {.if_match = "v"}, other = {.if_match = "w"};
	static const struct delete_case cases[] = {
		{NULL, {403}, DENIED, -EACCES},
		{NULL, {400}, "", -EIO},
		{NULL, {405}, "", -EIO},
		{NULL, {500}, "", -EAGAIN},
		{NULL, {503}, "", -EAGAIN},
		{&version, {200, 403}, "", -EACCES},
		{&version, {200, 500}, "", -EAGAIN},
		{&version, {403, 403}, "", -EACCES},
		{&other, {200, 204}, "", -ESTALE},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run(&cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
