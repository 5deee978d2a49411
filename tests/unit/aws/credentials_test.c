/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of providers: the sources of credentials. */
#include "cred_fixture.h"

static void test_environment(void **state)
{
	struct world *world = *state;
	assert_none(world, -ENOENT, "no AWS credentials");
	set(world, "AWS_ACCESS_KEY_ID", "AK");
	assert_none(world, -EINVAL, "AWS_SECRET_ACCESS_KEY");
	set(world, "AWS_SECRET_ACCESS_KEY", "SK");
	assert_keys(world, "AK", "SK", "");
	set(world, "AWS_SESSION_TOKEN", "T");
	assert_keys(world, "AK", "SK", "T");
}

static void test_profiles(void **state)
{
	struct world *world = *state;
	set(world, "AWS_SHARED_CREDENTIALS_FILE",
	    file(world, "[default]\naws_access_key_id=AK\naws_secret_access_key=SK\n"
			"[two]\naws_access_key_id=AK2\naws_secret_access_key=SK2\n"
			"aws_session_token=T2\n[half]\naws_access_key_id=AK\n"));
	assert_keys(world, "AK", "SK", "");
	set(world, "AWS_PROFILE", "two");
	assert_keys(world, "AK2", "SK2", "T2");
	set(world, "AWS_PROFILE", "half");
	assert_none(world, -EINVAL, "half");
	set(world, "AWS_PROFILE", "absent");
	assert_none(world, -EINVAL, "absent");
	/* The environment comes before a profile, unless an option names the profile. */
	set(world, "AWS_ACCESS_KEY_ID", "ENV");
	set(world, "AWS_SECRET_ACCESS_KEY", "ENV");
	assert_keys(world, "ENV", "ENV", "");
	world->w.profile = "two";
	assert_keys(world, "AK2", "SK2", "T2");
}

/* Credentials that only the AWS CLI can read: the message says how to use them. */
static void test_logins(void **state)
{
	static const char *const keys[] = {"sso_session = s", "sso_start_url = https://x/start",
					   "login_session = arn:aws:iam::1:user/u"};
	struct world *world = *state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text),
			 "[profile lab]\n%s\n[profile b]\nrole_arn=r\n"
			 "source_profile=lab\n",
			 keys[i]);
		set(world, "AWS_CONFIG_FILE", file(world, text));
		set(world, "AWS_PROFILE", "lab");
		assert_none(world, -EINVAL, "aws configure export-credentials --profile lab");
		set(world, "AWS_PROFILE", "b");
		assert_none(world, -EINVAL, "aws configure export-credentials --profile lab");
	}
}

/* systemd starts services without HOME. */
static int fake_home(const struct aws_environment *w, struct str *out)
{
	const struct world *world = w->ctx;
	str_add(out, world->f->dir);
	return 0;
}

static void test_home(void **state)
{
	static const char keys[] = "[default]\naws_access_key_id=AK\naws_secret_access_key=SK\n";
	struct world *world = *state;
	char path[128];
	snprintf(path, sizeof(path), "%s/.aws", world->f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/credentials");
	write_file(path, keys);
	assert_none(world, -ENOENT, "no AWS credentials");
	world->w.home = fake_home;
	assert_keys(world, "AK", "SK", "");
	set(world, "HOME", "/nowhere");
	assert_none(world, -ENOENT, "no AWS credentials");
}

/* A command that does not need the directory also runs if the directory is gone. */
static void test_directory_that_is_gone(void **state)
{
	struct world *world = *state;
	world->w.directory = "/nowhere";
	set(world, "AWS_CONFIG_FILE", file(world, "[default]\ncredential_process = echo '{}'\n"));
	assert_none(world, -EINVAL, "the answer contains no credentials");
}

static void test_process(void **state)
{
	struct world *world = *state;
	static const struct {
		const char *config;
		int code; /* 0, or an error whose message contains `words` */
		const char *words;
	} cases[] = {
		{"[default]\ncredential_process = echo '{\"Version\":1,\"AccessKeyId\":\"PA\","
		 "\"SecretAccessKey\":\"PS\",\"SessionToken\":\"PT\"}'\n",
		 0, ""},
		{"[default]\ncredential_process = echo '{}'\n", -EINVAL, "no credentials"},
		{"[default]\ncredential_process = echo secret-words\n", -EINVAL, "no credentials"},
		{"[default]\ncredential_process = exit 3\n", -EACCES, "status 3"},
		{"[default]\ncredential_process = kill -9 $$\n", -EACCES, "signal 9"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set(world, "AWS_CONFIG_FILE", file(world, cases[i].config));
		if (cases[i].code)
			assert_none(world, cases[i].code, cases[i].words);
		else
			assert_keys(world, "PA", "PS", "PT");
	}
}

/* Relative paths are relative to the directory in which the program was started. */
static void test_relative_paths(void **state)
{
	struct world *world = *state;
	file(world,
	     "# {\"AccessKeyId\":\"PA\",\"SecretAccessKey\":\"PS\",\"SessionToken\":\"PT\"}\n"
	     "[default]\ncredential_process = sed -n 's/^# //p' file\n");
	set(world, "AWS_CONFIG_FILE", "file");
	assert_none(world, -ENOENT, "no AWS credentials");
	world->w.directory = world->f->dir;
	assert_keys(world, "PA", "PS", "PT");
}

static uint64_t time_slept(const struct env *env)
{
	const struct fixture *f = env->ctx;
	return atomic_load(&f->slept_ns);
}

/* A command that closes its output and does not end. */
static void test_process_without_end(void **state)
{
	struct world *world = *state;
	world->f->env.now = time_slept;
	set(world, "AWS_CONFIG_FILE",
	    file(world, "[default]\ncredential_process = echo '{\"AccessKeyId\":\"A\","
			"\"SecretAccessKey\":\"S\"}'; exec >&-; exec sleep 5\n"));
	assert_none(world, -ETIMEDOUT, "credential_process");
}

static void test_role(void **state)
{
	static const struct answer answers[] = {
		{"https://sts.eu-west-1.amazonaws.com/", 200, STS_BODY("AssumeRole")}};
	struct world *world = *state;
	world->answers = answers;
	world->n_answers = 1;
	set(world, "AWS_PROFILE", "role");
	set(world, "AWS_CONFIG_FILE",
	    file(world, "[profile base]\naws_access_key_id=BA\naws_secret_access_key=BS\n"
			"[profile role]\nrole_arn=arn:aws:iam::1:role/a b\nsource_profile=base\n"
			"region=eu-west-1\nexternal_id=e+x\n"));
	assert_keys(world, "RA", "RS", "RT");
	assert_non_null(strstr(world->last, "Credential=BA/20010909/eu-west-1/sts/aws4_request"));
	assert_non_null(strstr(world->last, "Action=AssumeRole&"));
	assert_non_null(strstr(world->last, "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%20b&"));
	assert_non_null(strstr(world->last, "ExternalId=e%2Bx"));
	assert_null(strstr(world->last, "BS"));
	/* A service other than Amazon's. */
	static const struct answer other[] = {
		{"https://sts.example.org/", 200, STS_BODY("AssumeRole")}};
	world->answers = other;
	set(world, "AWS_CONFIG_FILE",
	    file(world, "[profile base]\naws_access_key_id=BA\naws_secret_access_key=BS\n"
			"[profile role]\nrole_arn=r\nsource_profile=base\nservices=uni\n"
			"[services uni]\nsts =\n  endpoint_url = https://sts.example.org\n"));
	assert_keys(world, "RA", "RS", "RT");
}

/* A service that is busy for three requests is a temporary failure, not a refusal. */
static void test_busy_role_service(void **state)
{
	static const struct answer busy[] = {{"https://sts.", 503, "busy"}};
	struct world *world = *state;
	world->answers = busy;
	world->n_answers = 1;
	set(world, "AWS_PROFILE", "role");
	set(world, "AWS_CONFIG_FILE",
	    file(world, "[profile role]\nrole_arn=r\nsource_profile=role\naws_access_key_id=A\n"
			"aws_secret_access_key=S\n"));
	assert_none(world, -EIO, "status 503");
}

static void test_bad_roles(void **state)
{
	static const struct answer refused[] = {
		{"https://sts.", 403,
		 "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error>"
		 "</ErrorResponse>"}};
	static const struct {
		const char *config, *words;
		int code;
	} cases[] = {
		{"[profile role]\nrole_arn=r\n", "neither", -EINVAL},
		{"[profile role]\nrole_arn=r\nsource_profile=b\n[profile b]\nrole_arn=r\n"
		 "source_profile=role\n",
		 "circle", -ELOOP},
		{"[profile role]\nrole_arn=r\nsource_profile=absent\n", "absent", -EINVAL},
		{"[profile role]\nrole_arn=r\ncredential_source=Moon\n", "Moon", -EINVAL},
		{"[profile role]\nrole_arn=r\nsource_profile=role\naws_access_key_id=A\n"
		 "aws_secret_access_key=S\n",
		 "not you", -EACCES},
	};
	struct world *world = *state;
	world->answers = refused;
	world->n_answers = 1;
	set(world, "AWS_PROFILE", "role");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set(world, "AWS_CONFIG_FILE", file(world, cases[i].config));
		assert_none(world, cases[i].code, cases[i].words);
	}
}

static void test_web_identity(void **state)
{
	static const struct answer answers[] = {{"https://sts.eu-west-1.amazonaws.com/", 200,
						 STS_BODY("AssumeRoleWithWebIdentity")}};
	struct world *world = *state;
	world->answers = answers;
	world->n_answers = 1;
	set(world, "AWS_WEB_IDENTITY_TOKEN_FILE", file(world, "a.b.c"));
	set(world, "AWS_ROLE_ARN", "arn");
	set(world, "AWS_REGION", "eu-west-1");
	assert_keys(world, "RA", "RS", "RT");
	assert_non_null(strstr(world->last, "WebIdentityToken=a.b.c"));
	assert_null(strstr(world->last, "Authorization"));
}

static void test_container(void **state)
{
	static const struct answer answers[] = {
		{"http://169.254.170.2/creds", 200, SERVICE_BODY("2009-10-12T17:50:30Z")},
		{"http://localhost:80/", 200, SERVICE_BODY("2009-10-12T17:50:30Z")},
		{"https://anywhere/", 200, SERVICE_BODY("2009-10-12T17:50:30Z")}};
	static const struct {
		const char *url;
		bool ok;
	} urls[] = {
		{"http://localhost:80/x", true},
		{"https://anywhere/x", true},
		{"http://anywhere/x", false},
		{"http://localhost.evil.example/x", false},
		{"http://localhost@evil.example/", false},
		{"http://127.0.0.1.evil.example/x", false},
		{"http://169.254.170.20/x", false},
		{"file:///etc/passwd", false},
	};
	struct world *world = *state;
	world->answers = answers;
	world->n_answers = 3;
	set(world, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "tok\r\nX-Evil: 1");
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		set(world, "AWS_CONTAINER_CREDENTIALS_FULL_URI", urls[i].url);
		if (urls[i].ok)
			assert_keys(world, "CA", "CS", "CT");
		else
			assert_none(world, -EACCES, "neither loopback");
	}
	assert_string_equal(world->last, "Authorization: tok\n");
	set(world, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/creds");
	assert_keys(world, "CA", "CS", "CT");
	assert_string_equal(world->last_url, "http://169.254.170.2/creds");
}

static void test_instance(void **state)
{
	static const char base[] =
		"http://169.254.169.254/latest/meta-data/iam/security-credentials/";
	static const struct answer answers[] = {
		{"http://169.254.169.254/latest/api/token", 200, "IMDS-TOKEN"},
		{"http://169.254.169.254/latest/meta-data/iam/security-credentials/role", 200,
		 SERVICE_BODY("2009-10-12T17:50:30Z")},
		{"http://169.254.169.254/latest/meta-data/iam/security-credentials/", 200,
		 "role\n"}};
	struct world *world = *state;
	world->answers = answers;
	world->n_answers = 3;
	assert_keys(world, "CA", "CS", "CT");
	assert_string_equal(world->last, "X-aws-ec2-metadata-token: IMDS-TOKEN\n");
	assert_true(strncmp(world->last_url, base, strlen(base)) == 0);
	set(world, "AWS_EC2_METADATA_DISABLED", "true");
	assert_none(world, -ENOENT, "no AWS credentials");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_profiles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_logins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_home, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directory_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_relative_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_process_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_role, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_role_service, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_roles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_web_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container, setup, teardown),
		cmocka_unit_test_setup_teardown(test_instance, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
