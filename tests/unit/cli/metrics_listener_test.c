/* SPDX-License-Identifier: Apache-2.0 */
/* The listener with real loopback sockets and an engine over an empty directory. */
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

#include "cli/metrics_listener.h"

struct scene {
	char dir[64];
	struct engine *engine;
	struct metrics_listener *listener;
	struct metrics_address address;
};

/* A port that is not in use. */
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

/* Reads until the listener closes the connection. False: it was reset. */
static bool read_all(int fd, char *out, size_t size)
{
	size_t n = 0;
	ssize_t got = 0;
	while (n + 1 < size && (got = recv(fd, out + n, size - n - 1, 0)) != 0) {
		if (got < 0)
			break;
		n += (size_t)got;
	}
	out[n] = '\0';
	close(fd);
	return got == 0;
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

static int status_of(const struct scene *s, const char *request)
{
	int status = 0;
	char *text = ask(s, request, strlen(request));
	sscanf(text, "HTTP/1.1 %d ", &status);
	free(text);
	return status;
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
		{"GET /stats?x=1 HTTP/1.0\r\n\r\n", "HTTP/1.", "Cache-Control: no-store\r\n",
		 "\r\n\r\n{\"mount\":{"},
		{"DELETE /stats HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n", ""},
		{"GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "Content-Length: 0\r\n", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = ask(*state, cases[i].request, strlen(cases[i].request));
		assert_int_equal(strncmp(text, cases[i].first, strlen(cases[i].first)), 0);
		assert_non_null(strstr(text, cases[i].type));
		assert_non_null(strstr(text, cases[i].body));
		assert_non_null(strstr(text, "Connection: close\r\n"));
		free(text);
	}
}

#define GET(target, fields) "GET " target " HTTP/1.1\r\n" fields "\r\n"

static void requests_have_their_status(void **state)
{
	static const struct {
		const char *request;
		int status;
	} cases[] = {
		{GET("/metrics", "Host: 127.0.0.1:9464\r\n"), 200},
		{GET("/metrics", "hOST:\t[::1]:1 \r\n"), 200},
		{"HEAD /stats HTTP/1.1\r\n\r\n", 200},
		{"POST /stats HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 405},
		{"get /metrics HTTP/1.1\r\n\r\n", 405},
		{GET("/", ""), 404},
		{GET("/metrics/", ""), 404},
		{GET("/Metrics", ""), 404},
		{GET("http://127.0.0.1/metrics", ""), 404},
		/* host names that the page of an attacker may have */
		{GET("/metrics", "Host: evil.example\r\n"), 421},
		{GET("/stats", "Host: evil.example\r\n"), 421},
		{GET("/metrics", "Host: localhost.evil.example\r\n"), 421},
		{GET("/metrics", "Host: 127.0.0.1.evil.example\r\n"), 421},
		{GET("/metrics", "Host: 127.0.0.1\r\nHost: evil\r\n"), 421},
		{GET("/metrics", "Host: evil\r\nHost: 127.0.0.1\r\n"), 421},
		{GET("/metrics", "Host:\r\n"), 421},
		{GET("/metrics", "Host: [::1\r\n"), 421},
		{GET("/metrics", "Host: []\r\n"), 421},
		{GET("/metrics", "Host: [::1].evil.example\r\n"), 421},
		{GET("/metrics", "Host: localhost:evil.example\r\n"), 421},
		{GET("/metrics", "Host: "
				 "[11111111111111111111111111111111111111111111111111111111]\r\n"),
		 421},
		/* not HTTP: closed without a response */
		{"\x16\x03\x01\x02\r\n\r\n", 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int status = status_of(*state, cases[i].request);
		if (status != cases[i].status)
			fail_msg("%s: %d, not %d", cases[i].request, status, cases[i].status);
	}
}

static void lengths_are_true(void **state)
{
	static const char get[] = "GET /metrics HTTP/1.1\r\n\r\n",
			  head[] = "HEAD /metrics HTTP/1.1\r\n\r\n";
	char *text = ask(*state, get, sizeof(get) - 1);
	size_t length = 0;
	const char *body = strstr(text, "\r\n\r\n") + 4;
	assert_int_equal(sscanf(strstr(text, "Content-Length:"), "Content-Length: %zu", &length),
			 1);
	assert_int_equal(strlen(body), length);
	free(text);
	text = ask(*state, head, sizeof(head) - 1);
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	free(text);
}

static void a_header_that_is_too_long_is_refused(void **state)
{
	enum { LENGTH = 50000 };
	char *request = malloc(LENGTH + 1), text[4096] = "";
	const int n = snprintf(request, LENGTH, "GET /metrics HTTP/1.1\r\nX: ");
	memset(request + n, 'x', LENGTH - (size_t)n);
	const int fd = connected(*state);
	assert_true(send(fd, request, LENGTH, MSG_NOSIGNAL) > 0);
	/* Closing a connection with unread bytes may reset it before the response arrives. */
	read_all(fd, text, sizeof(text));
	assert_null(strstr(text, " 200 "));
	free(request);
}

static uint64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Neither half a request nor silence delays the next client. */
static void idle_connections_do_not_delay_a_scrape(void **state)
{
	enum { IDLE = 40 };
	int idle[IDLE];
	for (int i = 0; i < IDLE; i++) {
		idle[i] = connected(*state);
		if (i % 2)
			assert_int_equal(send(idle[i], "GET /stats", 10, MSG_NOSIGNAL), 10);
	}
	const uint64_t started = now_ms();
	assert_int_equal(status_of(*state, "GET /stats HTTP/1.1\r\n\r\n"), 200);
	/* If the listener served them one after the other, they would take IDLE * METRICS_IDLE_S
	 * seconds. */
	assert_true(now_ms() - started < 20000);
	for (int i = 0; i < IDLE; i++)
		close(idle[i]);
}

/* More connections than the listener serves at once: the idle ones are closed, then it goes on. */
static void idle_connections_are_closed(void **state)
{
	int idle[METRICS_CONNECTIONS];
	char text[1024];
	for (int i = 0; i < METRICS_CONNECTIONS; i++)
		idle[i] = connected(*state);
	const uint64_t started = now_ms();
	assert_int_equal(status_of(*state, "GET /stats HTTP/1.1\r\n\r\n"), 200);
	assert_in_range(now_ms() - started, METRICS_IDLE_S * 500, 20000);
	for (int i = 0; i < METRICS_CONNECTIONS; i++) {
		assert_true(read_all(idle[i], text, sizeof(text)));
		assert_null(strstr(text, " 200 "));
	}
}

/* A client that disconnects during the response causes no signal. */
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
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* until it is accepted */
	metrics_listener_free(s->listener);
	s->listener = NULL;
	/* Less than the time after which the idle connection would be closed anyway. */
	assert_true(now_ms() - started < METRICS_IDLE_S * 900);
	close(silent);
}

static void a_taken_port_is_an_error(void **state)
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
		TEST(requests_have_their_status),
		TEST(lengths_are_true),
		TEST(a_header_that_is_too_long_is_refused),
		TEST(idle_connections_do_not_delay_a_scrape),
		TEST(idle_connections_are_closed),
		TEST(clients_may_leave),
		TEST(it_ends_at_once),
		TEST(a_taken_port_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
