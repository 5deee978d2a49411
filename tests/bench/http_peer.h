/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of an HTTP/1.1 connection for the programs of the benchmark: a blocking socket with a
 * buffer, functions that read a whole header and look up fields in it. It connects only to servers
 * on this machine, so it refuses unexpected input and repairs nothing.
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
	bool hurry;	 /* acknowledge at once, because the peer uses Nagle's algorithm */
	size_t at, have; /* received bytes that are not used yet: buf[at, at + have) */
	char buf[HTTP_HEAD_MAX];
};

/* How the length of the body is given. */
enum http_body { HTTP_BODY_NONE, HTTP_BODY_SIZED, HTTP_BODY_CHUNKED, HTTP_BODY_TO_END };

struct http_framing {
	enum http_body kind;
	uint64_t length; /* of HTTP_BODY_SIZED */
};

/* Connects to a port of 127.0.0.1, without delay for small writes. Returns the socket or -1. */
int http_connect(unsigned int port);

/* Receives bytes into an empty buffer. Returns 1, 0 at the end of the stream, -1 for an error. */
int http_fill(struct http_peer *p);

/* Receives a header or a line, which stays in the buffer at p->at. Returns its length including
 * line ends, 0 if the stream ends before its first byte, -1 for an error or if it does not fit. */
ssize_t http_head(struct http_peer *p);
ssize_t http_line(struct http_peer *p);

/* Removes n bytes from the buffer, which holds them. */
void http_take(struct http_peer *p, size_t n);

/* Finds the value of a header field; false if there is none. */
bool http_field(const char *head, size_t n, const char *name, char *value, size_t size);

/* The three digits after "HTTP/1.1 ", or 0. */
int http_status(const char *head, size_t n);

/* Determines the body from the header fields. Without such fields there is no body. */
struct http_framing http_framing(const char *head, size_t n);

/* Writes all bytes. Returns 0 or -1. */
int http_write(int fd, const void *data, size_t n);

#endif
