/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport, with a server on loopback whose misbehaviour is the path of the request.
 *
 * The transport's clock is the machine's clock plus an offset, which a test increases while all
 * calls wait for a time-out, so that seconds pass in less time. Time-outs are far longer than a
 * thread waits for a processor on a busy machine, and a call counts as too long only if nothing but
 * the server can have delayed it. timeouts_test.c tests the exact limits with a false clock.
 */
#include "store_fixture.h"

#include <http/http.h>
#include <base/wait.h>

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

enum {
	CLIENTS_MAX = 64,
	UPLOAD = 16 << 20,
	MS = 1000000,
	LOW_SPEED_S = 5,
	LONG_MS = 120000,	   /* longer than any call of these tests */
	SILENCE_MS = 20 * LONG_MS, /* how long a silent server waits */
};

/* Each connection serves one request and announces this. Otherwise a request might be sent over a
 * connection that the server is closing, and would end differently. */
#define HEAD(length) "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " length "\r\n\r\n"
#define GREETING     HEAD("2") "hi"

/* ---- the server: a thread for each connection, which serves one request ---- */

struct server {
	int fd;
	const struct env *env; /* its clock */
	unsigned int n;
	pthread_t acceptor, thread[CLIENTS_MAX];
	atomic_bool stopping, released;
	atomic_uint held, let_go;
	char url[64];
};

struct client {
	struct server *server;
	int fd;
};

static void sleep_10_ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10 * MS}, NULL);
}

/* Waits on the transport's clock. False: the test is ending. */
static bool pause_ms(const struct server *s, int ms)
{
	const uint64_t until = s->env->now(s->env) + (uint64_t)ms * MS;
	while (s->env->now(s->env) < until && !atomic_load(&s->stopping))
		sleep_10_ms();
	return !atomic_load(&s->stopping);
}

static bool say(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0)
		return true;
	assert_true(errno == EPIPE || errno == ECONNRESET);
	return false;
}

/* Sends an error whose body never ends. */
static void send_endless_error(const struct server *s, int fd)
{
	char words[4096];
	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	say(fd, "HTTP/1.1 500 No\r\nConnection: close\r\n\r\n");
	while (pause_ms(s, 0) && say(fd, words))
		;
}

static size_t read_head(int fd, char *head, size_t size)
{
	size_t n = 0;
	while (n + 1 < size) {
		ssize_t got = recv(fd, head + n, size - n - 1, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
		head[n] = '\0';
		char *end = strstr(head, "\r\n\r\n");
		if (end)
			return n - (size_t)(end + 4 - head);
	}
	head[n] = '\0';
	return 0;
}

/* rest: the number of bytes of the body that have not arrived yet. */
static void read_slowly(const struct server *s, int fd, size_t rest)
{
	static _Thread_local char part[UPLOAD / 20];
	while (rest && pause_ms(s, 20)) {
		size_t want = min_u64(rest, sizeof(part));
		ssize_t got = recv(fd, part, want, MSG_WAITALL);
		if (got <= 0)
			return;
		rest -= (size_t)got;
	}
}

/* Answers when the test releases all held requests. */
static void hold(struct server *s, int fd)
{
	atomic_fetch_add(&s->held, 1);
	while (!atomic_load(&s->released) && pause_ms(s, 1))
		;
	say(fd, GREETING);
	atomic_fetch_add(&s->let_go, 1);
}

/* Answers a request, reads the next one over the same connection, and closes it without an answer.
 */
static void die_once(int fd)
{
	char head[4096], body[4096];
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
	size_t n = read_head(fd, head, sizeof(head));
	while (n < sizeof(body) && strstr(head, "PUT")) {
		const ssize_t got = recv(fd, body, sizeof(body) - n, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
}

static void serve(struct server *s, int fd)
{
	char head[4096], path[64] = "";
	const size_t body = read_head(fd, head, sizeof(head));
	sscanf(head, "%*s /%63s", path);
	if (strcmp(path, "silent") == 0 || strcmp(path, "greedy") == 0) {
		pause_ms(s, SILENCE_MS);
	} else if (strcmp(path, "thinks") == 0) {
		if (pause_ms(s, (LOW_SPEED_S + 1) * 1000))
			say(fd, GREETING);
	} else if (strcmp(path, "loris") == 0) {
		say(fd, HEAD("1000000"));
		while (pause_ms(s, 50))
			say(fd, "x");
	} else if (strcmp(path, "held") == 0) {
		hold(s, fd);
	} else if (strcmp(path, "patient") == 0) {
		read_slowly(s, fd, UPLOAD - body);
		say(fd, HEAD("0"));
	} else if (strcmp(path, "cut") == 0) {
		say(fd, HEAD("10") "half");
	} else if (strcmp(path, "laments") == 0) {
		send_endless_error(s, fd);
	} else if (strcmp(path, "dies-once") == 0) {
		die_once(fd);
	} else if (strcmp(path, "garbage") == 0) {
		say(fd, "\1\2\3\4\r\n\r\n");
	} else if (strcmp(path, "hangs-up") != 0) {
		say(fd, GREETING);
	}
}

static void *serve_client(void *arg)
{
	const struct client c = *(struct client *)arg;
	free(arg);
	serve(c.server, c.fd);
	close(c.fd);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct server *s = arg;
	while (!atomic_load(&s->stopping)) {
		struct pollfd ready = {.fd = s->fd, .events = POLLIN};
		if (poll(&ready, 1, 20) != 1 || s->n == CLIENTS_MAX)
			continue;
		struct client *c = malloc(sizeof(*c));
		*c = (struct client){.server = s, .fd = accept(s->fd, NULL, NULL)};
		pthread_create(&s->thread[s->n++], NULL, serve_client, c);
	}
	return NULL;
}

static int listen_on_loopback(int backlog, char *url, size_t size)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(url, size, "http://127.0.0.1:%d/", ntohs(at.sin_port));
	return fd;
}

/* ---- the client ---- */

struct scene {
	struct fixture *f;
	struct env env;			     /* that of f, with the clock of this test */
	uint64_t (*now)(const struct env *); /* the machine's clock */
	atomic_uint_fast64_t ahead_ns;
	struct http_io *io;
	struct http_stats *meter;
	struct server server;
};

static uint64_t scene_now(const struct env *env)
{
	const struct scene *scene = env->ctx;
	return scene->now(env) + atomic_load(&scene->ahead_ns);
}

static int set_scene(void **state, unsigned int connections, unsigned int connect_ms)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct err err = ERR_INIT;
	scene->meter = http_stats_new();
	const struct http_options opt = {.connections = connections,
					 .connect_ms = connect_ms,
					 .limits = {.first_byte_ms = 400,
						    .low_speed_s = LOW_SPEED_S,
						    .low_speed_bytes = 1024},
					 .meter = scene->meter};
	scene->f = fixture_new(0);
	scene->now = scene->f->env.now;
	scene->env = scene->f->env;
	scene->env.now = scene_now;
	scene->env.ctx = scene;
	scene->server.env = &scene->env;
	scene->io = http_io_new(&scene->env, &opt, &err);
	if (!scene->io)
		fail_msg("%s", err.msg);
	scene->server.fd = listen_on_loopback(32, scene->server.url, sizeof(scene->server.url));
	pthread_create(&scene->server.acceptor, NULL, accept_all, &scene->server);
	*state = scene;
	return 0;
}

static int setup(void **state)
{
	return set_scene(state, 32, LONG_MS);
}

static int setup_to_connect_soon(void **state)
{
	return set_scene(state, 32, 300);
}

static int setup_one_connection(void **state)
{
	return set_scene(state, 1, LONG_MS);
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	static struct http_stats_counts metered;
	http_io_free(scene->io);
	http_stats_read(scene->meter, &metered);
	assert_int_equal(metered.connections, 0);
	http_stats_free(scene->meter);
	atomic_store(&scene->server.stopping, true);
	pthread_join(scene->server.acceptor, NULL);
	for (unsigned int i = 0; i < scene->server.n; i++)
		pthread_join(scene->server.thread[i], NULL);
	close(scene->server.fd);
	fixture_free(scene->f);
	free(scene);
	return 0;
}

struct timed {
	struct piece piece;
	struct http_call call;
	const struct env *env;
	void *of; /* for `done` */
	char url[128];
	uint64_t ended_ns;
};

static void ended(struct http_call *call)
{
	struct timed *t = call->arg;
	t->ended_ns = t->env->now(t->env);
	wait_done(t->of);
}

static const struct expectation {
	const char *path, *method;
	unsigned int first_byte_ms;
	enum http_end end;
	const char *reason;
	unsigned int from_ms; /* the least duration */
} expectations[] = {
	/* Time-outs are short only for calls that have to time out. */
	{"ok", "GET", LONG_MS, HTTP_ANSWERED, "", 0},
	{"ok", "HEAD", LONG_MS, HTTP_ANSWERED, "", 0},
	{"silent", "GET", 0, HTTP_TIMED_OUT, "no answer in time", 400},
	{"silent", "GET", 1200, HTTP_TIMED_OUT, "no answer in time", 1200},
	/* The limit for slow transfers does not apply before the answer. */
	{"thinks", "GET", LONG_MS, HTTP_ANSWERED, "", (LOW_SPEED_S + 1) * 1000},
	{"loris", "GET", LONG_MS, HTTP_TIMED_OUT, "the server sends the body too slowly",
	 LOW_SPEED_S * 1000},
	{"greedy", "PUT", LONG_MS, HTTP_TIMED_OUT, "the server receives the body too slowly",
	 LOW_SPEED_S * 1000},
	{"patient", "PUT", LONG_MS, HTTP_ANSWERED, "", 200},
	{"cut", "GET", LONG_MS, HTTP_TRUNCATED, "", 0},
	{"laments", "GET", LONG_MS, HTTP_ANSWERED, "", 0},
	{"garbage", "GET", LONG_MS, HTTP_BROKEN, "", 0},
	{"hangs-up", "GET", LONG_MS, HTTP_BROKEN, "", 0},
};
enum {
	EXPECTATIONS = sizeof(expectations) / sizeof(expectations[0]),
	WAITS_FROM_MS = 1000, /* calls of at least this duration end by the clock */
};

static void prepare(struct scene *scene, const struct expectation *e, const char *server,
		    const char *body, void (*done)(struct http_call *call), void *of,
		    const atomic_bool *cancelled, struct timed *t)
{
	const bool uploads = strcmp(e->method, "PUT") == 0;
	snprintf(t->url, sizeof(t->url), "%s%s", server, e->path);
	t->env = &scene->env;
	t->of = of;
	t->piece = (struct piece){body, UPLOAD};
	t->call = (struct http_call){.method = e->method,
				     .url = t->url,
				     .pieces = &t->piece,
				     .n_pieces = uploads ? 1 : 0,
				     .body_len = uploads ? UPLOAD : 0,
				     .body_max = 1 << 20,
				     .cancelled = cancelled_by(cancelled),
				     .first_byte_ms = e->first_byte_ms,
				     .done = done,
				     .arg = t};
}

static void start(struct scene *scene, const struct expectation *e, const char *server,
		  const char *body, void (*done)(struct http_call *call), void *of,
		  const atomic_bool *cancelled, struct timed *t)
{
	prepare(scene, e, server, body, done, of, cancelled, t);
	http_submit(scene->io, &t->call);
}

static void check(const struct expectation *e, struct timed *t, uint64_t started)
{
	/* 10 ms: libcurl and this test read their clocks at different times. */
	const uint64_t took_ms = (t->ended_ns - started) / MS;
	if (t->call.end != e->end || !strstr(t->call.reason, e->reason) ||
	    took_ms + 10 < e->from_ms || took_ms > LONG_MS)
		fail_msg("%s %s: end %d '%s' after %u ms", e->method, e->path, (int)t->call.end,
			 t->call.reason, (unsigned int)took_ms);
	http_call_release(&t->call);
}

/* Each call is counted once, and with a status only if its answer was complete. */
static void check_meter(const struct http_stats *meter)
{
	static struct http_stats_counts n;
	uint64_t answered = 0;
	for (size_t i = 0; i < EXPECTATIONS; i++)
		answered += expectations[i].end == HTTP_ANSWERED;
	http_stats_read(meter, &n);
	assert_int_equal(n.connections_opened, EXPECTATIONS);
	assert_int_equal(n.requests[HTTP_GET][200] + n.requests[HTTP_GET][500], answered);
	assert_int_equal(n.requests[HTTP_GET][0], EXPECTATIONS - answered);
	assert_int_equal(n.seconds[HTTP_GET].count, EXPECTATIONS);
	assert_in_range(n.bytes_out, UPLOAD, 2 * UPLOAD); /* one upload was complete */
}

static void count_end(struct http_call *call)
{
	struct timed *t = call->arg;
	t->ended_ns = t->env->now(t->env);
	atomic_fetch_add((atomic_uint *)t->of, 1);
}

/* Makes the clock run ten times as fast until n calls have ended. */
static void hurry(struct scene *scene, const atomic_uint *n_ended, unsigned int n)
{
	while (atomic_load(n_ended) < n) {
		sleep_10_ms();
		atomic_fetch_add(&scene->ahead_ns, 90 * (uint64_t)MS);
	}
}

static void await_count(const atomic_uint *count, unsigned int n)
{
	for (int i = 0; atomic_load(count) < n; i++) {
		assert_true(i < LONG_MS);
		nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
	}
}

/* All calls run in parallel and do not disturb each other. The clock runs faster when only those
 * calls are left that end by the clock. */
static void test_ends(void **state)
{
	struct scene *scene = *state;
	struct timed *t = calloc(EXPECTATIONS, sizeof(*t));
	auto_free char *body = calloc(1, UPLOAD);
	atomic_uint at_once = 0, later = 0;
	unsigned int n_later = 0;
	const uint64_t started = scene->env.now(&scene->env);
	for (size_t i = 0; i < EXPECTATIONS; i++) {
		const struct expectation *e = &expectations[i];
		const bool waits = e->from_ms >= WAITS_FROM_MS;
		n_later += waits;
		start(scene, e, scene->server.url, body, count_end, waits ? &later : &at_once, NULL,
		      &t[i]);
	}
	await_count(&at_once, EXPECTATIONS - n_later);
	hurry(scene, &later, n_later);
	for (size_t i = 0; i < EXPECTATIONS; i++)
		check(&expectations[i], &t[i], started);
	free(t);
	check_meter(scene->meter);
}

/* Blocks the I/O thread until the test lets it continue. */
struct stop {
	struct waiter reached, leave;
};

static void stop_here(struct http_call *call)
{
	struct timed *t = call->arg;
	struct stop *stop = t->of;
	wait_done(&stop->reached);
	wait_all(&stop->leave);
}

enum { HELD = 24 };
struct order {
	struct waiter waiter;
	unsigned int n;
	struct timed *calls[HELD];
};

static void ended_in_turn(struct http_call *call)
{
	struct timed *t = call->arg;
	struct order *order = t->of;
	order->calls[order->n++] = t;
	wait_done(&order->waiter);
}

/* Blocks the I/O thread for ms on its clock; meanwhile all answers arrive. */
static void block_thread(struct scene *scene, unsigned int first_byte_ms, unsigned int ms,
			 bool in_order)
{
	const struct expectation held = {"held", "GET", first_byte_ms, HTTP_ANSWERED, "", 0},
				 ok = {"ok", "GET", LONG_MS, HTTP_ANSWERED, "", 0};
	struct timed t[HELD], last;
	struct order order = {0};
	struct stop stop;
	wait_init(&order.waiter, HELD);
	wait_init(&stop.reached, 1);
	wait_init(&stop.leave, 1);
	for (unsigned int i = 0; i < HELD; i++) {
		start(scene, &held, scene->server.url, NULL, ended_in_turn, &order, NULL, &t[i]);
		await_count(&scene->server.held, i + 1);
	}
	/* libcurl serves a call 200 ms after its start, ready or not. */
	pause_ms(&scene->server, 500);
	start(scene, &ok, scene->server.url, NULL, stop_here, &stop, NULL, &last);
	wait_all(&stop.reached);
	atomic_store(&scene->server.released, true);
	await_count(&scene->server.let_go, HELD);
	atomic_fetch_add(&scene->ahead_ns, ms * (uint64_t)MS);
	wait_done(&stop.leave);
	wait_all(&order.waiter);
	for (unsigned int i = 0; i < HELD; i++) {
		assert_int_equal(t[i].call.end, HTTP_ANSWERED);
		if (in_order)
			assert_ptr_equal(order.calls[i], &t[i]);
		http_call_release(&t[i].call);
	}
	http_call_release(&last.call);
}

/* If several answers have arrived, the oldest call ends first. */
static void test_the_oldest_call_first(void **state)
{
	block_thread(*state, LONG_MS, 0, true);
}

/* Queued calls start in the order of their priorities, calls of one priority in their order. */
static void test_the_most_urgent_call_first(void **state)
{
	static const struct expectation held = {"held", "GET", LONG_MS, HTTP_ANSWERED, "", 0},
					ok = {"ok", "GET", LONG_MS, HTTP_ANSWERED, "", 0};
	static const unsigned int priority[] = {2, 1, 0, 1, 0}, turn[] = {2, 4, 1, 3, 0};
	enum { WAITING = sizeof(priority) / sizeof(priority[0]) };
	struct scene *scene = *state;
	struct timed t[WAITING], first, urgent;
	struct order order = {0};
	struct waiter waiter;
	wait_init(&waiter, 1);
	wait_init(&order.waiter, WAITING);
	start(scene, &held, scene->server.url, NULL, ended, &waiter, NULL, &first);
	await_count(&scene->server.held, 1);
	for (int i = 0; i < WAITING; i++) {
		prepare(scene, &ok, scene->server.url, NULL, ended_in_turn, &order, NULL, &t[i]);
		t[i].call.priority = priority[i];
		http_submit(scene->io, &t[i].call);
	}
	/* This one does not wait for the only connection. */
	prepare(scene, &ok, scene->server.url, NULL, ended, &waiter, NULL, &urgent);
	urgent.call.is_urgent = true;
	http_run(scene->io, &urgent.call);
	assert_int_equal(urgent.call.end, HTTP_ANSWERED);
	http_call_release(&urgent.call);
	atomic_store(&scene->server.released, true);
	wait_all(&waiter);
	wait_all(&order.waiter);
	for (int i = 0; i < WAITING; i++) {
		assert_ptr_equal(order.calls[i], &t[turn[i]]);
		assert_int_equal(t[i].call.end, HTTP_ANSWERED);
		http_call_release(&t[i].call);
	}
	http_call_release(&first.call);
}

/* An answer that has arrived but was not received yet, as after SIGSTOP, does not time out. */
static void test_answers_that_have_arrived_are_not_late(void **state)
{
	enum { PATIENCE_MS = 20000 };
	block_thread(*state, PATIENCE_MS, PATIENCE_MS + 500, false);
}

/* A host that does not accept connections, here because its queue is full. */
static void test_connecting_times_out(void **state)
{
	enum { FILLERS = 4 };
	static const struct expectation e = {"x", "GET", 0, HTTP_TIMED_OUT, "", 300};
	struct scene *scene = *state;
	struct timed t;
	struct waiter waiter;
	char url[64];
	int filler[FILLERS], port;
	const int fd = listen_on_loopback(0, url, sizeof(url));
	assert_int_equal(sscanf(url, "http://127.0.0.1:%d", &port), 1);
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	for (int i = 0; i < FILLERS; i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(filler[i], (const struct sockaddr *)&at, sizeof(at));
	}
	wait_init(&waiter, 1);
	const uint64_t started = scene->env.now(&scene->env);
	start(scene, &e, url, NULL, ended, &waiter, NULL, &t);
	wait_all(&waiter);
	check(&e, &t, started);
	for (int i = 0; i < FILLERS; i++)
		close(filler[i]);
	close(fd);
}

/* The answer of a proxy to CONNECT is not an answer to the call. There is no TLS server behind this
 * proxy. */
static void test_answer_of_a_proxy_is_ignored(void **state)
{
	static const struct expectation e = {"x", "GET", LONG_MS, HTTP_BROKEN, "", 0};
	struct scene *scene = *state;
	struct timed t;
	struct waiter waiter;
	setenv("https_proxy", scene->server.url, 1);
	wait_init(&waiter, 1);
	const uint64_t started = scene->env.now(&scene->env);
	start(scene, &e, "https://no-such-host.invalid/", NULL, ended, &waiter, NULL, &t);
	wait_all(&waiter);
	unsetenv("https_proxy");
	assert_false(t.call.answering);
	assert_int_equal(t.call.status, 0);
	check(&e, &t, started);
}

/* A cancelled call ends half a second later, unless the cancellation is withdrawn before; a call
 * that has not started ends at once. */
static void test_cancelled_calls_end(void **state)
{
	static const struct expectation
		off = {"silent", "GET", LONG_MS, HTTP_CANCELLED, "the caller has cancelled", 500},
		body = {"loris", "GET", LONG_MS, HTTP_CANCELLED, "the caller has cancelled", 500},
		held = {"held", "GET", LONG_MS, HTTP_ANSWERED, "", 0},
		late = {"ok", "GET", LONG_MS, HTTP_CANCELLED, "the caller has cancelled", 0};
	struct scene *scene = *state;
	struct timed t[4];
	atomic_bool cancelled[4] = {false, false, false, true};
	struct waiter waiter, last;
	wait_init(&waiter, 2);
	wait_init(&last, 2);
	start(scene, &off, scene->server.url, NULL, ended, &waiter, cancelled, &t[0]);
	start(scene, &body, scene->server.url, NULL, ended, &waiter, cancelled + 1, &t[1]);
	start(scene, &held, scene->server.url, NULL, ended, &last, cancelled + 2, &t[2]);
	await_count(&scene->server.held, 1);
	pause_ms(&scene->server, 300);
	const uint64_t since = scene->env.now(&scene->env);
	for (int i = 0; i < 3; i++)
		atomic_store(&cancelled[i], true);
	pause_ms(&scene->server, 150);
	atomic_store(&cancelled[2], false);
	/* This is not checked if the machine is so busy that half a second has passed. */
	const bool withdrawn = scene->env.now(&scene->env) - since < 400 * (uint64_t)MS;
	wait_all(&waiter);
	check(&off, &t[0], since);
	check(&body, &t[1], since);
	pause_ms(&scene->server, 700);
	start(scene, &late, scene->server.url, NULL, ended, &last, cancelled + 3, &t[3]);
	atomic_store(&scene->server.released, true);
	wait_all(&last);
	if (withdrawn)
		check(&held, &t[2], since);
	http_call_release(&t[2].call);
	check(&late, &t[3], since);
	assert_int_equal(scene->server.n, 3);
}

static void run_call(struct scene *scene, struct http_call *call, const char *path)
{
	char url[128];
	snprintf(url, sizeof(url), "%s%s", scene->server.url, path);
	call->url = url;
	call->body_max = 1 << 20;
	call->first_byte_ms = LONG_MS;
	http_run(scene->io, call);
	assert_int_equal(call->end, HTTP_ANSWERED);
	assert_int_equal(call->status, 200);
}

static int read_zeros(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memset(buf, 0, n);
	return 0;
}

static void send_twice(struct scene *scene, struct http_call *put)
{
	struct http_call get = {.method = "GET"};
	run_call(scene, &get, "dies-once");
	assert_false(get.resent);
	for (int again = 0; again < 2; again++) {
		run_call(scene, put, "ok");
		assert_int_equal(put->resent, !again);
		http_call_release(put);
		assert_false(put->resent);
	}
	http_call_release(&get);
}

/* The server has received a request, and the connection ends without an answer. libcurl sends the
 * request again if it was not the first one of the connection. */
static void test_a_body_that_is_sent_twice(void **state)
{
	static const char body[4096];
	static struct source source = {.size = sizeof(body), .read_at = read_zeros};
	const struct piece piece = {body, sizeof(body)};
	const struct source_part part = {.source = &source, .n = sizeof(body)};
	struct http_call put = {
		.method = "PUT", .pieces = &piece, .n_pieces = 1, .body_len = sizeof(body)};
	struct http_call put_part = {.method = "PUT", .part = &part, .body_len = sizeof(body)};
	send_twice(*state, &put);
	send_twice(*state, &put_part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_oldest_call_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_most_urgent_call_first,
						setup_one_connection, teardown),
		cmocka_unit_test_setup_teardown(test_answers_that_have_arrived_are_not_late, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_connecting_times_out, setup_to_connect_soon,
						teardown),
		cmocka_unit_test_setup_teardown(test_answer_of_a_proxy_is_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancelled_calls_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_body_that_is_sent_twice, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
