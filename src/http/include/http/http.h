/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP calls side by side over libcurl: one I/O thread owns the multi handle, its connections and
 * every call between http_submit() and the call's `done`. It is started by the first call, so a
 * transport may be made before a daemon forks. A server that offers HTTP/2 gets all calls over one
 * connection, as far as it allows. Knows nothing of S3.
 *
 * A call: zero a struct http_call, set method and url (and a body, headers, limits), and hand it to
 * http_submit(). When `done` is called, `end` says how it ended; if that is HTTP_ANSWERED, `status`
 * and `answer` are the server's. http_call_release() then frees what the call holds:
 *
 *   struct http_call call = {.method = "GET", .url = url, .body_max = 1 << 20};
 *   call.metered = HTTP_GET;
 *   http_run(io, &call);
 *   if (call.end == HTTP_ANSWERED && call.status == 200)
 *           use call.answer
 *   http_call_release(&call);
 *
 * The transport repeats nothing and follows no redirect: a failure or a redirect is an answer.
 *
 * Threads: any thread may submit. http_run() blocks, so it is not for the I/O thread. `done` and
 * on_header() run in the I/O thread; if that thread cannot be started, `done` runs in the thread
 * that submits.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdatomic.h>

#include <hsmount/err.h>
#include <base/env.h>
#include <base/mem.h>
#include <http/stats.h>
#include <http/timeouts.h>

struct curl_slist;

enum {
	HTTP_PRIORITIES = 3,
	HTTP_REASON_MAX = 256, /* as libcurl's CURL_ERROR_SIZE */
	HTTP_ERROR_BODY_MAX = 64 << 10,
	/* So much of an error is read, to use its connection again. One that goes on is cut: it may
	 * never end. */
	HTTP_ERROR_DRAIN_MAX = 1 << 20,
};

/* How a call ended, below HTTP's status. */
enum http_end {
	HTTP_ANSWERED,	/* status, header and body are complete */
	HTTP_TRUNCATED, /* the body is shorter than its Content-Length */
	HTTP_TOO_LONG,	/* the body is longer than body_max */
	HTTP_TIMED_OUT,
	HTTP_REFUSED, /* TLS: the server is not who it should be; asking again will not help */
	HTTP_BROKEN,  /* no connection, reset, … */
	HTTP_UNKNOWN, /* the host's name has no address */
	HTTP_CANCELLED,
	HTTP_NO_MEMORY,
};

struct http_call {
	/* set by the caller, constant until done */
	const char *method;
	const char *url;
	struct curl_slist *header;  /* http_call_add_header() */
	const struct piece *pieces; /* the body of the request */
	size_t n_pieces;
	uint64_t body_len; /* of all pieces */
	uint64_t body_max; /* bytes of the answer's body when its status is below 300, else
			      HTTP_TOO_LONG; of the body of an error, what exceeds
			      HTTP_ERROR_BODY_MAX is dropped */
	const atomic_bool *cancelled; /* NULL, or: once true for half a second, the call ends */
	unsigned int priority;	      /* below HTTP_PRIORITIES; the lower is served first */
	unsigned int first_byte_ms;   /* in place of the transport's limit; 0: that one */
	enum http_method metered;     /* as what the transport's meter counts it */
	/* A range was asked for. Should the server ignore it and send the whole object (200), its
	 * first skip bytes are dropped and the next keep bytes kept. */
	bool ranged;
	uint64_t skip, keep;
	/* One header line of the answer; may be NULL. value: without spaces at its ends. */
	void (*on_header)(struct http_call *call, const char *name, const char *value);
	/* In the I/O thread: short, and never waiting. */
	void (*done)(struct http_call *call);
	void *arg;

	/* the result */
	enum http_end end;
	char reason[HTTP_REASON_MAX]; /* of another end than HTTP_ANSWERED */
	long status;		      /* 0: no answer came */
	struct bytes answer;	      /* body */
	int64_t content_length;	      /* -1: not told */

	/* the I/O thread's */
	struct http_call *next;
	struct http_io *io;
	void *easy; /* libcurl's handle */
	struct http_sockets *sockets;
	int fd; /* -1: not known */
	struct http_timeouts timeouts;
	uint64_t cancelled_ns;		    /* since when; 0: it is not */
	uint64_t serial;		    /* the older, the lower */
	uint64_t started_ns, skipped, came; /* came: bytes of the body, also those not kept */
	uint64_t sent;
	size_t populated; /* of the answer's memory */
	bool answering, acknowledged, too_long, cut, late, off;
};

struct http_options {
	unsigned int connections; /* calls at once, each with a connection where there is no
				     HTTP/2; more wait their turn */
	unsigned int connect_ms;  /* to connect, with TLS */
	struct http_limits limits;
	const char *ca_bundle;	  /* absolute path, borrowed; NULL: the system's */
	struct http_stats *meter; /* borrowed; may be NULL */
};

struct http_io;
/* NULL with err set. env is borrowed. */
struct http_io *http_io_new(const struct env *env, const struct http_options *opt, struct err *err);
/* No call is under way. */
void http_io_free(struct http_io *io);
/* call, and what it points to, is the I/O thread's until done is called. */
void http_submit(struct http_io *io, struct http_call *call);
/* Submits and waits; done is not to be set. */
void http_run(struct http_io *io, struct http_call *call);
/* Ends the I/O thread; connections stay. The next call starts it again. No call is under way and
 * none is submitted meanwhile. For a constructor that talks to the server before a fork. */
void http_io_rest(struct http_io *io);
/* Adds a line "Name: value", which is copied; "Name:" switches off a header that libcurl would add
 * by itself. -ENOMEM. */
int http_call_add_header(struct http_call *call, const char *line);
/* Releases the answer and the header of the request, which is overwritten first because it may hold
 * a signature or a token. For a call that is to be used again or thrown away. */
void http_call_release(struct http_call *call);

#endif
