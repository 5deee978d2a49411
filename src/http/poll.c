/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoll is level-triggered: it reports a socket as long as it is ready. So a ready socket may be
 * left for a later pass.
 *
 * libcurl stops to watch a socket after each answer, and watches it again with the next request.
 * epoll goes on to watch it meanwhile, which saves three system calls for each request. If an idle
 * socket becomes ready, because the server closes the connection, epoll stops to watch it. The
 * kernel does so when the socket is closed.
 */
#include "poll.h"

#include <base/mem.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	READY_MAX = 1280, /* ready descriptors of one pass, with the eventfd */
	AT_ONCE = 16,	  /* sockets that one pass serves */
	ALL_EVERY = 16,	  /* every 16th pass serves all, so that none starves */
};

struct ready {
	int fd, events;
	uint64_t id;
	uint64_t age; /* the lower, the older */
};

/* ---- callbacks of libcurl ---- */

static int watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	const struct http_poll *p = arg;
	struct http_socket *s = http_socket_used(p->sockets, fd);
	struct epoll_event event = {.data.fd = fd};
	if (s)
		s->idle = what == CURL_POLL_REMOVE;
	if (what == CURL_POLL_REMOVE) {
		if (!s || !s->events)
			epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		event.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		event.events |= EPOLLOUT;
	if (s && event.events && s->events == event.events)
		return 0;
	/* If this fails, http_poll_nudge() still serves the socket. */
	int rc = epoll_ctl(p->epoll, EPOLL_CTL_MOD, fd, &event);
	if (rc && errno == ENOENT)
		rc = epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event);
	if (s)
		s->events = rc ? 0 : event.events;
	return 0;
}

static int set_timer(CURLM *multi, long ms, void *arg)
{
	struct http_poll *p = arg;
	p->due_ns = ms < 0 ? UINT64_MAX : p->env->now(p->env) + (uint64_t)ms * 1000000;
	return 0;
}

/* ---- construction ---- */

int http_poll_init(struct http_poll *p, const struct env *env, CURLM *multi,
		   const struct http_sockets *sockets)
{
	*p = (struct http_poll){
		.env = env,
		.multi = multi,
		.sockets = sockets,
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.due_ns = UINT64_MAX,
	};
	struct epoll_event event = {.events = EPOLLIN, .data.fd = p->event};
	if (p->epoll < 0 || p->event < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->event, &event))
		return -errno;
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
	curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, p);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(multi, CURLMOPT_TIMERDATA, p);
	return 0;
}

void http_poll_release(struct http_poll *p)
{
	if (!p->env)
		return;
	if (p->epoll >= 0)
		close(p->epoll);
	if (p->event >= 0)
		close(p->event);
}

void http_poll_wake(struct http_poll *p)
{
	eventfd_write(p->event, 1);
}

/* ---- serving ---- */

static int by_age(const void *a, const void *b)
{
	const struct ready *x = a, *y = b;
	return (x->age > y->age) - (x->age < y->age);
}

/* Called when a socket is ready. Returns true if libcurl does not wait for it. */
static bool drop_idle(const struct http_poll *p, int fd)
{
	struct http_socket *s = http_socket_used(p->sockets, fd);
	if (!s || !s->idle)
		return false;
	epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL);
	s->events = 0;
	return true;
}

/* Fills ready with the ready sockets, those of the oldest calls first. Returns their number. */
static size_t wait_ready(struct http_poll *p, struct ready *ready, int timeout_ms)
{
	struct epoll_event events[READY_MAX];
	size_t n = 0;
	const int got = epoll_wait(p->epoll, events, READY_MAX, timeout_ms);
	for (int i = 0; i < got; i++) {
		const int fd = events[i].data.fd;
		eventfd_t ignored;
		if (fd == p->event) {
			eventfd_read(fd, &ignored);
			continue;
		}
		if (drop_idle(p, fd))
			continue;
		ready[n++] = (struct ready){
			.fd = fd,
			.events = (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)
					   ? CURL_CSELECT_IN
					   : 0) |
				  (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
				  (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0),
			.id = http_socket_id(p->sockets, fd),
			.age = http_socket_age(p->sockets, fd),
		};
	}
	qsort(ready, n, sizeof(*ready), by_age);
	return n;
}

static int time_left_ms(const struct http_poll *p, unsigned int most_ms)
{
	const uint64_t now = p->env->now(p->env);
	if (p->due_ns <= now)
		return 0;
	return (int)min_u64(div_up_u64(p->due_ns - now, 1000000), most_ms);
}

bool http_poll_serve(struct http_poll *p, unsigned int most_ms)
{
	struct ready ready[READY_MAX];
	int running = 0;
	const size_t all = wait_ready(p, ready, time_left_ms(p, most_ms));
	size_t n = all;
	if (p->due_ns <= p->env->now(p->env)) {
		p->due_ns = UINT64_MAX;
		curl_multi_socket_action(p->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	if (++p->passes % ALL_EVERY)
		n = min_u64(n, AT_ONCE);
	for (size_t i = 0; i < n; i++) {
		/* The descriptor may belong to another socket by now. */
		if (http_socket_id(p->sockets, ready[i].fd) != ready[i].id)
			continue;
		curl_multi_socket_action(p->multi, ready[i].fd, ready[i].events, &running);
		/* An answer that is complete is acknowledged by the next request. */
		const struct http_socket *s = http_socket_used(p->sockets, ready[i].fd);
		if (!s || !s->idle)
			http_socket_acknowledge(p->sockets, ready[i].fd);
	}
	return n == all && all < READY_MAX - 1;
}

/* Iterates backwards: if libcurl closes a socket meanwhile, the last socket of the table moves to
 * its index. */
void http_poll_nudge(struct http_poll *p, uint64_t since_ns)
{
	int running = 0;
	for (unsigned int i = p->sockets->n; i-- > 0;) {
		if (i < p->sockets->n && p->sockets->v[i].received_ns < since_ns)
			curl_multi_socket_action(p->multi, p->sockets->v[i].fd, CURL_CSELECT_IN,
						 &running);
	}
}
