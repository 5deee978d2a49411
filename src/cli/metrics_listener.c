/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listener. Its thread waits in poll() only, always for `stop` as well. Sockets do not block.
 * Threads: what the constructor made is constant; `stop` is an eventfd.
 */
#include "metrics_listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <base/mem.h>

#include "metrics_request.h"

enum {
	BACKLOG = 16,
	DRAIN_MAX = 64 << 10, /* bytes read and thrown away behind an answer */
};

struct metrics_listener {
	struct engine *engine;
	int fd, stop;
	bool running;
	pthread_t thread;
};

/* ---- a connection ---- */

struct connection {
	const struct metrics_listener *l;
	int fd;
	int64_t deadline_ms;
};

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* False when the time is over, or everybody's is. */
static bool wait_for(const struct connection *c, short events)
{
	struct pollfd fds[] = {{.fd = c->fd, .events = events},
			       {.fd = c->l->stop, .events = POLLIN}};
	for (;;) {
		const int64_t left = c->deadline_ms - now_ms();
		const int n = left > 0 ? poll(fds, 2, (int)left) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		return n > 0 && !fds[1].revents;
	}
}

/* Bytes; 0 at the end, when the time is over or the connection is broken. */
static size_t receive(const struct connection *c, char *buf, size_t n)
{
	while (wait_for(c, POLLIN)) {
		const ssize_t got = recv(c->fd, buf, n, 0);
		if (got >= 0)
			return (size_t)got;
		if (errno != EINTR && errno != EAGAIN)
			break;
	}
	return 0;
}

static bool send_all(const struct connection *c, const char *p, size_t n)
{
	while (n && wait_for(c, POLLOUT)) {
		const ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);
		if (sent > 0) {
			p += sent;
			n -= (size_t)sent;
		} else if (sent < 0 && errno != EINTR && errno != EAGAIN) {
			break;
		}
	}
	return n == 0;
}

static bool read_request(const struct connection *c, struct metrics_request *request)
{
	char buf[METRICS_REQUEST_MAX];
	size_t n = 0, got;
	while ((got = receive(c, buf + n, sizeof(buf) - n))) {
		n += got;
		if (metrics_request_parse(buf, n, request))
			return true;
	}
	return false;
}

static void answer(const struct connection *c, const struct metrics_request *request)
{
	static const char *const types[] = {
		[ENGINE_REPORT_JSON] = "application/json",
		[ENGINE_REPORT_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	};
	auto_free char *text = NULL, *head = NULL;
	size_t n = 0;
	int status = request->status;
	if (status == 200 && engine_report(c->l->engine, request->kind, &text, &n, NULL))
		status = 500;
	const bool ok = status == 200;
	const int head_n =
		asprintf(&head,
			 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
			 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
			 metrics_status(status), ok ? types[request->kind] : "text/plain", n,
			 status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (head_n < 0) {
		head = NULL;
		return;
	}
	if (send_all(c, head, (size_t)head_n) && ok && !request->head)
		send_all(c, text, n);
}

/* Closing a socket that has unread bytes resets the connection, and the answer may be lost. */
static void finish(const struct connection *c)
{
	char buf[METRICS_REQUEST_MAX];
	size_t sum = 0, got;
	shutdown(c->fd, SHUT_WR);
	while (sum < DRAIN_MAX && (got = receive(c, buf, sizeof(buf))))
		sum += got;
}

static void serve(const struct metrics_listener *l, int fd)
{
	const struct connection c = {l, fd, now_ms() + METRICS_PATIENCE_MS};
	struct metrics_request request;
	if (read_request(&c, &request)) {
		answer(&c, &request);
		finish(&c);
	}
	close(fd);
}

/* ---- the thread ---- */

static void *run(void *arg)
{
	const struct metrics_listener *l = arg;
	struct pollfd fds[] = {{.fd = l->fd, .events = POLLIN}, {.fd = l->stop, .events = POLLIN}};
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			return NULL;
		const int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			serve(l, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			poll(&fds[1], 1, 100); /* it will still be there then */
	}
}

/* ---- life ---- */

static int bind_socket(struct metrics_listener *l, const struct metrics_address *a, struct err *err)
{
	const int on = 1;
	l->fd = socket(a->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	l->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->fd < 0 || l->stop < 0)
		return err_errno(err, -errno, "a socket for metrics");
	/* Connections that ended a moment ago do not keep the port from us. */
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(l->fd, (const struct sockaddr *)&a->address, a->n) || listen(l->fd, BACKLOG)) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->address;
		/* The port is at the same place in both kinds of address. */
		return err_errno(err, -errno, "metrics_listen: port %u", ntohs(v4->sin_port));
	}
	return 0;
}

struct metrics_listener *metrics_listener_new(const struct metrics_address *address,
					      struct engine *engine, struct err *err)
{
	struct metrics_listener *l = calloc(1, sizeof(*l));
	if (!l) {
		err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	*l = (struct metrics_listener){.engine = engine, .fd = -1, .stop = -1};
	if (bind_socket(l, address, err)) {
		metrics_listener_free(l);
		return NULL;
	}
	return l;
}

int metrics_listener_start(struct metrics_listener *l, struct err *err)
{
	sigset_t all, old;
	/* Signals are for others. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	const int rc = -pthread_create(&l->thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	l->running = rc == 0;
	return rc ? err_errno(err, rc, "the thread that serves metrics") : 0;
}

void metrics_listener_free(struct metrics_listener *l)
{
	const uint64_t one = 1;
	if (!l)
		return;
	if (l->running && write(l->stop, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(l->thread, NULL);
	if (l->fd >= 0)
		close(l->fd);
	if (l->stop >= 0)
		close(l->stop);
	free(l);
}
