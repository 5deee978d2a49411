/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of an HTTP/1.1 connection for the benchmark's own programs: a blocking socket with a
 * buffer, heads read whole, a few fields looked up. It talks to the machine's own servers only, so
 * it refuses what it does not expect and repairs nothing.
 *
 * A peer belongs to one thread.
 */
#ifndef BENCH_HTTP_PEER_H
#define BENCH_HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HTTP_HEAD_MAX = 1 << 16 };

struct http_peer {
	int fd;
	bool hurry;	 /* acknowledge at once: the other side has Nagle's algorithm on */
	size_t at, have; /* what was received and is not used yet: buf[at, at + have) */
	char buf[HTTP_HEAD_MAX];
};

/* How long the body behind a head is. */
enum http_body { HTTP_BODY_NONE, HTTP_BODY_SIZED, HTTP_BODY_CHUNKED, HTTP_BODY_TO_END };

struct http_framing {
	enum http_body kind;
	uint64_t length; /* of HTTP_BODY_SIZED */
};

/* Connects to a port of 127.0.0.1, without delay for small writes. Returns the socket or -1. */
int http_connect(unsigned int port);

/* More bytes into an empty buffer. Returns 1, 0 at the end of the stream, -1 for an error. */
int http_fill(struct http_peer *p);

/* Receives up to the end of a head or of a line, which stays in the buffer at p->at. Returns its
 * length with the line ends, 0 at the end of the stream before its first byte, -1 for an error or
 * when it does not fit. */
ssize_t http_head(struct http_peer *p);
ssize_t http_line(struct http_peer *p);

/* Takes n bytes, which are in the buffer, from it. */
void http_take(struct http_peer *p, size_t n);

/* The value of a field of a head; false without it. */
bool http_field(const char *head, size_t n, const char *name, char *value, size_t size);

/* The three digits behind "HTTP/1.1 ", or 0. */
int http_status(const char *head, size_t n);

/* From the fields of a head; without any there is no body. */
struct http_framing http_framing(const char *head, size_t n);

/* Writes all of it, whatever it takes. Returns 0 or -1. */
int http_write(int fd, const void *data, size_t n);

#endif
