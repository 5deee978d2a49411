/* SPDX-License-Identifier: Apache-2.0 */
/* Time-outs of a call. Pure. */
#include <http/timeouts.h>

static const uint64_t ms = 1000000, second = 1000000000;

void http_timeouts_begin(struct http_timeouts *p, enum http_phase phase, uint64_t now_ns)
{
	*p = (struct http_timeouts){.phase = phase, .since_ns = now_ns, .checked_ns = now_ns};
}

/* Returns true if the speed since the last check is sufficient. If a body is sent again from its
 * beginning, bytes decreases, and this is not progress. */
static bool fast_enough(const struct http_timeouts *p, uint64_t bytes, uint64_t now_ns,
			unsigned int per_second)
{
	const uint64_t span_ms = (now_ns - p->checked_ns) / ms;
	return bytes > p->bytes && (bytes - p->bytes) * 1000 >= span_ms * per_second;
}

bool http_timeouts_ends(struct http_timeouts *p, enum http_phase phase, uint64_t bytes,
			uint64_t now_ns, const struct http_limits *limits)
{
	if (phase != p->phase ||
	    (phase != HTTP_AWAITING && fast_enough(p, bytes, now_ns, limits->low_speed_bytes)))
		p->since_ns = now_ns;
	p->phase = phase;
	p->checked_ns = now_ns;
	p->bytes = bytes;
	return now_ns - p->since_ns >=
	       (phase == HTTP_AWAITING ? limits->first_byte_ms * ms : limits->low_speed_s * second);
}
