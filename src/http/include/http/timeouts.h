/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a call may take. libcurl has no time-out for the first byte of an answer, and its limit
 * for slow transfers runs while a server thinks; so both are looked after here. Pure: the clock is
 * handed in.
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
	uint64_t since_ns;  /* the phase began, or it was fast enough */
	uint64_t looked_ns; /* the last look, and what had been sent and had come then */
	uint64_t bytes;
};

void http_timeouts_begin(struct http_timeouts *p, enum http_phase phase, uint64_t now_ns);
/* A look, some times a second at least. bytes: sent and received, together. True: it is over. */
bool http_timeouts_ends(struct http_timeouts *p, enum http_phase phase, uint64_t bytes,
			uint64_t now_ns, const struct http_limits *limits);

#endif
