/* SPDX-License-Identifier: Apache-2.0 */
/* The renewal of credentials that expire, and of credentials that a server rejects. */
#include "cred_fixture.h"

/* Credentials are renewed in their last five minutes. If that fails, they are used until they
 * expire. */
static void test_renewal(void **state)
{
	static const struct answer first[] = {
		{"http://169.254.170.2/c", 200, SERVICE_BODY("2001-09-09T02:46:40Z")}};
	static const struct answer second[] = {
		{"http://169.254.170.2/c", 200,
		 "{\"AccessKeyId\":\"CA2\",\"SecretAccessKey\":\"CS2\",\"Token\":\"CT2\","
		 "\"Expiration\":\"2001-09-09T03:46:40Z\"}"}};
	static const int64_t end = 1000003600;
	struct world *world = *state;
	struct cred cred;
	set(world, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
	world->answers = first;
	world->n_answers = 1;
	struct credentials *c = credentials_new(&world->w, NULL);
	assert_non_null(c);
	const struct {
		int64_t now;
		const struct answer *answers;
		int code;
		const char *key;
		unsigned int fetches;
	} steps[] = {
		{end - 301, NULL, 0, "CA", 1},	       {end - 300, NULL, 0, "CA", 2},
		{end - 280, NULL, 0, "CA", 2}, /* within 30 s of the last attempt */
		{end - 100, NULL, 0, "CA", 3},	       {end, NULL, -EIO, NULL, 4},
		{end, second, -EIO, NULL, 4}, /* within the second of the failure */
		{end + 1, second, 0, "CA2", 5},	       {end + 100, NULL, 0, "CA2", 5},
		{end + 3600, first, -EACCES, NULL, 6}, /* the service returns expired credentials */
	};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		world->now = steps[i].now;
		world->answers = steps[i].answers;
		world->n_answers = steps[i].answers ? 1 : 0;
		assert_int_equal(credentials_get(c, &cred, NULL), steps[i].code);
		assert_int_equal(world->fetches, steps[i].fetches);
		if (steps[i].code == 0) {
			assert_string_equal(str_text(&cred.access_key), steps[i].key);
			cred_release(&cred);
		}
	}
	/* The server rejects credentials as expired before their expiry time. */
	world->now = end + 100;
	assert_int_equal(credentials_get(c, &cred, NULL), 0);
	cred_release(&cred);
	assert_true(credentials_expired(c, "CA2"));
	world->answers = second;
	assert_int_equal(credentials_get(c, &cred, NULL), 0);
	assert_int_equal(world->fetches, 7);
	cred_release(&cred);
	credentials_free(c);
}

/* If the service has nothing newer, it is called once in 30 s, not for each request. If a server
 * rejects new credentials as expired, they are not renewed again at once. */
static void test_nothing_newer(void **state)
{
	static const struct answer same[] = {
		{"http://169.254.170.2/c", 200, SERVICE_BODY("2001-09-09T02:46:40Z")}};
	static const int64_t end = 1000003600;
	struct world *world = *state;
	set(world, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
	world->answers = same;
	world->n_answers = 1;
	struct credentials *c = credentials_new(&world->w, NULL);
	assert_non_null(c);
	for (world->now = end - 200; world->now < end - 110; world->now++) {
		struct cred cred;
		assert_int_equal(credentials_get(c, &cred, NULL), 0);
		cred_release(&cred);
	}
	assert_int_equal(world->fetches, 1 + 3); /* at -200, -170 and -140 */
	world->now = end - 130;
	assert_false(credentials_expired(c, "CA"));
	world->now = end - 110;
	assert_true(credentials_expired(c, "CA"));
	assert_true(credentials_expired(c, "older"));
	credentials_free(c);
}

/* A renewal uses the current token, file and session, not those of the first call. */
static void test_every_source_renews(void **state)
{
	static const char imds[] =
		"http://169.254.169.254/latest/meta-data/iam/security-credentials/";
	static const struct answer first[] = {
		{"http://169.254.169.254/latest/api/token", 200, "SESSION-1"},
		{"http://169.254.169.254/latest/meta-data/iam/security-credentials/role", 200,
		 SERVICE_BODY("2001-09-09T02:46:40Z")},
		{imds, 200, "role"},
		{"https://sts.", 200, STS_BODY("AssumeRoleWithWebIdentity")},
	};
	static const struct answer second[] = {
		{"http://169.254.169.254/latest/api/token", 200, "SESSION-2"},
		{"http://169.254.169.254/latest/meta-data/iam/security-credentials/other", 200,
		 SERVICE_BODY("2011-09-09T02:46:40Z")},
		{imds, 200, "other"},
		{"https://sts.", 200, STS_BODY("AssumeRoleWithWebIdentity")},
	};
	static const struct {
		const char *name;
		int64_t later;	  /* when the first credentials have expired */
		const char *seen; /* a part of the last request */
	} sources[] = {
		{"instance", 1000003600, "SESSION-2"},
		{"web identity", 1255369830, "WebIdentityToken=second"},
	};
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		struct world *world = *state;
		struct cred cred;
		world->now = 1000000000;
		world->answers = first;
		world->n_answers = 4;
		if (i == 1) {
			set(world, "AWS_WEB_IDENTITY_TOKEN_FILE", file(world, "first"));
			set(world, "AWS_ROLE_ARN", "arn");
		}
		struct credentials *c = credentials_new(&world->w, NULL);
		assert_non_null(c);
		world->answers = second;
		world->now = sources[i].later;
		if (i == 1)
			file(world, "second");
		const int rc = credentials_get(c, &cred, NULL);
		/* The answer of STS has the same end as before, so it has expired. */
		assert_int_equal(rc, i == 1 ? -EACCES : 0);
		if (!strstr(world->last, sources[i].seen))
			fail_msg("%s: %s", sources[i].name, world->last);
		if (rc == 0)
			cred_release(&cred);
		credentials_free(c);
	}
}

/* A failed renewal is never an error that says that an object does not exist or has a bad name. */
static void test_errors_say_nothing_of_objects(void **state)
{
#define ENDS "2001-09-09T02:46:40Z"
	static const struct answer services[] = {
		{"http://169.254.169.254/latest/api/token", 200, "SESSION"},
		{"http://169.254.169.254/latest/meta-data/iam/security-credentials/r", 200,
		 SERVICE_BODY(ENDS)},
		{"http://169.254.169.254/latest/meta-data/iam/security-credentials/", 200, "r"},
	};
	static const struct answer broken[] = {
		{"http://169.254.169.254/latest/api/token", 500, ""}};
	static const char keys[] = "[default]\ncredential_process = echo '{\"AccessKeyId\":\"A\","
				   "\"SecretAccessKey\":\"S\",\"Expiration\":\"" ENDS "\"}'\n";
	static const struct {
		const char *variable, *text, *later;
		const struct answer *answers; /* later */
		int code;
		const char *words;
	} cases[] = {
		{NULL, NULL, NULL, NULL, -EIO, "no answer"},
		{NULL, NULL, NULL, broken, -EACCES, "status 500"},
		{"AWS_CONFIG_FILE", keys, "", NULL, -EACCES,
		 "their source has no credentials any more"},
		{"AWS_CONFIG_FILE", keys, "[default]\ncredential_process = echo\n", NULL, -EACCES,
		 "no credentials"},
	};
#undef ENDS
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world *world = *state;
		struct cred cred;
		struct err err = ERR_INIT;
		world->now = 1000000000;
		world->answers = services;
		world->n_answers = 3;
		if (cases[i].variable)
			set(world, cases[i].variable, file(world, cases[i].text));
		struct credentials *c = credentials_new(&world->w, NULL);
		assert_non_null(c);
		if (cases[i].later)
			file(world, cases[i].later);
		world->answers = cases[i].answers;
		world->n_answers = cases[i].answers ? 1 : 0;
		world->now = 1000003600;
		assert_int_equal(credentials_get(c, &cred, &err), cases[i].code);
		assert_int_equal(err.code, cases[i].code);
		if (!strstr(err.msg, cases[i].words))
			fail_msg("%zu: %s", i, err.msg);
		/* A second call in the same second fails likewise. */
		assert_int_equal(credentials_get(c, &cred, NULL), cases[i].code);
		credentials_free(c);
	}
}

static void test_permanent_keys_do_not_expire(void **state)
{
	struct world *world = *state;
	set(world, "AWS_ACCESS_KEY_ID", "AK");
	set(world, "AWS_SECRET_ACCESS_KEY", "SK");
	struct credentials *c = credentials_new(&world->w, NULL);
	assert_false(credentials_expired(c, "AK"));
	credentials_free(c);
}

static void assert_access_key(struct credentials *c, const char *want)
{
	auto_cred struct cred cred = {0};
	assert_int_equal(credentials_get(c, &cred, NULL), 0);
	assert_string_equal(str_text(&cred.access_key), want);
}

#define SESSION_FILE(n)                                                                            \
	"[default]\naws_access_key_id=AK" n "\naws_secret_access_key=SK" n                         \
	"\naws_session_token=T" n "\n"

/* Session keys in a shared file, which does not say when they expire. A new login replaces them. */
static void test_session_without_an_end(void **state)
{
	struct world *world = *state;
	set(world, "AWS_SHARED_CREDENTIALS_FILE", file(world, SESSION_FILE("1")));
	struct credentials *c = credentials_new(&world->w, NULL);
	assert_true(credentials_expired(c, "AK1"));
	assert_access_key(c, "AK1");
	/* The file had not changed, so it is not reread for 30 s. */
	assert_false(credentials_expired(c, "AK1"));
	file(world, SESSION_FILE("2"));
	world->now += 30;
	assert_true(credentials_expired(c, "AK1"));
	assert_access_key(c, "AK2");
	assert_true(credentials_expired(c, "AK1")); /* a request that was sent before */
	assert_access_key(c, "AK2");
	credentials_free(c);
	/* The environment of a process does not change. */
	set(world, "AWS_ACCESS_KEY_ID", "AK");
	set(world, "AWS_SECRET_ACCESS_KEY", "SK");
	set(world, "AWS_SESSION_TOKEN", "T");
	c = credentials_new(&world->w, NULL);
	assert_false(credentials_expired(c, "AK"));
	credentials_free(c);
}

/* If a server denies a request, the session may have expired. The credentials are reread, and kept
 * if there are no others. */
static void test_denied_requests(void **state)
{
	static const struct answer service[] = {
		{"http://169.254.170.2/c", 200, SERVICE_BODY("2011-09-09T02:46:40Z")}};
	struct world *world = *state;
	set(world, "AWS_SHARED_CREDENTIALS_FILE", file(world, SESSION_FILE("1")));
	struct credentials *c = credentials_new(&world->w, NULL);
	assert_true(credentials_denied(c, "AK1"));
	assert_true(credentials_denied(c, "AK1")); /* they have not been reread yet */
	assert_access_key(c, "AK1");
	assert_false(credentials_denied(c, "AK1"));
	file(world, SESSION_FILE("2"));
	assert_access_key(c, "AK1");
	world->now += 30;
	assert_true(credentials_denied(c, "AK1"));
	assert_access_key(c, "AK2");
	assert_true(credentials_denied(c, "AK1")); /* a request that was sent before */
	file(world, "[default]\naws_access_key_id=AK3\n");
	world->now += 30;
	assert_true(credentials_denied(c, "AK2"));
	assert_access_key(c, "AK2");
	assert_false(credentials_denied(c, "AK2"));
	credentials_free(c);
	/* Credentials whose end is known are renewed in time, and an environment does not change.
	 */
	set(world, "AWS_SHARED_CREDENTIALS_FILE", "/nowhere");
	set(world, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
	world->answers = service;
	world->n_answers = 1;
	c = credentials_new(&world->w, NULL);
	assert_false(credentials_denied(c, "CA"));
	credentials_free(c);
	set(world, "AWS_ACCESS_KEY_ID", "AK");
	set(world, "AWS_SECRET_ACCESS_KEY", "SK");
	set(world, "AWS_SESSION_TOKEN", "T");
	c = credentials_new(&world->w, NULL);
	assert_false(credentials_denied(c, "AK"));
	credentials_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_renewal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_newer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_source_renews, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors_say_nothing_of_objects, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_permanent_keys_do_not_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_without_an_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_denied_requests, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
