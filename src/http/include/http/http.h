/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel HTTP calls over libcurl. One I/O thread owns the multi handle, its connections and every
 * call between http_submit() and the call's `done`. The first call starts the thread, so a
 * transport may be created before a daemon forks. If the server offers HTTP/2, all calls share one
 * connection, as far as the server allows. Nothing in this directory is specific to S3.
 *
 * A call: zero a struct http_call, set method and url (and a body, headers, limits), and hand it to
 * http_submit(). When `done` is called, `end` is the reason of the end. If it is HTTP_ANSWERED,
 * `status` and `answer` are the server's. http_call_release() then frees what the call holds:
 *
 *   struct http_call call = {.method = "GET", .url = url, .body_max = 1 << 20};
 *   call.metered = HTTP_GET;
 *   http_run(io, &call);
 *   if (call.end == HTTP_ANSWERED && call.status == 200)
 *           use call.answer
 *   http_call_release(&call);
 *
 * The transport repeats no request and follows no redirect: both are reported to the caller.
 *
 * Threads: any thread may submit. http_run() blocks, so it is not for the I/O thread. `done` and
 * on_header() run in the I/O thread; if that thread cannot be started, `done` runs in the thread
 * that submits.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <hsmount/err.h>
#include <base/cancelled.h>
#include <base/env.h>
#include <base/mem.h>
#include <base/source.h>
#include <http/stats.h>
#include <http/timeouts.h>

struct curl_slist;

enum {
	HTTP_PRIORITIES = 3,
	HTTP_URGENT = 2,
	HTTP_IDLE_S = 15, /* an idle connection may be closed after this time; AWS waits 20 s */
	HTTP_REASON_MAX = 256, /* libcurl's CURL_ERROR_SIZE */
	HTTP_ERROR_BODY_MAX = 64 << 10,
	/* The body of an error is read up to this length, so that its connection can be used again.
	 * A longer one is cut, because it may never end. */
	HTTP_ERROR_DRAIN_MAX = 1 << 20,
};

/* How a call ended, below HTTP's status. */
enum http_end {
	HTTP_ANSWERED,	/* status, header and body are complete */
	HTTP_TRUNCATED, /* the body is shorter than its Content-Length */
	HTTP_TOO_LONG,	/* the body is longer than body_max */
	HTTP_TIMED_OUT,
	HTTP_REFUSED, /* the server's certificate or the URL is not valid; a retry does not help */
	HTTP_BROKEN,  /* no connection, reset, … */
	HTTP_UNKNOWN, /* the host's name has no address */
	HTTP_CANCELLED,
	HTTP_NO_MEMORY,
	HTTP_UNREAD, /* the body of the request could not be read */
};

struct http_call {
	/* set by the caller, constant until `done` is called */
	const char *method;
	const char *url;
	struct curl_slist *header;  /* http_call_set_header() */
	const struct piece *pieces; /* the body of the request */
	size_t n_pieces;
	/* The body instead of pieces, or NULL. The I/O thread reads it, perhaps more than once. */
	const struct source_part *part;
	uint64_t body_len; /* of the part, or of all pieces */
	uint64_t body_max; /* of the body of an answer with a status below 300; a longer one gives
			      HTTP_TOO_LONG. Bodies of errors are cut to HTTP_ERROR_BODY_MAX */
	struct cancelled cancelled; /* the call ends if it is cancelled for 0.5 s */
	unsigned int priority;	    /* below HTTP_PRIORITIES; lower numbers are served first */
	/* 0, or about the length of the answer's body. In the latter case the call waits for its
	 * turn, so that not all paced calls begin at the same time (pace.h). */
	uint64_t paced;
	unsigned int first_byte_ms; /* replaces the transport's limit unless 0 */
	enum http_method metered;   /* the counter of the transport's statistics */
	/* The request has a range. If the server ignores it and sends the whole object (200), the
	 * first `skip` bytes of the body are dropped and the next `keep` bytes kept. */
	bool ranged;
	uint64_t skip, keep;
	/* The call opens a connection even if another one is idle. With HTTP/2, where all calls
	 * share one connection, it ends with HTTP_CANCELLED and is not sent. */
	bool opens_connection;
	/* The call is sent at once over a new connection, also with HTTP/2, and if all connections
	 * are in use. At most HTTP_URGENT at a time; further ones wait for a connection. */
	bool is_urgent;
	/* Called for each header line of the answer; may be NULL. value has no spaces around it. */
	void (*on_header)(struct http_call *call, const char *name, const char *value);
	/* Called in the I/O thread: must be short and must not block. */
	void (*done)(struct http_call *call);
	void *arg;

	/* the result */
	enum http_end end;
	char reason[HTTP_REASON_MAX]; /* unless end is HTTP_ANSWERED */
	long status;		      /* 0 if there is no answer */
	struct bytes answer;	      /* body */
	int64_t content_length;	      /* -1 if unknown */
	/* libcurl has sent the body once more over a new connection: the server may have received
	 * the request twice. */
	bool resent;

	size_t header_size; /* bytes */

	/* for the I/O thread */
	struct http_call *next;
	struct http_io *io;
	void *easy; /* libcurl's handle */
	struct http_sockets *sockets;
	int fd;		       /* -1 if unknown */
	unsigned int attempts; /* of libcurl to send the request */
	struct http_timeouts timeouts;
	uint64_t cancelled_ns; /* when the cancellation was detected, or 0 */
	uint64_t serial;       /* older calls have lower serials */
	uint64_t submitted_ns, started_ns, skipped;
	uint64_t received; /* bytes of the answer's body, including bytes not kept */
	uint64_t sent;	   /* bytes of the request's body */
	size_t populated;  /* bytes of the answer's memory */
	bool answering, acknowledged, too_long, cut, late, is_cancelled, unread;
};

struct http_options {
	unsigned int connections; /* calls at once, each with a connection unless HTTP/2 is used;
				     other calls are queued */
	unsigned int connect_ms;  /* limit for connecting, including TLS */
	struct http_limits limits;
	const char *ca_bundle;	  /* absolute path, borrowed; NULL for the system's certificates */
	struct http_stats *meter; /* borrowed; may be NULL */
};

struct http_io;
/* Returns NULL with err set if it fails. env is borrowed. */
struct http_io *http_io_new(const struct env *env, const struct http_options *opt, struct err *err);
/* Waits until all calls are done. The caller has cancelled those that are not. */
void http_io_free(struct http_io *io);
/* The I/O thread owns the call and all that it points to until `done` is called. */
void http_submit(struct http_io *io, struct http_call *call);
/* Submits a call and blocks until it is done. The caller does not set `done` and `arg`. */
void http_run(struct http_io *io, struct http_call *call);
/* Ends the I/O thread and keeps the connections. The next call starts the thread again. All calls
 * must be done, and no thread may submit one meanwhile. A program that sends requests before it
 * forks needs this. */
void http_io_stop_thread(struct http_io *io);
/* Returns the number of connections that are open, as far as that is known: 0 if no answer has
 * arrived for HTTP_IDLE_S seconds, because servers close idle connections; UINT_MAX with HTTP/2,
 * where calls need no further connections. Any thread may call it. */
unsigned int http_io_connections(struct http_io *io);
struct http_header {
	const char *name, *value;
};
/* Sets the header of the request, which is copied. An empty value removes a header that libcurl
 * adds by itself. To be called once. Fails with -ENOMEM. */
int http_call_set_header(struct http_call *call, const struct http_header *header, size_t n);
/* Releases the answer and the header of the request; overwrites the header first, because it may
 * contain a signature or a token. The call may then be submitted again. */
void http_call_release(struct http_call *call);

#endif
