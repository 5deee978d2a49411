/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency_proxy UPSTREAM_PORT LOG: an HTTP/1.1 reverse proxy on loopback that simulates a distant
 * server. It delays each request before it forwards it, and longer if it is the first one of its
 * connection, because the handshakes of TCP and TLS would precede it. It can limit the rate of the
 * bodies of all answers together. It forwards headers byte for byte, because signatures cover the
 * Host field, and bodies by splice(2). It prints "port=N" and serves until SIGTERM, or until its
 * parent ends.
 *
 * Requests for these paths control the proxy. They are neither delayed nor counted:
 *   /.proxy/delay?ms=N   sets the delay
 *   /.proxy/connect?ms=N sets what is added to the delay of the first request of a connection
 *   /.proxy/rate?mbit=N  sets the rate in 10^6 bits a second; 0 means no limit
 *   /.proxy/reset        clears counters and log, and starts the clock of the log
 *   /.proxy/stats        returns the counters as JSON; the log is complete up to this moment
 *
 * The log has a line for each finished request, with fields separated by tabs: the microseconds at
 * which it arrived, was forwarded, had the header of its answer, and ended; number of the
 * connection; method; target; range (or -); status; bytes of the answer's body.
 *
 * The rate is limited by a token bucket whose tokens are time on the link. A connection that has
 * data books TURN_US of the link after all other bookings, waits for the end of its booking, and
 * then forwards the data. A connection has one booking at a time, so connections with data share
 * the link equally, and a single connection has all of it. Up to CREDIT_US of idle time can be used
 * later; this is the largest burst.
 *
 * One thread serves each client connection and has one connection to the upstream server, so
 * requests on several connections wait concurrently. The lock in `shared` guards `shared`.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "http_peer.h"

enum {
	CONNECTIONS_MAX = 512,
	STACK = 256 << 10,
	PIPE = 1 << 20,
	TARGET_MAX = 4096,
	TURN_US = 500,
	CREDIT_US = 10000,
};

static const char own_prefix[] = "/.proxy/";
static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "DELETE", "other"};
enum { METHODS = sizeof(methods) / sizeof(*methods) };

struct shared {
	unsigned int upstream; /* port; constant */
	sem_t room;	       /* connections that may still be accepted */
	pthread_mutex_t lock;
	unsigned int delay_ms, connect_ms, rate_mbit;
	uint64_t booked_ns; /* end of the last booking */
	uint64_t start_us;  /* of the log's clock */
	FILE *log;
	uint64_t last_number; /* of a connection */
	uint64_t connections, requests[METHODS], bytes_up, bytes_down;
	unsigned int active, active_max; /* requests under way */
};

struct conn {
	struct shared *shared;
	uint64_t number; /* 0: has carried no request */
	int pipe[2];
	bool broken; /* cannot carry another request */
	struct http_peer client, server;
};

struct request {
	uint64_t arrived, sent, answered; /* microseconds */
	char method[16], target[TARGET_MAX], range[64];
	bool continues; /* "Expect: 100-continue" */
	struct http_framing body;
	uint64_t bytes_up;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t now_us(void)
{
	return now_ns() / 1000;
}

static void wait_until(uint64_t ns)
{
	const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
				   .tv_nsec = (long)(ns % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* ---- the rate ---- */

/* Largest number of body bytes that are forwarded in one step. */
static size_t turn(struct shared *s)
{
	pthread_mutex_lock(&s->lock);
	const size_t n = (size_t)s->rate_mbit * TURN_US / 8;
	pthread_mutex_unlock(&s->lock);
	return n > 0 && n < PIPE ? n : PIPE;
}

/* Waits until the link has transferred n bytes, which fit into one booking. */
static void pass_link(struct shared *s, size_t n)
{
	const uint64_t now = now_ns(), credit = (uint64_t)CREDIT_US * 1000;
	uint64_t until = 0;
	pthread_mutex_lock(&s->lock);
	if (s->rate_mbit > 0) {
		if (s->booked_ns + credit < now)
			s->booked_ns = now - credit;
		s->booked_ns += n * 8000 / s->rate_mbit;
		until = s->booked_ns;
	}
	pthread_mutex_unlock(&s->lock);
	if (until > now)
		wait_until(until);
}

/* ---- bytes from one side to the other ---- */

/* Forwards all bytes in the pipe. */
static int drain(int pipe, int to, size_t n)
{
	while (n > 0) {
		ssize_t moved = splice(pipe, NULL, to, NULL, n, SPLICE_F_MOVE);
		if (moved <= 0 && errno != EINTR)
			return -1;
		n -= moved > 0 ? (size_t)moved : 0;
	}
	return 0;
}

/* Forwards at most `want` bytes of a body, from the buffer or from the socket. Returns their
 * number, 0 at the end of the stream, or -1. */
static ssize_t relay_some(struct conn *c, struct http_peer *from, struct http_peer *to, size_t want)
{
	const bool answer = from == &c->server;
	const int one = 1;
	ssize_t got;
	if (from->have > 0) {
		const size_t n = from->have < want ? from->have : want;
		if (answer)
			pass_link(c->shared, n);
		if (http_write(to->fd, from->buf + from->at, n))
			return -1;
		http_take(from, n);
		return (ssize_t)n;
	}
	do {
		if (from->hurry)
			setsockopt(from->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
		got = splice(from->fd, NULL, c->pipe[1], NULL, want, SPLICE_F_MOVE);
	} while (got < 0 && errno == EINTR);
	if (got > 0 && answer)
		pass_link(c->shared, (size_t)got);
	return got > 0 && drain(c->pipe[0], to->fd, (size_t)got) ? -1 : got;
}

/* Forwards n bytes of a body, or all bytes up to the end of the stream. Returns their number, or
 * -1. */
static int64_t relay(struct conn *c, struct http_peer *from, struct http_peer *to, uint64_t n)
{
	const size_t step = from == &c->server ? turn(c->shared) : PIPE;
	uint64_t done = 0;
	while (done < n) {
		const ssize_t got = relay_some(c, from, to, n - done < step ? n - done : step);
		if (got == 0 && n == UINT64_MAX)
			break;
		if (got <= 0)
			return -1;
		done += (uint64_t)got;
	}
	return (int64_t)done;
}

static ssize_t relay_line(struct http_peer *from, struct http_peer *to, char *copy, size_t size)
{
	ssize_t n = http_line(from);
	if (n <= 0 || (size_t)n >= size || http_write(to->fd, from->buf + from->at, (size_t)n))
		return -1;
	memcpy(copy, from->buf + from->at, (size_t)n);
	copy[n] = '\0';
	http_take(from, (size_t)n);
	return n;
}

/* RFC 9112, section 7.1: sized chunks, a chunk of size 0, fields, an empty line. */
static int64_t relay_chunked(struct conn *c, struct http_peer *from, struct http_peer *to)
{
	char line[1024];
	int64_t total = 0;
	for (;;) {
		if (relay_line(from, to, line, sizeof(line)) < 0)
			return -1;
		uint64_t n = strtoull(line, NULL, 16);
		if (n == 0)
			break;
		if (n >= UINT32_MAX || relay(c, from, to, n) < 0 ||
		    relay_line(from, to, line, sizeof(line)) != 2)
			return -1;
		total += (int64_t)n;
	}
	for (;;) {
		ssize_t n = relay_line(from, to, line, sizeof(line));
		if (n <= 2)
			return n == 2 ? total : -1;
	}
}

static int64_t relay_body(struct conn *c, struct http_peer *from, struct http_peer *to,
			  const struct http_framing *body)
{
	switch (body->kind) {
	case HTTP_BODY_SIZED:
		return relay(c, from, to, body->length);
	case HTTP_BODY_CHUNKED:
		return relay_chunked(c, from, to);
	case HTTP_BODY_TO_END:
		c->broken = true;
		return relay(c, from, to, UINT64_MAX);
	default:
		return 0;
	}
}

/* ---- the proxy's own paths ---- */

static void reset_locked(struct shared *s)
{
	fflush(s->log);
	if (ftruncate(fileno(s->log), 0) == 0)
		rewind(s->log);
	memset(s->requests, 0, sizeof(s->requests));
	s->connections = s->bytes_up = s->bytes_down = 0;
	s->active_max = s->active;
	s->start_us = now_us();
}

static void print_stats_locked(const struct shared *s, FILE *out)
{
	fprintf(out,
		"{\"delay_ms\": %u, \"connect_ms\": %u, \"rate_mbit\": %u, \"connections\": "
		"%" PRIu64 ", \"active\": %u, \"active_max\": %u, ",
		s->delay_ms, s->connect_ms, s->rate_mbit, s->connections, s->active, s->active_max);
	fprintf(out, "\"bytes_up\": %" PRIu64 ", \"bytes_down\": %" PRIu64 ", \"requests\": {",
		s->bytes_up, s->bytes_down);
	for (size_t i = 0; i < METHODS; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", methods[i], s->requests[i]);
	fprintf(out, "}}\n");
}

static int serve_own(struct conn *c, const char *what)
{
	struct shared *s = c->shared;
	char body[1024] = "", answer[1280];
	FILE *out = fmemopen(body, sizeof(body), "w");
	bool known = true;
	if (!out)
		return -1;
	pthread_mutex_lock(&s->lock);
	if (strncmp(what, "delay?ms=", 9) == 0)
		s->delay_ms = (unsigned int)strtoul(what + 9, NULL, 10);
	else if (strncmp(what, "connect?ms=", 11) == 0)
		s->connect_ms = (unsigned int)strtoul(what + 11, NULL, 10);
	else if (strncmp(what, "rate?mbit=", 10) == 0)
		s->rate_mbit = (unsigned int)strtoul(what + 10, NULL, 10);
	else if (strcmp(what, "reset") == 0)
		reset_locked(s);
	else if (strcmp(what, "stats") != 0)
		known = false;
	fflush(s->log);
	print_stats_locked(s, out);
	pthread_mutex_unlock(&s->lock);
	fclose(out);
	int n = snprintf(answer, sizeof(answer),
			 "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
			 "Content-Length: %zu\r\n\r\n%s",
			 known ? "200 OK" : "404 Not Found", strlen(body), body);
	return http_write(c->client.fd, answer, (size_t)n);
}

/* ---- one request ---- */

static int parse_request(const char *head, size_t n, struct request *r)
{
	char expect[32];
	if (sscanf(head, "%15s %4095s HTTP/1.", r->method, r->target) != 2)
		return -1;
	if (!http_field(head, n, "range", r->range, sizeof(r->range)))
		strcpy(r->range, "-");
	r->continues = http_field(head, n, "expect", expect, sizeof(expect));
	r->body = http_framing(head, n);
	return 0;
}

/* Forwards the request. The client gets "100 Continue" before the upstream server has the request.
 */
static int send_request(struct conn *c, struct request *r, size_t head_n)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	if (c->server.fd < 0)
		c->server.fd = http_connect(c->shared->upstream);
	if (c->server.fd < 0)
		return -1;
	r->sent = now_us();
	if (http_write(c->server.fd, c->client.buf + c->client.at, head_n))
		return -1;
	http_take(&c->client, head_n);
	if (r->continues && http_write(c->client.fd, go_on, sizeof(go_on) - 1))
		return -1;
	int64_t n = relay_body(c, &c->client, &c->server, &r->body);
	r->bytes_up = n > 0 ? (uint64_t)n : 0;
	return n < 0 ? -1 : 0;
}

/* Forwards the answer, except for answers of status 100. Returns the length of the body. */
static int64_t pass_answer(struct conn *c, struct request *r, int *status)
{
	char value[64];
	ssize_t n;
	const char *head;
	for (;;) {
		n = http_head(&c->server);
		if (n <= 0)
			return -1;
		head = c->server.buf + c->server.at;
		*status = http_status(head, (size_t)n);
		if (*status < 100)
			return -1;
		if (*status >= 200)
			break;
		http_take(&c->server, (size_t)n);
	}
	r->answered = now_us();
	struct http_framing body = http_framing(head, (size_t)n);
	if (strcmp(r->method, "HEAD") == 0 || *status == 204 || *status == 304)
		body.kind = HTTP_BODY_NONE;
	else if (body.kind == HTTP_BODY_NONE)
		body.kind = HTTP_BODY_TO_END;
	if (http_field(head, (size_t)n, "connection", value, sizeof(value)) &&
	    strcasecmp(value, "close") == 0)
		c->broken = true;
	if (http_write(c->client.fd, head, (size_t)n))
		return -1;
	http_take(&c->server, (size_t)n);
	return relay_body(c, &c->server, &c->client, &body);
}

/* Counts a request as active; returns when it may be forwarded. */
static uint64_t begin(struct conn *c, uint64_t arrived_us)
{
	struct shared *s = c->shared;
	pthread_mutex_lock(&s->lock);
	s->active++;
	if (s->active_max < s->active)
		s->active_max = s->active;
	uint64_t delay_ms = s->delay_ms;
	if (!c->number) {
		c->number = ++s->last_number;
		s->connections++;
		delay_ms += s->connect_ms;
	}
	pthread_mutex_unlock(&s->lock);
	return (arrived_us + delay_ms * 1000) * 1000;
}

static void finish(const struct conn *c, const struct request *r, int status, int64_t bytes)
{
	struct shared *s = c->shared;
	const uint64_t done = now_us();
	size_t i = 0;
	while (i < METHODS - 1 && strcmp(r->method, methods[i]) != 0)
		i++;
	pthread_mutex_lock(&s->lock);
	s->active--;
	s->requests[i]++;
	s->bytes_up += r->bytes_up;
	s->bytes_down += bytes > 0 ? (uint64_t)bytes : 0;
	/* A request that began before the last reset does not belong to the current measurement. */
	if (bytes >= 0 && r->arrived >= s->start_us)
		fprintf(s->log,
			"%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
			"\t%s\t%s\t%s\t%d\t%" PRId64 "\n",
			r->arrived - s->start_us, r->sent - s->start_us, r->answered - s->start_us,
			done - s->start_us, c->number, r->method, r->target, r->range, status,
			bytes);
	pthread_mutex_unlock(&s->lock);
}

/* Returns 0 if the connection can carry another request. */
static int serve_request(struct conn *c)
{
	struct request r = {0};
	int64_t bytes = -1;
	int status = 0;
	ssize_t n = http_head(&c->client);
	r.arrived = now_us();
	if (n <= 0 || parse_request(c->client.buf + c->client.at, (size_t)n, &r))
		return -1;
	if (strncmp(r.target, own_prefix, sizeof(own_prefix) - 1) == 0) {
		http_take(&c->client, (size_t)n);
		return serve_own(c, r.target + sizeof(own_prefix) - 1);
	}
	wait_until(begin(c, r.arrived));
	if (send_request(c, &r, (size_t)n) == 0)
		bytes = pass_answer(c, &r, &status);
	finish(c, &r, status, bytes);
	return bytes < 0 || c->broken ? -1 : 0;
}

/* ---- connections ---- */

static void *serve(void *arg)
{
	struct conn *c = arg;
	while (serve_request(c) == 0)
		;
	if (c->server.fd >= 0)
		close(c->server.fd);
	close(c->client.fd);
	close(c->pipe[0]);
	close(c->pipe[1]);
	sem_post(&c->shared->room);
	free(c);
	return NULL;
}

static int start_thread(struct conn *c)
{
	pthread_attr_t attr;
	pthread_t thread;
	if (pthread_attr_init(&attr))
		return -1;
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int rc = pthread_create(&thread, &attr, serve, c);
	pthread_attr_destroy(&attr);
	return rc ? -1 : 0;
}

static int accept_one(struct shared *s, int listener)
{
	const int one = 1;
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	struct conn *c = calloc(1, sizeof(*c));
	if (!c || pipe2(c->pipe, O_CLOEXEC)) {
		free(c);
		close(fd);
		return -1;
	}
	/* A smaller pipe also works, with more steps. */
	fcntl(c->pipe[0], F_SETPIPE_SZ, PIPE);
	c->shared = s;
	c->client.fd = fd;
	c->server.fd = -1;
	c->server.hurry = true;
	if (start_thread(c) == 0)
		return 0;
	close(c->pipe[0]);
	close(c->pipe[1]);
	close(fd);
	free(c);
	return -1;
}

static int listen_anywhere(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, size) || listen(fd, CONNECTIONS_MAX) ||
	    getsockname(fd, (struct sockaddr *)&at, &size))
		return -1;
	printf("port=%u\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER, .start_us = now_us()};
	if (argc != 3) {
		fprintf(stderr, "usage: latency_proxy UPSTREAM_PORT LOG\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	s.upstream = (unsigned int)strtoul(argv[1], NULL, 10);
	s.log = fopen(argv[2], "we");
	int listener = listen_anywhere();
	if (!s.log || listener < 0 || sem_init(&s.room, 0, CONNECTIONS_MAX)) {
		perror("latency_proxy");
		return 1;
	}
	for (;;) {
		while (sem_wait(&s.room))
			;
		if (accept_one(&s, listener))
			sem_post(&s.room);
	}
}
