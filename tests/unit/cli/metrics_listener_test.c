/* SPDX-License-Identifier: Apache-2.0 */
/* The listener over real sockets on loopback, in front of an engine over an empty directory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "metrics_listener.h"

struct scene {
	char dir[64];
	struct engine *engine;
	struct metrics_listener *listener;
	struct metrics_address address;
};

/* A port that nobody has. */
static int free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct engine_options opt;
	struct err err = ERR_INIT;
	char port[16];
	strcpy(s->dir, "/tmp/listener-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	engine_options_init(&opt);
	opt.bucket = s->dir;
	opt.workers = 0;
	opt.allow_empty = true;
	if (engine_open(&opt, &s->engine, &err))
		fail_msg("%s", err.msg);
	snprintf(port, sizeof(port), "%d", free_port());
	assert_int_equal(metrics_address_parse(port, &s->address, NULL), 0);
	s->listener = metrics_listener_new(&s->address, s->engine, &err);
	if (!s->listener)
		fail_msg("%s", err.msg);
	assert_int_equal(metrics_listener_start(s->listener, NULL), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	metrics_listener_free(s->listener);
	engine_close(s->engine);
	rmdir(s->dir);
	free(s);
	return 0;
}

static int connected(const struct scene *s)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&s->address.address, s->address.n),
			 0);
	return fd;
}

/* All that comes until the other side closes; false when it did so with a reset. */
static bool read_all(int fd, char *out, size_t size)
{
	size_t n = 0;
	ssize_t got;
	while (n + 1 < size && (got = recv(fd, out + n, size - n - 1, 0)) != 0) {
		if (got < 0)
			return false;
		n += (size_t)got;
	}
	out[n] = '\0';
	close(fd);
	return true;
}

static char *ask(const struct scene *s, const char *request, size_t n)
{
	enum { SIZE = 1 << 18 };
	char *text = malloc(SIZE);
	const int fd = connected(s);
	assert_int_equal(send(fd, request, n, MSG_NOSIGNAL), n);
	assert_true(read_all(fd, text, SIZE));
	return text;
}

static void both_documents_are_served(void **state)
{
	static const struct {
		const char *request, *first, *type, *body;
	} cases[] = {
		{"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK\r\n",
		 "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
		 "\r\n\r\n# HELP hsmount_"},
		{"GET /stats HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n",
		 "Content-Type: application/json\r\n", "\r\n\r\n{\"mount\":{"},
		{"DELETE /stats HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n", ""},
		{"GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "Content-Length: 0\r\n", ""},
		{"nonsense\r\n\r\n", "HTTP/1.1 400 ", "Connection: close\r\n", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = ask(*state, cases[i].request, strlen(cases[i].request));
		assert_int_equal(strncmp(text, cases[i].first, strlen(cases[i].first)), 0);
		assert_non_null(strstr(text, cases[i].type));
		assert_non_null(strstr(text, cases[i].body));
		free(text);
	}
}

static void lengths_are_true(void **state)
{
	static const char get[] = "GET /metrics HTTP/1.1\r\n\r\n",
			  head[] = "HEAD /metrics HTTP/1.1\r\n\r\n";
	char *text = ask(*state, get, sizeof(get) - 1);
	size_t told = 0;
	const char *body = strstr(text, "\r\n\r\n") + 4;
	assert_int_equal(sscanf(strstr(text, "Content-Length:"), "Content-Length: %zu", &told), 1);
	assert_int_equal(strlen(body), told);
	free(text);
	text = ask(*state, head, sizeof(head) - 1);
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	free(text);
}

/* The answer arrives, although much more was sent than anybody reads. */
static void too_much_is_answered(void **state)
{
	enum { MUCH = 50000 };
	char *much = malloc(MUCH);
	memset(much, 'x', MUCH);
	char *text = ask(*state, much, MUCH);
	assert_int_equal(strncmp(text, "HTTP/1.1 431 ", 13), 0);
	free(text);
	free(much);
}

static uint64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Who says nothing, or half a request, is hung up on; who waits behind is served then. */
static void patience_ends(void **state)
{
	static const char get[] = "GET /stats HTTP/1.1\r\n\r\n";
	char text[64];
	const uint64_t started = now_ms();
	const int silent = connected(*state);
	assert_int_equal(send(silent, get, 10, MSG_NOSIGNAL), 10);
	char *served = ask(*state, get, sizeof(get) - 1);
	assert_int_equal(strncmp(served, "HTTP/1.1 200 ", 13), 0);
	assert_in_range(now_ms() - started, METRICS_PATIENCE_MS - 100, 20000);
	assert_true(read_all(silent, text, sizeof(text)));
	assert_string_equal(text, "");
	free(served);
}

/* A client that goes away while it is answered raises no signal. */
static void clients_may_leave(void **state)
{
	static const char get[] = "GET /metrics HTTP/1.1\r\n\r\n";
	const struct linger reset = {.l_onoff = 1};
	for (int i = 0; i < 20; i++) {
		const int fd = connected(*state);
		assert_int_equal(send(fd, get, sizeof(get) - 1, MSG_NOSIGNAL), sizeof(get) - 1);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
	}
	char *text = ask(*state, get, sizeof(get) - 1);
	assert_int_equal(strncmp(text, "HTTP/1.1 200 ", 13), 0);
	free(text);
}

static void it_ends_at_once(void **state)
{
	struct scene *s = *state;
	const uint64_t started = now_ms();
	const int silent = connected(s);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* it is being served */
	metrics_listener_free(s->listener);
	s->listener = NULL;
	assert_true(now_ms() - started < METRICS_PATIENCE_MS / 2);
	close(silent);
}

static void a_port_that_is_taken_is_told(void **state)
{
	struct scene *s = *state;
	struct err err = ERR_INIT;
	assert_null(metrics_listener_new(&s->address, s->engine, &err));
	assert_int_equal(err.code, -EADDRINUSE);
	assert_non_null(strstr(err.msg, "metrics_listen: port "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_documents_are_served),
		TEST(lengths_are_true),
		TEST(too_much_is_answered),
		TEST(patience_ends),
		TEST(clients_may_leave),
		TEST(it_ends_at_once),
		TEST(a_port_that_is_taken_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
