/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are opened before they are needed: how many, when, and by which requests. */
#include "store_fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <s3/s3.h>

enum { CLIENTS_MAX = 64, WANTED = 8, FEW = 6, IDLE_S = 15 };

/* Keeps its connections and answers at once: one thread for all of them. */
struct server {
	int fd;
	char url[64];
	pthread_t thread;
	atomic_uint connections, heads, gets;
	atomic_bool refuses; /* answers a HEAD with 403, and asks to close the connection */
	atomic_bool stopping;
};

static void answer(struct server *s, int fd, const char *head)
{
	static const char listing[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 69\r\n\r\n"
		"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
	static const char object[] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \"a\"\r\n\r\nx";
	static const char refusal[] = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n";
	static const char empty[] = "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n";
	const bool is_head = strncmp(head, "HEAD /bucket ", 13) == 0;
	const bool is_list = strncmp(head, "GET /bucket?", 12) == 0;
	const bool refuses = is_head && atomic_load(&s->refuses);
	const char *text = refuses ? refusal : is_head ? empty : is_list ? listing : object;
	assert_true(is_head || is_list || strncmp(head, "GET /bucket/", 12) == 0);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	atomic_fetch_add(is_head ? &s->heads : &s->gets, 1);
}

static void *serve(void *arg)
{
	struct server *s = arg;
	struct pollfd fds[CLIENTS_MAX + 1] = {{.fd = s->fd, .events = POLLIN}};
	nfds_t n = 1;
	while (!atomic_load(&s->stopping)) {
		poll(fds, n, 20);
		for (nfds_t i = n; i-- > 1;) {
			char head[4096];
			if (!fds[i].revents)
				continue;
			const ssize_t got = recv(fds[i].fd, head, sizeof(head) - 1, 0);
			if (got > 0) {
				head[got] = '\0';
				answer(s, fds[i].fd, head);
				continue;
			}
			close(fds[i].fd);
			fds[i] = fds[--n];
		}
		if (fds[0].revents) {
			assert_true(n <= CLIENTS_MAX);
			fds[n++] =
				(struct pollfd){.fd = accept(s->fd, NULL, NULL), .events = POLLIN};
			atomic_fetch_add(&s->connections, 1);
		}
	}
	while (n > 1)
		close(fds[--n].fd);
	return NULL;
}

struct scene {
	struct fixture *f;
	struct server server;
	struct http_stats *meter;
	uint64_t (*now)(const struct env *);
	atomic_uint_fast64_t ahead_ns; /* of the machine's clock */
};

static uint64_t scene_now(const struct env *env)
{
	struct scene *scene = ((struct fixture *)env->ctx)->ctx;
	return scene->now(env) + atomic_load(&scene->ahead_ns);
}

static int setup(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	struct scene *scene = calloc(1, sizeof(*scene));
	struct server *s = &scene->server;
	struct err err = ERR_INIT;
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, CLIENTS_MAX), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	scene->f = fixture_new(2);
	scene->meter = http_stats_new();
	scene->now = scene->f->env.now;
	scene->f->env.now = scene_now;
	scene->f->ctx = scene;
	const struct store_s3_options opt = {.bucket = "bucket",
					     .endpoint = s->url,
					     .region = "us-east-1",
					     .no_sign_request = true,
					     .verify = STORE_S3_VERIFY_NEVER,
					     .meter = scene->meter};
	scene->f->s = store_s3_new(&scene->f->env, &opt, &err);
	if (!scene->f->s)
		fail_msg("%s", err.msg);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	fixture_free(scene->f);
	atomic_store(&scene->server.stopping, true);
	pthread_join(scene->server.thread, NULL);
	close(scene->server.fd);
	http_stats_free(scene->meter);
	free(scene);
	return 0;
}

/* Gets n objects at once. */
static void get(struct scene *scene, size_t n)
{
	struct call_get gets[WANTED];
	struct call_result res[WANTED] = {0};
	for (size_t i = 0; i < n; i++)
		gets[i] = (struct call_get){.key = "x", .length = STORE_TO_END, .max = 16};
	assert_int_equal(call_get_many(scene->f->s, gets, n, res), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(res[i].body.len, 1);
		bytes_release(&res[i].body);
	}
}

/* Waits until the store has the answers to n HEADs of the bucket. */
static void await_heads(struct scene *scene, unsigned int n)
{
	static struct http_stats_counts counts;
	do {
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		http_stats_read(scene->meter, &counts);
	} while (counts.requests[HTTP_HEAD][200] < n);
}

static void check(struct scene *scene, unsigned int heads, unsigned int connections)
{
	assert_int_equal(atomic_load(&scene->server.heads), heads);
	assert_int_equal(atomic_load(&scene->server.connections), connections);
}

static void pass_time(struct scene *scene)
{
	atomic_fetch_add(&scene->ahead_ns, (uint64_t)(IDLE_S + 1) * 1000000000);
}

/* A program that sends few requests opens no further connections. */
static void test_none_without_a_call(void **state)
{
	struct scene *scene = *state;
	get(scene, 1);
	pass_time(scene);
	get(scene, 1);
	check(scene, 0, 1);
}

/* The store has a connection already, because it has looked at the bucket. */
static void test_as_many_as_are_missing(void **state)
{
	struct scene *scene = *state;
	store_s3_connect(scene->f->s, WANTED);
	await_heads(scene, WANTED - 1);
	check(scene, WANTED - 1, WANTED);
	get(scene, WANTED);
	store_s3_connect(scene->f->s, WANTED);
	get(scene, 1);
	check(scene, WANTED - 1, WANTED);
}

/* Servers close idle connections, so after a pause the first request opens a few. */
static void test_a_few_after_a_pause(void **state)
{
	struct scene *scene = *state;
	store_s3_connect(scene->f->s, 2);
	await_heads(scene, 1);
	pass_time(scene);
	get(scene, 1);
	await_heads(scene, 1 + FEW);
	get(scene, 1);
	check(scene, 1 + FEW, 2 + FEW);
}

/* The answers to HEADs are never used, and a server that refuses them is asked no more often. */
static void test_after_refusals(void **state)
{
	struct scene *scene = *state;
	atomic_store(&scene->server.refuses, true);
	store_s3_connect(scene->f->s, WANTED);
	while (atomic_load(&scene->server.heads) < WANTED - 1)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	get(scene, WANTED);
	get(scene, 1);
	assert_int_equal(atomic_load(&scene->server.heads), WANTED - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none_without_a_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_as_many_as_are_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_few_after_a_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_after_refusals, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
