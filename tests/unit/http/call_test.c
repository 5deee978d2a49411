/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls use libcurl's handles one after the other, and most handles are not reset between two
 * calls. Nothing of a call may reach the next one. A server on loopback tells what it has received.
 */
#include "store_fixture.h"

#include <http/http.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

enum { LONG_MS = 120000 };

struct scene {
	struct fixture *f;
	struct http_io *io;
	int listener;
	pthread_t server;
	char url[64];
};

/* Returns the number of bytes of the body that arrive with the head, or -1 at the end. */
static int read_head(int fd, char *head, size_t size)
{
	size_t n = 0;
	while (n + 1 < size) {
		const ssize_t got = recv(fd, head + n, size - n - 1, 0);
		if (got <= 0)
			return -1;
		n += (size_t)got;
		head[n] = '\0';
		const char *end = strstr(head, "\r\n\r\n");
		if (end)
			return (int)(n - (size_t)(end + 4 - head));
	}
	return -1;
}

static void drain(int fd, size_t n)
{
	char part[4096];
	while (n) {
		const ssize_t got = recv(fd, part, min_u64(n, sizeof(part)), 0);
		if (got <= 0)
			return;
		n -= (size_t)got;
	}
}

/* Gets the value of a header line of a request, or "". */
static void value_of(const char *head, const char *name, char value[32])
{
	const char *at = strstr(head, name);
	value[0] = '\0';
	if (at)
		sscanf(at + strlen(name), " %31s", value);
}

/* Serves one connection. Each answer tells what the request was. */
static void *serve(void *arg)
{
	const struct scene *scene = arg;
	const int fd = accept(scene->listener, NULL, NULL);
	char head[4096], method[32], length[32], mark[32], words[256];
	int body;
	while ((body = read_head(fd, head, sizeof(head))) >= 0) {
		sscanf(head, "%31s", method);
		value_of(head, "\r\nContent-Length:", length);
		value_of(head, "\r\nX-Mark:", mark);
		drain(fd, strtoul(length, NULL, 10) - (size_t)body);
		snprintf(words, sizeof(words),
			 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Seen: %s,%s,%s\r\n\r\n%s",
			 method, length, mark, strcmp(method, "HEAD") == 0 ? "" : "hi");
		if (send(fd, words, strlen(words), MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
	return NULL;
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	const struct http_options opt = {
		.connections = 1,
		.connect_ms = LONG_MS,
		.limits = {.first_byte_ms = LONG_MS,
			   .low_speed_s = LONG_MS / 1000,
			   .low_speed_bytes = 1},
	};
	scene->f = fixture_new(0);
	scene->io = http_io_new(&scene->f->env, &opt, NULL);
	assert_non_null(scene->io);
	scene->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(scene->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(scene->listener, 1), 0);
	assert_int_equal(getsockname(scene->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(scene->url, sizeof(scene->url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&scene->server, NULL, serve, scene), 0);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	http_io_free(scene->io);
	pthread_join(scene->server, NULL);
	close(scene->listener);
	fixture_free(scene->f);
	free(scene);
	return 0;
}

struct told {
	struct http_call call;
	char seen[128];
};

static void note_seen(struct http_call *call, const char *name, const char *value)
{
	struct told *t = (struct told *)call;
	if (strcmp(name, "X-Seen") == 0)
		snprintf(t->seen, sizeof(t->seen), "%s", value);
}

static void run_call(struct scene *scene, const char *method, size_t body_len, const char *mark)
{
	static const char body[70000];
	const struct piece piece = {body, body_len};
	const struct http_header header[] = {{"Expect", ""}, {"X-Mark", mark}};
	char want[128], length[32] = "";
	struct told t = {.call = {.method = method,
				  .url = scene->url,
				  .body_max = 1 << 20,
				  .on_header = note_seen}};
	if (body_len) {
		t.call.pieces = &piece;
		t.call.n_pieces = 1;
		t.call.body_len = body_len;
		snprintf(length, sizeof(length), "%zu", body_len);
	}
	assert_int_equal(http_call_set_header(&t.call, header, mark[0] ? 2 : 1), 0);
	http_run(scene->io, &t.call);
	assert_int_equal(t.call.end, HTTP_ANSWERED);
	assert_int_equal(t.call.status, 200);
	snprintf(want, sizeof(want), "%s,%s,%s", method, length, mark);
	assert_string_equal(t.seen, want);
	assert_int_equal(t.call.answer.len, strcmp(method, "HEAD") == 0 ? 0 : 2);
	http_call_release(&t.call);
}

/* Each method follows each one, over one connection and with one handle. */
static void test_nothing_is_left(void **state)
{
	static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
	enum { N = sizeof(methods) / sizeof(methods[0]) };
	for (size_t i = 0; i < (size_t)2 * N * N; i++) {
		const char *method = methods[i % 2 ? i / 2 % N : i / 2 / N];
		char mark[32] = "";
		if (i % 3)
			snprintf(mark, sizeof(mark), "m%zu", i);
		run_call(*state, method, method[0] == 'P' ? 1 + i * 700 : 0, mark);
	}
}

struct torn {
	struct source source;
	uint64_t fails_at, end; /* offsets; end: of the last byte that was read */
};

static int read_torn(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct torn *t = ctx;
	if (offset + n > t->fails_at)
		return err_set(err, -EIO, "the disk is broken");
	memset(buf, 'x', n);
	t->end = offset + n;
	return 0;
}

/* The body is read while it is sent. An error ends the call. */
static void test_a_body_that_is_read(void **state)
{
	enum { FROM = 5000, N = 3 << 20 };
	struct scene *scene = *state;
	struct torn torn = {.source = {.size = FROM + N, .read_at = read_torn, .ctx = &torn},
			    .fails_at = FROM + N};
	const struct source_part part = {.source = &torn.source, .offset = FROM, .n = N};
	const struct http_header header[] = {{"Expect", ""}};
	for (int fails = 0; fails < 2; fails++) {
		struct http_call put = {.method = "PUT",
					.url = scene->url,
					.body_max = 1 << 20,
					.part = &part,
					.body_len = part.n};
		assert_int_equal(http_call_set_header(&put, header, 1), 0);
		http_run(scene->io, &put);
		assert_int_equal(put.end, fails ? HTTP_UNREAD : HTTP_ANSWERED);
		assert_string_equal(put.reason, fails ? "the disk is broken" : "");
		assert_true(fails ? put.sent > 0 && put.sent < N : put.sent == N);
		assert_int_equal(torn.end, FROM + put.sent);
		http_call_release(&put);
		torn.fails_at = FROM + N - 1;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_body_that_is_read, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
