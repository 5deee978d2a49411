/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for libcurl's sockets and tells it which are ready, those of older calls first. A store
 * that is fast sends many bodies at the same time; taken in turn, all of them would be complete at
 * the end only, while the reader waits for the first. Who asks first gets first, what younger calls
 * are sent waits in the kernel, and TCP slows its sender down.
 *
 * Belongs to the I/O thread, but for http_poll_wake().
 */
#ifndef HTTP_POLL_H
#define HTTP_POLL_H

#include <curl/curl.h>

#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>

#include "socket.h"

struct http_poll {
	const struct env *env;
	CURLM *multi;
	const struct http_sockets *sockets;
	int epoll, event; /* eventfd */
	uint64_t due_ns;  /* when libcurl wants to be called in any case; UINT64_MAX: never */
	unsigned int passes;
};

/* Makes the multi handle report to this. env, multi and sockets are borrowed. */
int http_poll_init(struct http_poll *p, const struct env *env, CURLM *multi,
		   const struct http_sockets *sockets);
void http_poll_release(struct http_poll *p); /* after the multi handle is gone; also of zeroes */
/* Waits until something is ready or due, at most so long, and lets libcurl do it. True when nothing
 * that was there when it was called is left for the next time. */
bool http_poll_serve(struct http_poll *p, unsigned int most_ms);
/* Lets libcurl look at all sockets on which nothing has come since then: it may have received what
 * it has not given to the call that it is for (HTTP/2 does that), and no socket tells of it. */
void http_poll_nudge(struct http_poll *p, uint64_t since_ns);
/* Ends the waiting. Any thread. */
void http_poll_wake(struct http_poll *p);

#endif
