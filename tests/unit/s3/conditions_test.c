/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services that support conditions in different ways: what the store finds out, how it puts and
 * deletes then, and that nothing but the store's own objects is touched to find out. The server has
 * a few objects, and serves one request for each connection. Another writer can come between two
 * requests for the object "x".
 */
#include "store_fixture.h"

#include <aws/digest.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <s3/s3.h>

enum { OBJECTS = 4 };

/* How the service treats a condition. A number from 400 on is the status with which it refuses the
 * request. */
enum { CHECKED, BARE_ONLY, NOT_CHECKED, ALWAYS_FAILS };

struct stored {
	char key[128], body[64], etag[MD5_HEX], mark[STORE_MARK_MAX + 1];
};

struct service {
	unsigned int put_absent, put_match, delete_match; /* see above */
	bool drops_marks;
	unsigned int refuses_probe;    /* 0, or the status of its first PUT */
	unsigned int busy;	       /* so many requests of the probe fail with 503 */
	unsigned int loses;	       /* so many PUTs of x succeed and are answered with 503 */
	unsigned int other_at;	       /* another writer puts x before this request for x, from 1 */
	const char *other;	       /* what it writes */
	unsigned int requests, probes; /* for x, and for other objects */
	struct stored v[OBJECTS];
	int fd;
	char url[64];
	pthread_t thread;
};

static struct stored *find(struct service *s, const char *key)
{
	for (int i = 0; i < OBJECTS; i++)
		if (strcmp(s->v[i].key, key) == 0)
			return &s->v[i];
	return NULL;
}

static void store(struct service *s, const char *key, const char *body, const char *mark)
{
	struct stored *o = find(s, key);
	if (!o)
		o = find(s, "");
	assert_non_null(o);
	snprintf(o->key, sizeof(o->key), "%s", key);
	snprintf(o->body, sizeof(o->body), "%s", body);
	snprintf(o->mark, sizeof(o->mark), "%s", s->drops_marks ? "" : mark);
	assert_int_equal(digest_md5(&(struct piece){body, strlen(body)}, 1, o->etag), 0);
}

/* The value of a header; "": there is none. */
static void header(const char *head, const char *name, char value[128])
{
	char line[64];
	snprintf(line, sizeof(line), "\r\n%s: ", name);
	const char *at = strcasestr(head, line);
	value[0] = '\0';
	if (at)
		sscanf(at + strlen(line), "%127[^\r]", value);
}

/* 0: the request goes on. */
static unsigned int check(unsigned int how, const char *value, const char *etag)
{
	char quoted[MD5_HEX + 2];
	snprintf(quoted, sizeof(quoted), "\"%s\"", etag ? etag : "");
	if (!value[0] || how == NOT_CHECKED)
		return 0;
	if (how >= 400)
		return how;
	if (strcmp(value, "*") == 0)
		return etag ? 412 : 0;
	if (how == ALWAYS_FAILS || !etag)
		return 412;
	return strcmp(value, how == BARE_ONLY ? etag : quoted) == 0 ? 0 : 412;
}

static unsigned int serve_put(struct service *s, const char *key, const char *head,
			      const char *body)
{
	const struct stored *o = find(s, key);
	char absent[128], match[128], mark[128];
	header(head, "if-none-match", absent);
	header(head, "if-match", match);
	header(head, "x-amz-meta-hsmount-mark", mark);
	unsigned int status = check(s->put_absent, absent, o ? o->etag : NULL);
	if (!status)
		status = check(s->put_match, match, o ? o->etag : NULL);
	if (status)
		return status;
	store(s, key, body, mark);
	return 200;
}

static unsigned int serve_delete(struct service *s, const char *key, const char *head)
{
	struct stored *o = find(s, key);
	char match[128];
	header(head, "if-match", match);
	const unsigned int status = check(s->delete_match, match, o ? o->etag : NULL);
	if (status)
		return status;
	if (o)
		*o = (struct stored){0};
	return 204;
}

static unsigned int serve_object(struct service *s, const char *method, const char *key,
				 const char *head, const char *body)
{
	const bool is_x = strcmp(key, "x") == 0;
	const unsigned int n = is_x ? ++s->requests : ++s->probes;
	const bool is_put = strcmp(method, "PUT") == 0;
	if (!is_x && s->refuses_probe)
		return s->refuses_probe;
	if (!is_x && s->busy && n % 2 == 0) {
		s->busy--;
		return 503;
	}
	if (is_x && s->other_at == n)
		store(s, key, s->other, "other");
	if (is_put) {
		const unsigned int status = serve_put(s, key, head, body);
		if (!is_x || !s->loses)
			return status;
		s->loses--;
		return 503;
	}
	if (strcmp(method, "POST") == 0)
		return 501; /* no uploads in parts */
	if (strcmp(method, "DELETE") == 0)
		return serve_delete(s, key, head);
	return find(s, key) ? 200 : 404;
}

static void reply(int fd, const struct stored *o, bool is_head, unsigned int status,
		  const char *body)
{
	char text[1024], fields[256] = "";
	if (o && status == 200)
		snprintf(fields, sizeof(fields), "ETag: \"%s\"\r\n%s%s%s", o->etag,
			 is_head && o->mark[0] ? "x-amz-meta-hsmount-mark: " : "",
			 is_head ? o->mark : "", is_head && o->mark[0] ? "\r\n" : "");
	const int n = snprintf(text, sizeof(text),
			       "HTTP/1.1 %u Whatever\r\nContent-Length: %zu\r\n%s"
			       "Connection: close\r\n\r\n%s",
			       status, is_head && o ? strlen(o->body) : strlen(body), fields,
			       is_head ? "" : body);
	send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

/* The head and the body of a request; they are small. */
static void serve(struct service *s, int fd)
{
	char text[4096], method[8], key[128];
	size_t n = 0;
	for (;;) {
		const ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, 0);
		if (got <= 0)
			return;
		text[n += (size_t)got] = '\0';
		const char *end = strstr(text, "\r\n\r\n");
		char length[128];
		header(text, "content-length", length);
		if (end && n >= (size_t)(end + 4 - text) + strtoul(length, NULL, 10))
			break;
	}
	if (strncmp(text, "GET /bucket?", 12) == 0) {
		reply(fd, NULL, false, 200,
		      "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
		return;
	}
	assert_int_equal(sscanf(text, "%7s /bucket/%127[^ ?]", method, key), 2);
	assert_true(strcmp(key, "x") == 0 || strncmp(key, "p/.hsmount/probe-", 17) == 0);
	const unsigned int status =
		serve_object(s, method, key, text, strstr(text, "\r\n\r\n") + 4);
	reply(fd, find(s, key), strcmp(method, "HEAD") == 0, status, "");
}

static void *run_service(void *arg)
{
	struct service *s = arg;
	int fd;
	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		char rest[64];
		serve(s, fd);
		shutdown(fd, SHUT_WR);
		while (recv(fd, rest, sizeof(rest), 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

static struct fixture *start(struct service *s, bool repeats)
{
	static const struct store_retry_options quick = {.attempts = 4, .base_ms = 1, .cap_ms = 1};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	struct err err = ERR_INIT;
	struct fixture *f = fixture_new(2);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, 32), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, run_service, s), 0);
	const struct store_s3_options opt = {.bucket = "bucket",
					     .prefix = "p/",
					     .endpoint = s->url,
					     .region = "us-east-1",
					     .no_sign_request = true};
	f->s = store_s3_new(&f->env, &opt, &err);
	if (!f->s)
		fail_msg("%s", err.msg);
	f->ctx = f->s; /* the S3 store itself */
	if (repeats)
		f->s = store_retry_new(f->s, &quick, NULL);
	return f;
}

static void stop(struct service *s, struct fixture *f)
{
	fixture_free(f);
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

static const char *support(const struct fixture *f, const char *name)
{
	struct store_s3_feature v[STORE_S3_FEATURES];
	store_s3_features(f->ctx, v);
	for (int i = 0; i < STORE_S3_FEATURES; i++)
		if (strcmp(v[i].name, name) == 0)
			return v[i].support;
	fail_msg("%s", name);
	return NULL;
}

static size_t objects(struct service *s)
{
	size_t n = 0;
	for (int i = 0; i < OBJECTS; i++)
		n += s->v[i].key[0] != '\0';
	return n;
}

static int put_x(const struct fixture *f, const char *text, const struct store_cond *cond,
		 char etag[STORE_ETAG_MAX])
{
	struct store_meta meta = {0};
	const int rc = call_put_mark(f->s, "x", text, "own-1", cond, &meta, NULL);
	if (rc == 0)
		strcpy(etag, meta.etag);
	return rc;
}

static const struct store_cond absent = {.if_none_match = "*"};

/* ---- what is found out ---- */

static const struct {
	struct service is;
	const char *put_absent, *put_match, *delete_match, *marks;
	unsigned int probes; /* requests */
} kinds[] = {
	{{0}, "works", "works", "works", "works", 7},
	{{.put_match = BARE_ONLY}, "works", "bare", "works", "works", 9},
	{{.put_absent = NOT_CHECKED, .put_match = NOT_CHECKED, .delete_match = NOT_CHECKED},
	 "ignored",
	 "ignored",
	 "ignored",
	 "works",
	 5},
	{{.put_absent = NOT_CHECKED, .put_match = ALWAYS_FAILS, .delete_match = ALWAYS_FAILS},
	 "ignored",
	 "broken",
	 "broken",
	 "works",
	 10},
	{{.put_absent = 501, .put_match = 400, .delete_match = 405},
	 "missing",
	 "missing",
	 "missing",
	 "works",
	 6},
	{{.drops_marks = true}, "works", "works", "works", "ignored", 7},
	{{.refuses_probe = 403}, "untested", "untested", "untested", "untested", 1},
};

/* A new object, a change, two conflicts and two deletes: the same on each service. */
static void test_kinds_of_service(void **state)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct service s = kinds[i].is;
		struct fixture *f = start(&s, true);
		char first[STORE_ETAG_MAX], now[STORE_ETAG_MAX];
		bool was_absent;
		assert_string_equal(support(f, "put_if_match"), "unknown");
		assert_int_equal(put_x(f, "one", &absent, first), 0);
		assert_string_equal(support(f, "put_if_none_match"), kinds[i].put_absent);
		assert_string_equal(support(f, "put_if_match"), kinds[i].put_match);
		assert_string_equal(support(f, "delete_if_match"), kinds[i].delete_match);
		assert_string_equal(support(f, "marks"), kinds[i].marks);
		assert_string_equal(support(f, "parts_if_match"), "unknown");
		const struct store_cond same = {.if_match = first};
		assert_int_equal(put_x(f, "two", &same, now), 0);
		assert_string_equal(find(&s, "x")->body, "two");
		store(&s, "x", "foreign", "other");
		assert_int_equal(put_x(f, "two", &same, now), -ESTALE);
		assert_int_equal(put_x(f, "two", &absent, now), -EEXIST);
		assert_int_equal(call_delete_version(f->s, "x", now, &was_absent), -ESTALE);
		assert_string_equal(find(&s, "x")->body, "foreign");
		assert_int_equal(call_delete_version(f->s, "x", find(&s, "x")->etag, &was_absent),
				 0);
		assert_false(was_absent);
		assert_int_equal(call_delete_version(f->s, "x", now, &was_absent), 0);
		assert_true(was_absent);
		assert_int_equal(put_x(f, "two", &same, now), -ESTALE);
		assert_int_equal(s.probes, kinds[i].probes);
		assert_int_equal(objects(&s), 0); /* nothing is left over */
		stop(&s, f);
	}
}

static atomic_uint_fast64_t late_ns; /* the network thread reads it */

static uint64_t later(const struct env *env)
{
	const struct env real = env_real(NULL, NULL);
	return env_now(&real) + late_ns;
}

/* The credentials may not write below .hsmount/ at first. The service wants ETags without quotes.
 */
static void test_a_refused_test_is_repeated(void **state)
{
	struct service s = {.put_match = BARE_ONLY, .put_absent = 501, .refuses_probe = 403};
	struct fixture *f = start(&s, true);
	char etag[STORE_ETAG_MAX];
	f->env.now = later;
	assert_int_equal(put_x(f, "one", &absent, etag), 0);
	assert_string_equal(support(f, "put_if_none_match"), "missing");
	store(&s, "x", "foreign", "other");
	late_ns = UINT64_C(70) * 1000 * 1000 * 1000;
	assert_int_equal(put_x(f, "two", &absent, etag), -EEXIST);
	assert_int_equal(s.probes, 2);
	assert_string_equal(support(f, "put_if_none_match"), "missing");
	assert_string_equal(support(f, "put_if_match"), "untested");
	s.refuses_probe = 0;
	assert_int_equal(put_x(f, "two", &absent, etag), -EEXIST);
	assert_int_equal(s.probes, 2);
	late_ns *= 2;
	const struct store_cond same = {.if_match = find(&s, "x")->etag};
	assert_int_equal(put_x(f, "two", &same, etag), 0);
	assert_string_equal(support(f, "put_if_match"), "bare");
	late_ns = 0;
	stop(&s, f);
}

/* Equal bytes of another writer are a conflict, whatever a retry would say. Only if the service
 * drops marks, equal bytes decide after a lost answer. */
static void test_equal_bytes(void **state)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct store_cond again = {.if_none_match = "*", .retried = true};
		struct service s = kinds[i].is;
		struct fixture *f = start(&s, false);
		char etag[STORE_ETAG_MAX];
		store(&s, "x", "one", "other");
		assert_int_equal(put_x(f, "one", &absent, etag), -EEXIST);
		assert_int_equal(put_x(f, "one", &again, etag), s.drops_marks ? 0 : -EEXIST);
		assert_int_equal(put_x(f, "two", &again, etag), -EEXIST);
		stop(&s, f);
	}
}

/* The answer to the first attempt is lost. */
static void test_lost_answers(void **state)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct service s = kinds[i].is;
		struct fixture *f = start(&s, true);
		char first[STORE_ETAG_MAX] = "", now[STORE_ETAG_MAX] = "";
		s.loses = 1;
		assert_int_equal(put_x(f, "one", &absent, first), 0);
		assert_string_equal(first, find(&s, "x")->etag);
		const struct store_cond same = {.if_match = first};
		s.loses = 1;
		assert_int_equal(put_x(f, "two", &same, now), 0);
		assert_string_equal(now, find(&s, "x")->etag);
		stop(&s, f);
	}
}

/* Another writer comes before the n-th request for the object. */
static void test_another_writer(void **state)
{
	static const struct {
		unsigned int how, at;
		bool exists;
		int code;
		const char *left;
	} cases[] = {
		{CHECKED, 1, false, -EEXIST, "other"},
		{CHECKED, 1, true, -ESTALE, "other"},
		{NOT_CHECKED, 1, false, -EEXIST, "other"},
		{NOT_CHECKED, 1, true, -ESTALE, "other"},
		/* Between HEAD and PUT: nobody notices. */
		{NOT_CHECKED, 2, false, 0, "mine"},
		{NOT_CHECKED, 2, true, 0, "mine"},
		{NOT_CHECKED, 3, false, -ESTALE, "other"},
		{NOT_CHECKED, 3, true, -ESTALE, "other"},
		{501, 3, false, -ESTALE, "other"},
		{ALWAYS_FAILS, 3, true, -ESTALE, "other"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct service s = {.put_absent = cases[i].how,
				    .put_match = cases[i].how,
				    .other_at = cases[i].at,
				    .other = "other"};
		struct fixture *f = start(&s, true);
		if (cases[i].exists)
			store(&s, "x", "old", "old");
		const struct store_cond cond = {
			.if_match = cases[i].exists ? s.v[0].etag : NULL,
			.if_none_match = cases[i].exists ? NULL : "*",
		};
		char etag[STORE_ETAG_MAX], old[STORE_ETAG_MAX] = "";
		struct store_cond copy = cond;
		if (cond.if_match) {
			strcpy(old, cond.if_match);
			copy.if_match = old;
		}
		assert_int_equal(put_x(f, "mine", &copy, etag), cases[i].code);
		assert_string_equal(find(&s, "x")->body, cases[i].left);
		stop(&s, f);
	}
}

/* A put that asks for another version would be sent in parts. */
static void test_without_uploads_in_parts(void **state)
{
	struct service s = {0};
	struct fixture *f = start(&s, true);
	char first[STORE_ETAG_MAX], now[STORE_ETAG_MAX];
	assert_int_equal(put_x(f, "one", &absent, first), 0);
	const struct store_cond same = {.if_match = first, .is_new_version = true};
	for (int i = 0; i < 2; i++) {
		store(&s, "x", "one", "other");
		assert_int_equal(put_x(f, "one", &same, now), 0);
		assert_string_equal(support(f, "parts_if_match"), "missing");
		assert_string_equal(find(&s, "x")->mark, "own-1");
	}
	store(&s, "x", "two", "other");
	assert_int_equal(put_x(f, "one", &same, now), -ESTALE);
	stop(&s, f);
}

/* The other writer puts the same bytes just after ours: the mark shows it. */
static void test_equal_bytes_just_after(void **state)
{
	struct service s = {.put_absent = NOT_CHECKED, .other_at = 3, .other = "mine"};
	struct fixture *f = start(&s, true);
	char etag[STORE_ETAG_MAX];
	assert_int_equal(put_x(f, "mine", &absent, etag), -ESTALE);
	stop(&s, f);
}

/* ---- the probe itself ---- */

/* A temporary failure is not remembered as a fault of the service. */
static void test_busy_service(void **state)
{
	for (unsigned int busy = 1; busy <= 5; busy++) {
		struct service s = {.busy = busy};
		struct fixture *f = start(&s, true);
		char etag[STORE_ETAG_MAX];
		assert_int_equal(put_x(f, "one", &absent, etag), 0);
		assert_string_equal(support(f, "put_if_none_match"), "works");
		assert_string_equal(support(f, "put_if_match"), "works");
		assert_string_equal(support(f, "delete_if_match"), "works");
		stop(&s, f);
	}
}

static void test_unreachable_service(void **state)
{
	struct service s = {.refuses_probe = 503};
	struct fixture *f = start(&s, false);
	char etag[STORE_ETAG_MAX];
	assert_int_equal(put_x(f, "one", &absent, etag), -EAGAIN);
	assert_int_equal(s.requests, 0);
	assert_string_equal(support(f, "put_if_none_match"), "unknown");
	s.refuses_probe = 0;
	assert_int_equal(put_x(f, "one", &absent, etag), 0);
	assert_string_equal(support(f, "put_if_none_match"), "works");
	stop(&s, f);
}

/* Puts side by side wait for one probe. Requests without a condition need none. */
static void test_one_probe(void **state)
{
	enum { N = 8 };
	struct service s = {0};
	struct fixture *f = start(&s, true);
	struct store_request *reqs[N];
	const struct piece piece = {"one", 3};
	bool was_absent;
	put_text(f->s, "x", "old");
	assert_int_equal(call_delete_version(f->s, "x", find(&s, "x")->etag, &was_absent), 0);
	assert_int_equal(s.probes, 0);
	for (int i = 0; i < N; i++) {
		reqs[i] = store_request_new(f->s, STORE_PUT);
		store_request_key(reqs[i], "x");
		reqs[i]->pieces = &piece;
		reqs[i]->n_pieces = 1;
		reqs[i]->cond = absent;
	}
	store_run_all(f->s, reqs, N);
	int won = 0;
	for (int i = 0; i < N; i++) {
		won += reqs[i]->answer.state == STORE_PRESENT;
		store_request_free(reqs[i]);
	}
	assert_int_equal(won, 1);
	assert_int_equal(s.probes, 7);
	stop(&s, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_of_service),
		cmocka_unit_test(test_a_refused_test_is_repeated),
		cmocka_unit_test(test_equal_bytes),
		cmocka_unit_test(test_lost_answers),
		cmocka_unit_test(test_another_writer),
		cmocka_unit_test(test_without_uploads_in_parts),
		cmocka_unit_test(test_equal_bytes_just_after),
		cmocka_unit_test(test_busy_service),
		cmocka_unit_test(test_unreachable_service),
		cmocka_unit_test(test_one_probe),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
