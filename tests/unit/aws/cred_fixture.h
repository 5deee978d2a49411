/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of credentials: a `struct aws_environment` with variables, a clock, files and
 * services that the test sets.
 */
#ifndef TEST_STORE_CRED_FIXTURE_H
#define TEST_STORE_CRED_FIXTURE_H

#include "store_fixture.h"

#include "aws/provider.h"

enum { VARIABLES = 16 };

struct answer {
	const char *url; /* prefix */
	long status;
	const char *body;
};

struct world {
	struct fixture *f;
	struct aws_environment w;
	const char *variables[VARIABLES]; /* NAME, value, … */
	const struct answer *answers;	  /* the first one whose url is a prefix is sent */
	size_t n_answers;
	int64_t now;
	unsigned int fetches;
	char last[2048]; /* headers and body of the last request */
	char last_url[256];
	char path[128];
};

static inline const char *fake_getenv(const struct aws_environment *w, const char *name)
{
	const struct world *world = w->ctx;
	for (size_t i = 0; i + 1 < VARIABLES && world->variables[i]; i += 2)
		if (strcmp(world->variables[i], name) == 0)
			return world->variables[i + 1];
	return NULL;
}

static inline int64_t fake_wall(const struct aws_environment *w)
{
	return ((const struct world *)w->ctx)->now;
}

static inline int fake_fetch(const struct aws_environment *w, const struct cred_fetch *req,
			     long *status, struct str *body, struct err *err)
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
	return err_set(err, -EIO, "no answer");
}

static inline int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	world->f = fixture_new(0);
	strcpy(world->f->dir, "/tmp/cred_test.XXXXXX");
	assert_non_null(mkdtemp(world->f->dir));
	world->now = 1000000000;
	world->w = (struct aws_environment){.env = &world->f->env,
					    .getenv = fake_getenv,
					    .wall = fake_wall,
					    .fetch = fake_fetch,
					    .ctx = world};
	*state = world;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *world = *state;
	fixture_free(world->f);
	free(world);
	return 0;
}

/* A file in the test's directory; the path is valid as long as the fixture. */
static inline const char *file(struct world *world, const char *text)
{
	snprintf(world->path, sizeof(world->path), "%s/file", world->f->dir);
	write_file(world->path, text);
	return world->path;
}

static inline void assert_keys(struct world *world, const char *access, const char *secret,
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

static inline void assert_none(struct world *world, int code, const char *words)
{
	struct err err = ERR_INIT;
	assert_null(credentials_new(&world->w, &err));
	if (err.code != code || !strstr(err.msg, words))
		fail_msg("%d %s", err.code, err.msg);
}

static inline void set(struct world *world, const char *name, const char *value)
{
	size_t i = 0;
	while (world->variables[i] && strcmp(world->variables[i], name) != 0)
		i += 2;
	assert_true(i + 2 < VARIABLES);
	world->variables[i] = name;
	world->variables[i + 1] = value;
}
#define STS_BODY(action)                                                                           \
	"<" action "Response><" action "Result><AssumedRoleUser><Arn>x</Arn></AssumedRoleUser>"    \
	"<Credentials><AccessKeyId>RA</AccessKeyId><SecretAccessKey>RS</SecretAccessKey>"          \
	"<SessionToken>RT</SessionToken><Expiration>2009-10-12T17:50:30Z</Expiration>"             \
	"</Credentials></" action "Result></" action "Response>"

#define SERVICE_BODY(expiration)                                                                   \
	"{\"Code\":\"Success\",\"AccessKeyId\":\"CA\",\"SecretAccessKey\":\"CS\",\"Token\":"       \
	"\"CT\","                                                                                  \
	"\"Expiration\":\"" expiration "\"}"

#endif
