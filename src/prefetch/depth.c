/* SPDX-License-Identifier: Apache-2.0 */
/* See depth.h. */
#include "depth.h"

#include <base/mem.h>

enum {
	BYTES_PER_US = 2048, /* no program processes chunks faster than 2 GiB/s */
	STEP_NS_MIN = 20000,
	FAR_NS = 5000000,
	SHRINK = 16,
};

static void measure(struct depth *p, const struct depth_step *s)
{
	/* Another thread may have recorded a step after this thread read the clock. */
	uint64_t elapsed = s->now_ns > p->stepped_ns ? s->now_ns - p->stepped_ns : 0;
	uint64_t waited = s->waited_ns - p->waited_ns;
	/* The shortest time that a program can need for a chunk. If several threads read one file
	 * and wait at the same time, the measured time may be shorter. */
	const uint64_t least = max_u64(s->cost / BYTES_PER_US * 1000, STEP_NS_MIN);
	uint64_t own = elapsed > waited ? elapsed - waited : 0;
	own = max_u64(own / max_u64(s->steps, 1), least);
	p->think_ns = p->think_ns ? (p->think_ns + own) / 2 : own;
	p->stepped_ns = s->now_ns;
	p->waited_ns = s->waited_ns;
}

/* Returns the largest depth after what was read in this run. Of a sequence, the kernel's read-ahead
 * may have read the last window: the program has then read the run without it, and the window
 * counts as prefetched. */
static uint64_t longest(const struct depth *p, const struct depth_step *s)
{
	const uint64_t most = DEPTH_AHEAD * p->run, cost = max_u64(s->cost, 1);
	if (!s->sequential)
		return most;
	/* chunks that it may touch */
	const uint64_t window = kernel_window(s->read_ahead) / cost + 1;
	const uint64_t read = p->run > window ? p->run - window : 1;
	const uint64_t fetched = (DEPTH_AHEAD + 1) * read + DEPTH_SPARE;
	const uint64_t sure = fetched > p->run ? fetched - p->run : 1;
	return min_u64(most, max_u64(sure, DEPTH_UNSURE / cost));
}

/* Makes the depth that of the first batch if a series begins. Joined loads take few requests
 * anyway. */
static void begin_series(struct depth *p, const struct depth_step *s)
{
	if (!s->begun || p->batch > 0 || s->joined > 1 || s->latency_ns <= FAR_NS)
		return;
	const uint64_t most = DEPTH_FIRST - 1 - s->begun;
	const uint64_t bytes = s->latency_ns / 1000 * DEPTH_FIRST_RATE / 1000;
	const uint64_t n = min_u64(min_u64(bytes / max_u64(s->cost, 1), most), s->room);
	p->batch = n == most ? s->newest + n : 0;
	p->chunks = (uint32_t)max_u64(p->chunks, n);
}

/* The program's time is unknown. On a distant store most programs need less time for a chunk than a
 * load takes, and waiting for a measurement would cost another load. */
void depth_begin(struct depth *p, const struct depth_step *s)
{
	*p = (struct depth){.stepped_ns = s->now_ns, .waited_ns = s->waited_ns, .run = s->steps};
	p->chunks =
		(uint32_t)min_u64(longest(p, s), s->latency_ns > FAR_NS ? DEPTH_MAX : DEPTH_MIN);
	begin_series(p, s);
}

/* Returns the limit of the depth. The chunks of two windows that the kernel does not read ahead,
 * because it was told to read fewer, are prefetched besides DEPTH_MAX others. */
static uint64_t largest(const struct depth_step *s)
{
	enum { WINDOWS = 2 };
	const uint64_t less = WINDOWS * (KERNEL_READ_AHEAD - s->read_ahead);
	const uint64_t requests = (uint64_t)DEPTH_MAX * max_u64(s->joined, 1);
	const uint64_t cost = max_u64(s->cost, 1);
	const uint64_t bytes = s->joined > 1 ? DEPTH_JOINED_BYTES : 0;
	const uint64_t most = max_u64(min_u64(bytes / cost, DEPTH_JOINED_MAX), DEPTH_CHUNKS_MAX);
	return min_u64(requests + less / cost, most);
}

void depth_follow(struct depth *p, const struct depth_step *s)
{
	measure(p, s);
	const uint64_t limit = largest(s);
	uint64_t computed = min_u64(DEPTH_MIN + 2 * s->latency_ns / p->think_ns, limit);
	uint64_t most = min_u64(max_u64(2 * computed, DEPTH_SLACK), limit);
	uint64_t depth = max_u64(p->chunks, DEPTH_MIN);
	if (s->late)
		depth = max_u64(computed, min_u64(2 * depth, most));
	else if (depth < computed)
		depth = computed;
	else
		depth -= (depth - computed + SHRINK - 1) / SHRINK;
	p->run += s->steps;
	if (s->newest <= p->batch && p->batch > 0)
		p->chunks = (uint32_t)(p->batch - s->newest);
	else
		p->chunks = (uint32_t)min_u64(depth, longest(p, s));
	begin_series(p, s);
}

void depth_break(struct depth *p)
{
	p->chunks /= 2;
	p->run = p->batch = 0;
	p->think_ns = 0;
}

void depth_wasted(struct depth *p)
{
	p->chunks -= p->chunks / 2;
}
