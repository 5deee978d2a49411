/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for libcurl's sockets and reports the ready ones to libcurl, those of the oldest calls
 * first. A fast store sends many bodies at the same time. If they were received in turn, all of
 * them would be complete only at the end, while the reading program waits for the first. The data
 * of younger calls waits in the kernel instead, and TCP slows down its sender.
 *
 * Used by the I/O thread only, except http_poll_wake().
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
	uint64_t due_ns;  /* the time of libcurl's next timer; UINT64_MAX if there is none */
	unsigned int passes;
};

/* Installs the callbacks of the multi handle. env, multi and sockets are borrowed. */
int http_poll_init(struct http_poll *p, const struct env *env, CURLM *multi,
		   const struct http_sockets *sockets);
/* Called after the multi handle is freed. A zeroed struct may be released, too. */
void http_poll_release(struct http_poll *p);
/* Waits until a socket is ready or a timer is due, at most most_ms, and lets libcurl serve them.
 * Returns true if all sockets that were ready have been served, so that none is left for the next
 * call. */
bool http_poll_serve(struct http_poll *p, unsigned int most_ms);
/* Lets libcurl serve all sockets on which nothing was received since since_ns. With HTTP/2 libcurl
 * may hold received data of a call without reporting it, and the socket is not ready then. */
void http_poll_nudge(struct http_poll *p, uint64_t since_ns);
/* Makes http_poll_serve() return. Any thread may call it. */
void http_poll_wake(struct http_poll *p);

#endif
