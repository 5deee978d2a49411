/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens connections before they are needed, because a new connection costs two round trips with
 * TLS 1.3. libcurl opens a connection only for a request: connections of CURLOPT_CONNECT_ONLY are
 * never used for other requests, and a request that is cancelled before it is sent closes its
 * connection. So each connection is opened by the cheapest request: a HEAD of the bucket. Its
 * answer has no body, needs no permission but that to list the bucket, and is not used. If the
 * server refuses the request, the connection is open all the same.
 *
 * With HTTP/2 one connection is enough, so nothing is sent.
 *
 * Nor is anything sent while the service does not answer (reach.c).
 *
 * Any thread. The connections that are being opened at a time are those of one call of
 * store_s3_connect(): `opening` is their number.
 */
#include "s3_internal.h"

#include <stdlib.h>

enum {
	FEW = 6, /* an open of a domain begins with five requests */
	FIRST_BYTE_MS = 5000,
};

/* Runs in the I/O thread. */
static void opened(struct http_call *http)
{
	struct s3_request *call = (struct s3_request *)http;
	struct s3_store *s = call->s;
	s3_request_release(call);
	free(call);
	atomic_fetch_sub(&s->opening, 1);
}

static bool open_one(struct s3_store *s)
{
	const struct s3_spec req = {.method = "HEAD", .first_byte_ms = FIRST_BYTE_MS};
	struct s3_request *call = malloc(sizeof(*call));
	if (!call || s3_request_init(call, s, &req, NULL)) {
		if (call)
			s3_request_release(call);
		free(call);
		return false;
	}
	call->http.opens_connection = true;
	call->cancelled = cancelled_by(&s->closing);
	call->http.priority = HTTP_PRIORITIES - 1;
	call->http.done = opened;
	http_submit(s->io, &call->http);
	return true;
}

static void open_some(struct s3_store *s, unsigned int n)
{
	const unsigned int has = http_io_connections(s->io);
	const unsigned int missing = n > has ? n - has : 0;
	unsigned int none = 0, i = 0;
	if (!missing || atomic_load(&s->reach->is_silent) ||
	    !atomic_compare_exchange_strong(&s->opening, &none, missing))
		return;
	while (i < missing && open_one(s))
		i++;
	atomic_fetch_sub(&s->opening, missing - i);
}

void store_s3_connect(struct store *store, unsigned int n)
{
	struct s3_store *s = s3_store_of(store);
	atomic_store(&s->connected_ns, s->base.env->now(s->base.env));
	open_some(s, n);
}

void s3_connect_few(struct s3_store *s)
{
	const uint64_t pause_ns = (uint64_t)HTTP_IDLE_S * 1000000000;
	uint64_t last = atomic_load(&s->connected_ns);
	if (!last || http_io_connections(s->io) >= FEW)
		return;
	const uint64_t now = s->base.env->now(s->base.env);
	if (now - last > pause_ns && atomic_compare_exchange_strong(&s->connected_ns, &last, now))
		open_some(s, FEW);
}
