/* SPDX-License-Identifier: Apache-2.0 */
/* What the requests of a store show about its service, and what is sent while the service does not
 * answer. The server closes its connections without an answer, or answers; the test advances the
 * clock. */
#include "store_fixture.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include <s3/s3.h>

enum { LIMIT_S = 60, TIMEOUT_S = 20, DAY_S = 86400 };
enum { NOTHING, HEADS, ALL };

struct scene {
	struct fixture *f;
	struct store *beside; /* another bucket of the service */
	int fd;
	char url[64];
	pthread_t thread;
	atomic_int answers;	       /* which requests: NOTHING … */
	atomic_uint heads, gets, puts; /* requests for the bucket, and for objects */
	/* Stands still, and is ahead of the machine's clock, by which the thread wakes up. */
	atomic_uint_fast64_t now_ns;
};

static void serve_one(struct scene *c, int fd)
{
	static const char listing[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 69\r\nConnection: close\r\n\r\n"
		"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
	static const char busy[] =
		"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	char head[4096];
	const ssize_t n = recv(fd, head, sizeof(head) - 1, 0);
	if (n <= 0)
		return;
	head[n] = '\0';
	const bool is_list = strstr(head, "list-type=2") != NULL;
	atomic_uint *counter = head[0] == 'H' ? &c->heads : head[0] == 'P' ? &c->puts : &c->gets;
	const char *text = is_list ? listing : busy;
	if (atomic_load(&c->answers) >= (head[0] == 'H' ? HEADS : ALL))
		send(fd, text, strlen(text), MSG_NOSIGNAL);
	atomic_fetch_add(counter, !is_list);
	shutdown(fd, SHUT_WR);
	while (recv(fd, head, sizeof(head), 0) > 0)
		;
}

static void *serve(void *arg)
{
	struct scene *c = arg;
	int fd;
	while ((fd = accept(c->fd, NULL, NULL)) >= 0) {
		serve_one(c, fd);
		close(fd);
	}
	return NULL;
}

static uint64_t scene_now(const struct env *env)
{
	const struct scene *c = ((struct fixture *)env->ctx)->ctx;
	return atomic_load(&c->now_ns);
}

static void pass(struct scene *c, uint64_t seconds)
{
	atomic_fetch_add(&c->now_ns, seconds * 1000000000);
}

static struct store *open_bucket(struct scene *c, const char *bucket, struct store *beside)
{
	struct err err = ERR_INIT;
	const struct store_s3_options opt = {.bucket = bucket,
					     .endpoint = c->url,
					     .region = "us-east-1",
					     .no_sign_request = true,
					     .retry_ms = LIMIT_S * 1000,
					     .beside = beside};
	struct store *s = store_s3_new(&c->f->env, &opt, &err);
	if (!s)
		fail_msg("%s", err.msg);
	return s;
}

static int setup(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	struct scene *c = calloc(1, sizeof(*c));
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(c->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(c->fd, 8), 0);
	assert_int_equal(getsockname(c->fd, (struct sockaddr *)&at, &n), 0);
	snprintf(c->url, sizeof(c->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	atomic_store(&c->answers, ALL);
	assert_int_equal(pthread_create(&c->thread, NULL, serve, c), 0);
	c->f = fixture_new(2);
	atomic_store(&c->now_ns, c->f->env.now(&c->f->env));
	pass(c, DAY_S);
	c->f->env.now = scene_now;
	c->f->ctx = c;
	c->f->s = open_bucket(c, "bucket", NULL);
	c->beside = open_bucket(c, "other", c->f->s);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct scene *c = *state;
	store_free(c->beside);
	fixture_free(c->f);
	shutdown(c->fd, SHUT_RDWR);
	pthread_join(c->thread, NULL);
	close(c->fd);
	free(c);
	return 0;
}

static int get(struct store *s, struct err *err)
{
	struct call_result res;
	err_clear(err);
	const int rc = call_get(s, "x", 0, STORE_TO_END, 16, NULL, &res, err);
	if (!rc)
		bytes_release(&res.body);
	return rc;
}

static void wait_until(const struct scene *c, bool (*holds)(const struct scene *))
{
	while (!holds(c))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool has_probed(const struct scene *c)
{
	return atomic_load(&c->heads) > 0;
}

static bool is_unreachable(const struct scene *c)
{
	return store_check(c->f->s, NULL) != 0;
}

static bool is_reachable(const struct scene *c)
{
	return !is_unreachable(c);
}

/* The service goes away. Each request wakes the thread, which looks at the clock. It may do so by
 * itself before the last request, which is not sent then. */
static void become_unreachable(struct scene *c)
{
	struct err err = ERR_INIT;
	pass(c, 1);
	atomic_store(&c->answers, NOTHING);
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	pass(c, LIMIT_S - TIMEOUT_S);
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	wait_until(c, has_probed);
	assert_false(is_unreachable(c));
	pass(c, TIMEOUT_S);
	const int rc = get(c->f->s, &err);
	assert_true(rc == -EAGAIN || rc == -EIO);
	wait_until(c, is_unreachable);
	assert_in_range(atomic_load(&c->heads), 1, 2);
}

/* Requests of programs are sent until the own probe has shown that nothing answers. Afterwards they
 * fail at once, also those of another bucket of the service, except for a probe. */
static void test_requests_fail_at_once(void **state)
{
	struct scene *c = *state;
	struct err err = ERR_INIT;
	become_unreachable(c);
	const unsigned int sent = atomic_load(&c->gets);
	assert_in_range(sent, 2, 3);
	for (int i = 0; i < 5; i++) {
		struct store *s = i % 2 ? c->f->s : c->beside;
		assert_int_equal(get(s, &err), -EIO);
		assert_non_null(strstr(err.msg, "unreachable since"));
		assert_int_equal(store_check(s, &err), -EIO);
	}
	assert_int_equal(atomic_load(&c->gets), sent);
	pass(c, 2);
	/* A put is no probe. The next get is, and the one after it is not. */
	assert_int_equal(call_put(c->f->s, "x", "1", 1, NULL, NULL, &err), -EIO);
	assert_int_equal(atomic_load(&c->puts), 0);
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "unreachable since"));
	assert_int_equal(get(c->f->s, &err), -EIO);
	assert_int_equal(atomic_load(&c->gets), sent + 1);
}

/* Any answer ends the state, for all buckets: here 503 for a request of the other bucket. */
static void test_an_answer_ends_it(void **state)
{
	struct scene *c = *state;
	struct err err = ERR_INIT;
	become_unreachable(c);
	atomic_store(&c->answers, ALL);
	assert_int_equal(get(c->f->s, &err), -EIO);
	pass(c, 2);
	assert_int_equal(get(c->beside, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "503"));
	assert_false(is_unreachable(c));
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "503"));
}

/* No program gets an answer, because none sends a request that may be a probe. */
static void test_the_store_asks_itself(void **state)
{
	struct scene *c = *state;
	struct err err = ERR_INIT;
	become_unreachable(c);
	atomic_store(&c->answers, HEADS);
	pass(c, 11);
	/* This wakes the thread up. */
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	wait_until(c, is_reachable);
	atomic_store(&c->answers, ALL);
	assert_int_equal(call_put(c->f->s, "x", "1", 1, NULL, NULL, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "503"));
}

/* 503 is an answer, however long it lasts. */
static void test_a_busy_service_answers(void **state)
{
	struct scene *c = *state;
	struct err err = ERR_INIT;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(get(c->f->s, &err), -EAGAIN);
		assert_non_null(strstr(err.msg, "503"));
		pass(c, LIMIT_S);
	}
	assert_false(is_unreachable(c));
	assert_int_equal(atomic_load(&c->heads), 0);
}

/* The minute of a service that has answered meanwhile begins anew. */
static void test_the_probe_is_answered(void **state)
{
	struct scene *c = *state;
	struct err err = ERR_INIT;
	pass(c, 1);
	atomic_store(&c->answers, NOTHING);
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	atomic_store(&c->answers, ALL);
	pass(c, LIMIT_S);
	assert_int_equal(get(c->beside, &err), -EAGAIN);
	atomic_store(&c->answers, NOTHING);
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	assert_int_equal(get(c->f->s, &err), -EAGAIN);
	assert_false(is_unreachable(c));
	/* The thread may have seen that a probe was due before the answer came. */
	assert_in_range(atomic_load(&c->heads), 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests_fail_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_answer_ends_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_store_asks_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_busy_service_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_probe_is_answered, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
