/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time-outs of a call. libcurl has none for the first byte of an answer, and its limit for slow
 * transfers also applies while the server prepares the answer. Pure: the caller passes the time.
 *
 *   phase       ends the call
 *   SENDING     slower than low_speed_bytes a second for low_speed_s
 *   AWAITING    no answer within first_byte_ms, from the call's start or the last byte of its body
 *   RECEIVING   as SENDING
 */
#ifndef HTTP_TIMEOUTS_H
#define HTTP_TIMEOUTS_H

#include <stdbool.h>
#include <stdint.h>

enum http_phase { HTTP_SENDING, HTTP_AWAITING, HTTP_RECEIVING };

struct http_limits {
	unsigned int first_byte_ms;
	unsigned int low_speed_s;
	unsigned int low_speed_bytes; /* per second */
};

struct http_timeouts {
	enum http_phase phase;
	uint64_t since_ns;   /* beginning of the phase, or the last time it was fast enough */
	uint64_t checked_ns; /* the last check, and the bytes at that time */
	uint64_t bytes;
};

void http_timeouts_begin(struct http_timeouts *p, enum http_phase phase, uint64_t now_ns);
/* Checks a call; to be called several times a second. bytes is the number of bytes sent plus
 * received. Returns true if the call has to end. */
bool http_timeouts_ends(struct http_timeouts *p, enum http_phase phase, uint64_t bytes,
			uint64_t now_ns, const struct http_limits *limits);

#endif
