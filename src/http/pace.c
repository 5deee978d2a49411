/* SPDX-License-Identifier: Apache-2.0 */
/* See pace.h. */
#include "pace.h"

#include <base/mem.h>

enum { NS_PER_S = 1000000000, LENGTH_MAX = 64 << 20 };

uint64_t http_pace_wait(const struct http_pace *p, uint64_t now_ns)
{
	const uint64_t from = now_ns + HTTP_PACE_EARLY_NS;
	return p->next_ns > from ? p->next_ns - from : 0;
}

void http_pace_begin(struct http_pace *p, uint64_t length, uint64_t submitted_ns)
{
	const uint64_t pace = min_u64(max_u64(2 * p->rate, HTTP_PACE_MIN), HTTP_PACE_MAX);
	if (length)
		p->next_ns = max_u64(p->next_ns, submitted_ns) +
			     min_u64(length, LENGTH_MAX) * NS_PER_S / pace;
}

void http_pace_measure(struct http_pace *p, uint64_t received, uint64_t now_ns)
{
	const uint64_t elapsed = now_ns - min_u64(p->began_ns, now_ns);
	if (elapsed < HTTP_PACE_WINDOW_NS)
		return;
	const double rate = (double)(received - p->received) * NS_PER_S / (double)elapsed;
	const uint64_t bounded = rate < HTTP_PACE_MAX ? (uint64_t)rate : HTTP_PACE_MAX;
	p->rate = max_u64(p->rate, min_u64(bounded, p->last));
	p->last = bounded;
	p->began_ns = now_ns;
	p->received = received;
}
