/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of credentials that end, or that a server doubts. */
#include "cred_fixture.h"

/* Renewed in the last five minutes; kept while they are valid, whatever the service says. */
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
		{end - 280, NULL, 0, "CA", 2}, /* not again so soon */
		{end - 100, NULL, 0, "CA", 3},	       {end, NULL, -EIO, NULL, 4},
		{end, second, -EIO, NULL, 4}, /* that was known already */
		{end + 1, second, 0, "CA2", 5},	       {end + 100, NULL, 0, "CA2", 5},
		{end + 3600, first, -EACCES, NULL, 6}, /* the service is stuck */
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
	/* The server says that they are over before their time. */
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

/* A service that has nothing newer is not asked for each request, and a server that calls what is
 * new over is not believed twice. */
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

/* Each source gives newer ones when it is asked again: with the token, the file, the session that
 * it has by then. */
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
		int64_t later;	  /* when the first ones are over */
		const char *seen; /* in the last request */
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
		/* STS gives the same end here: that is over. */
		assert_int_equal(rc, i == 1 ? -EACCES : 0);
		if (!strstr(world->last, sources[i].seen))
			fail_msg("%s: %s", sources[i].name, world->last);
		if (rc == 0)
			cred_release(&cred);
		credentials_free(c);
	}
}

/* Whoever asks for an object must not be told that the object is not there, or has no name, when it
 * is the credentials that are not. */
static void test_failures_are_not_the_objects(void **state)
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
		{NULL, NULL, NULL, NULL, -EIO, "nobody answers"},
		{NULL, NULL, NULL, broken, -EACCES, "status 500"},
		{"AWS_CONFIG_FILE", keys, "", NULL, -EACCES, "none any more"},
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
		/* Who comes within that second is told the same. */
		assert_int_equal(credentials_get(c, &cred, NULL), cases[i].code);
		credentials_free(c);
	}
}

static void test_lasting_keys_do_not_expire(void **state)
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

/* Keys of a session whose end no file tells: who logs in again writes others there. */
static void test_session_without_an_end(void **state)
{
	struct world *world = *state;
	set(world, "AWS_SHARED_CREDENTIALS_FILE", file(world, SESSION_FILE("1")));
	struct credentials *c = credentials_new(&world->w, NULL);
	assert_true(credentials_expired(c, "AK1"));
	assert_access_key(c, "AK1");
	/* Those were the same: for a while they are not read again. */
	assert_false(credentials_expired(c, "AK1"));
	file(world, SESSION_FILE("2"));
	world->now += 30;
	assert_true(credentials_expired(c, "AK1"));
	assert_access_key(c, "AK2");
	assert_true(credentials_expired(c, "AK1")); /* a request that was on its way */
	assert_access_key(c, "AK2");
	credentials_free(c);
	/* Nobody can log in to our environment. */
	set(world, "AWS_ACCESS_KEY_ID", "AK");
	set(world, "AWS_SECRET_ACCESS_KEY", "SK");
	set(world, "AWS_SESSION_TOKEN", "T");
	c = credentials_new(&world->w, NULL);
	assert_false(credentials_expired(c, "AK"));
	credentials_free(c);
}

/* A server that denies something may mean that the session is over. Nothing is given up for that.
 */
static void test_doubts(void **state)
{
	static const struct answer service[] = {
		{"http://169.254.170.2/c", 200, SERVICE_BODY("2011-09-09T02:46:40Z")}};
	struct world *world = *state;
	set(world, "AWS_SHARED_CREDENTIALS_FILE", file(world, SESSION_FILE("1")));
	struct credentials *c = credentials_new(&world->w, NULL);
	assert_true(credentials_doubted(c, "AK1"));
	assert_true(credentials_doubted(c, "AK1")); /* nobody has looked yet */
	assert_access_key(c, "AK1");
	assert_false(credentials_doubted(c, "AK1"));
	file(world, SESSION_FILE("2"));
	assert_access_key(c, "AK1");
	world->now += 30;
	assert_true(credentials_doubted(c, "AK1"));
	assert_access_key(c, "AK2");
	assert_true(credentials_doubted(c, "AK1")); /* a request that was on its way */
	file(world, "[default]\naws_access_key_id=AK3\n");
	world->now += 30;
	assert_true(credentials_doubted(c, "AK2"));
	assert_access_key(c, "AK2");
	assert_false(credentials_doubted(c, "AK2"));
	credentials_free(c);
	/* Whose end is known are renewed in time, and the environment stays as it is. */
	set(world, "AWS_SHARED_CREDENTIALS_FILE", "/nowhere");
	set(world, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
	world->answers = service;
	world->n_answers = 1;
	c = credentials_new(&world->w, NULL);
	assert_false(credentials_doubted(c, "CA"));
	credentials_free(c);
	set(world, "AWS_ACCESS_KEY_ID", "AK");
	set(world, "AWS_SECRET_ACCESS_KEY", "SK");
	set(world, "AWS_SESSION_TOKEN", "T");
	c = credentials_new(&world->w, NULL);
	assert_false(credentials_doubted(c, "AK"));
	credentials_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_renewal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_newer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_source_renews, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures_are_not_the_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lasting_keys_do_not_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_without_an_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doubts, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
