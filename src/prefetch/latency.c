/* SPDX-License-Identifier: Apache-2.0 */
/* See prefetch/latency.h. */
#include <prefetch/latency.h>

#include <base/mem.h>

enum { WINDOW = 32 /* loads */ };

void latency_record(struct latency *l, uint64_t ns)
{
	ns = max_u64(ns, 1);
	if (l->now == 0 || ns < l->now)
		l->now = ns;
	if (++l->n < WINDOW)
		return;
	*l = (struct latency){.before = l->now};
}

uint64_t latency_shortest(const struct latency *l)
{
	return l->now && l->before ? min_u64(l->now, l->before) : l->now + l->before;
}
