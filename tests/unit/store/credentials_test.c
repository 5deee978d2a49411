/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of providers in a world of its own: environment, clock, files and services are ours. */
#include "fixture.h"

#include "cred_provider.h"

enum { VARIABLES = 16 };

struct answer {
	const char *url; /* prefix */
	long status;
	const char *body;
};

struct world {
	struct fixture *f;
	struct cred_world w;
	const char *variables[VARIABLES]; /* NAME, value, … */
	const struct answer *answers;	  /* the first whose url fits */
	size_t n_answers;
	int64_t now;
	unsigned int fetches;
	char last[2048]; /* headers and body of the last request */
	char last_url[256];
	char path[128];
};

static const char *fake_getenv(const struct cred_world *w, const char *name)
{
	const struct world *world = w->ctx;
	for (size_t i = 0; i + 1 < VARIABLES && world->variables[i]; i += 2)
		if (strcmp(world->variables[i], name) == 0)
			return world->variables[i + 1];
	return NULL;
}

static int64_t fake_wall(const struct cred_world *w)
{
	return ((const struct world *)w->ctx)->now;
}

static int fake_fetch(const struct cred_world *w, const struct cred_fetch *req, long *status,
		      struct str *body, struct err *err)
{
	struct world *world = w->ctx;
	size_t at = 0;
	world->fetches++;
	snprintf(world->last_url, sizeof(world->last_url), "%s", req->url);
	for (size_t i = 0; i < 4 && req->header[i]; i++)
		at += (size_t)snprintf(world->last + at, sizeof(world->last) - at, "%s\n",
				       req->header[i]);
	snprintf(world->last + at, sizeof(world->last) - at, "%s", req->body ? req->body : "");
	for (size_t i = 0; i < world->n_answers; i++) {
		const struct answer *a = &world->answers[i];
		if (strncmp(req->url, a->url, strlen(a->url)) != 0)
			continue;
		*status = a->status;
		str_add(body, a->body);
		return 0;
	}
	return err_set(err, -EIO, "nobody answers");
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	world->f = fixture_new(0);
	strcpy(world->f->dir, "/tmp/cred_test.XXXXXX");
	assert_non_null(mkdtemp(world->f->dir));
	world->now = 1000000000;
	world->w = (struct cred_world){.env = &world->f->env,
				       .getenv = fake_getenv,
				       .wall = fake_wall,
				       .fetch = fake_fetch,
				       .ctx = world};
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	fixture_free(world->f);
	free(world);
	return 0;
}

/* A file in the test's directory; the path lives as long as the world. */
static const char *file(struct world *world, const char *text)
{
	snprintf(world->path, sizeof(world->path), "%s/file", world->f->dir);
	write_file(world->path, text);
	return world->path;
}

static void assert_keys(struct world *world, const char *access, const char *secret,
			const char *token)
{
	struct err err = ERR_INIT;
	auto_cred struct cred cred = {0};
	struct credentials *c = credentials_new(&world->w, &err);
	if (!c)
		fail_msg("%s", err.msg);
	assert_int_equal(credentials_get(c, &cred, &err), 0);
	assert_string_equal(str_text(&cred.access_key), access);
	assert_string_equal(str_text(&cred.secret_key), secret);
	assert_string_equal(str_text(&cred.token), token);
	credentials_free(c);
}

static void assert_none(struct world *world, int code, const char *words)
{
	struct err err = ERR_INIT;
	assert_null(credentials_new(&world->w, &err));
	if (err.code != code || !strstr(err.msg, words))
		fail_msg("%d %s", err.code, err.msg);
}

static void set(struct world *world, const char *name, const char *value)
{
	size_t i = 0;
	while (world->variables[i] && strcmp(world->variables[i], name) != 0)
		i += 2;
	assert_true(i + 2 < VARIABLES);
	world->variables[i] = name;
	world->variables[i + 1] = value;
}

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
	/* The environment goes first, but not before a profile that an option names. */
	set(world, "AWS_ACCESS_KEY_ID", "ENV");
	set(world, "AWS_SECRET_ACCESS_KEY", "ENV");
	assert_keys(world, "ENV", "ENV", "");
	world->w.profile = "two";
	assert_keys(world, "AK2", "SK2", "T2");
}

/* What only the AWS CLI can get is named, with the way to it. */
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
static int fake_home(const struct cred_world *w, struct str *out)
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

/* A command that does not need the directory runs also when that is gone. */
static void test_directory_that_is_gone(void **state)
{
	struct world *world = *state;
	world->w.directory = "/nowhere";
	set(world, "AWS_CONFIG_FILE", file(world, "[default]\ncredential_process = echo '{}'\n"));
	assert_none(world, -EINVAL, "the answer holds no credentials");
}

static void test_process(void **state)
{
	struct world *world = *state;
	static const struct {
		const char *config;
		int code; /* 0, or what is said */
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

/* Whoever renews them has left the directory of whoever named the files. */
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

/* Its output is at its end, but it is not. */
static void test_process_without_end(void **state)
{
	struct world *world = *state;
	world->f->env.now = time_slept;
	set(world, "AWS_CONFIG_FILE",
	    file(world, "[default]\ncredential_process = echo '{\"AccessKeyId\":\"A\","
			"\"SecretAccessKey\":\"S\"}'; exec >&-; exec sleep 5\n"));
	assert_none(world, -ETIMEDOUT, "credential_process");
}

#define STS_BODY(action)                                                                           \
	"<" action "Response><" action "Result><AssumedRoleUser><Arn>x</Arn></AssumedRoleUser>"    \
	"<Credentials><AccessKeyId>RA</AccessKeyId><SecretAccessKey>RS</SecretAccessKey>"          \
	"<SessionToken>RT</SessionToken><Expiration>2009-10-12T17:50:30Z</Expiration>"             \
	"</Credentials></" action "Result></" action "Response>"

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
	/* At a service that is not Amazon's. */
	static const struct answer other[] = {
		{"https://sts.example.org/", 200, STS_BODY("AssumeRole")}};
	world->answers = other;
	set(world, "AWS_CONFIG_FILE",
	    file(world, "[profile base]\naws_access_key_id=BA\naws_secret_access_key=BS\n"
			"[profile role]\nrole_arn=r\nsource_profile=base\nservices=uni\n"
			"[services uni]\nsts =\n  endpoint_url = https://sts.example.org\n"));
	assert_keys(world, "RA", "RS", "RT");
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

#define SERVICE_BODY(expiration)                                                                   \
	"{\"Code\":\"Success\",\"AccessKeyId\":\"CA\",\"SecretAccessKey\":\"CS\",\"Token\":"       \
	"\"CT\","                                                                                  \
	"\"Expiration\":\"" expiration "\"}"

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
			assert_none(world, -EACCES, "not to be trusted");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_profiles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_logins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_home, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directory_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_process_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_relative_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_role, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_roles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_web_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container, setup, teardown),
		cmocka_unit_test_setup_teardown(test_instance, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renewal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_newer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_source_renews, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures_are_not_the_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lasting_keys_do_not_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_without_an_end, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
