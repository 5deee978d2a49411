/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates prefetching in virtual time: the real code of prefetch/, a store with a latency and a
 * rate, and a program that needs some time of its own for each chunk. Prints for each kind of
 * reads: chunks; rounds, which are reads that waited longer than half the latency; wasted chunks,
 * which were prefetched and never read; and the time as a multiple of the shortest possible.
 *
 * usage: prefetch_sim LATENCY_MS MBIT_PER_S CHUNK_BYTES THINK_US [verbose]
 * doc/decisions/009-what-prefetching-recognises.md has results.
 */
#include <stdio.h>

#include <prefetch/kernel.h>
#include <prefetch/prefetch.h>

#include "orders.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

enum { CHUNKS_MAX = 1 << 20, SEEDS = 3 };

struct result {
	unsigned long chunks, rounds, wasted;
	double ns, shortest_ns;
};

struct sim {
	double latency, rate, cost, think; /* ns, bytes per ns, bytes, ns */
	double now, link_free;
	bool verbose;
	enum { ABSENT, LOADED, READ } state[CHUNKS_MAX];
	double done[CHUNKS_MAX];
	struct trace trace, mixed;
	struct result sum;
};

static bool slot_of(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot)
{
	(void)ctx;
	(void)dataset;
	*slot = number;
	return true;
}

static bool is_known(void *ctx, uint32_t dataset, uint64_t slot)
{
	(void)dataset;
	return ((struct sim *)ctx)->state[slot] != ABSENT;
}

static void load(struct sim *s, uint64_t chunk)
{
	if (s->state[chunk] != ABSENT)
		return;
	const double first_byte = s->now + s->latency;
	s->link_free = (first_byte > s->link_free ? first_byte : s->link_free) + s->cost / s->rate;
	s->done[chunk] = s->link_free;
	s->state[chunk] = LOADED;
}

static void prefetch(struct sim *s, struct prefetch *p, const struct trace *t, uint64_t chunk,
		     double waited, bool late)
{
	const struct prefetch_dataset d = {.rank = t->grid.rank,
					   .counts = t->grid.counts,
					   .cost = (uint64_t)s->cost,
					   .read_ahead = kernel_read_ahead((uint64_t)s->cost),
					   .room = UINT64_MAX,
					   .slot = slot_of,
					   .is_known = is_known,
					   .ctx = s};
	const struct prefetch_read read = {.slot = chunk,
					   .number = chunk,
					   .now_ns = (uint64_t)s->now,
					   .waited_ns = (uint64_t)waited,
					   .latency_ns = (uint64_t)s->latency,
					   .late = late};
	struct prefetch_advice advice = prefetch_read(p, &d, &read);
	uint64_t next = 0;
	while (advice.action == PREFETCH_LOAD && prefetch_next(&advice, &d, &next))
		load(s, next);
}

static void run(struct sim *s, const char *name, const struct trace *t)
{
	struct prefetch *p = prefetch_new();
	struct result r = {0};
	double waited = 0;
	const double start = 1e9;
	if (!p)
		abort();
	memset(s->state, 0, sizeof(s->state));
	s->now = start;
	s->link_free = 0;
	for (size_t i = 0; i < t->n; i++) {
		const uint64_t chunk = t->touches[i];
		s->now += s->think;
		const bool late = s->state[chunk] == ABSENT || s->done[chunk] > s->now;
		load(s, chunk);
		prefetch(s, p, t, chunk, waited, late);
		const double wait = s->done[chunk] - s->now;
		r.rounds += wait > s->latency / 2;
		waited += wait > 0 ? wait : 0;
		s->now += wait > 0 ? wait : 0;
		r.chunks += s->state[chunk] != READ;
		s->state[chunk] = READ;
	}
	for (uint64_t i = 0; i < t->chunks; i++)
		r.wasted += s->state[i] == LOADED;
	r.ns = s->now - start;
	r.shortest_ns = s->latency + s->cost / s->rate + s->think * (double)t->n;
	const double transfer = s->latency + (double)r.chunks * s->cost / s->rate;
	r.shortest_ns = transfer > r.shortest_ns ? transfer : r.shortest_ns;
	if (s->verbose)
		printf("  %-44s %7lu %7lu %7lu %6.2f\n", name, r.chunks, r.rounds, r.wasted,
		       r.ns / r.shortest_ns);
	s->sum.chunks += r.chunks;
	s->sum.rounds += r.rounds;
	s->sum.wasted += r.wasted;
	s->sum.ns += r.ns;
	s->sum.shortest_ns += r.shortest_ns;
	prefetch_free(p);
}

static void print_sum(struct sim *s, const char *kind)
{
	printf("%-46s %7lu %7lu %7lu %6.2f\n", kind, s->sum.chunks, s->sum.rounds, s->sum.wasted,
	       s->sum.ns / s->sum.shortest_ns);
	s->sum = (struct result){0};
}

static void make(struct sim *s, const struct order *o)
{
	trace_init(&s->trace, o->rank, o->counts);
	trace_loops(&s->trace, o->loops, o->n);
}

static void run_threads(struct sim *s, size_t threads, const char *kind)
{
	for (size_t i = 0; i < N_OF(orders); i++)
		for (uint64_t seed = 1; orders[i].flags & EASY && seed <= SEEDS; seed++) {
			make(s, &orders[i]);
			trace_jitter(&s->trace, threads, seed);
			run(s, orders[i].name, &s->trace);
		}
	print_sum(s, kind);
}

static void run_strays(struct sim *s)
{
	for (size_t i = 0; i < N_OF(orders); i++) {
		if (!(orders[i].flags & EASY))
			continue;
		make(s, &orders[i]);
		trace_stray(&s->trace, &s->mixed, 10, 3);
		run(s, orders[i].name, &s->mixed);
	}
	print_sum(s, "one stray read in ten");
}

/* Hyperslabs at random places, read in turns. */
static void run_side_by_side(struct sim *s)
{
	static const uint64_t counts[] = {60, 60, 60};
	uint64_t seed = 3;
	for (size_t streams = 2; streams <= 8; streams *= 2)
		for (int times = 0; times < 10; times++) {
			trace_init(&s->trace, 3, counts);
			for (size_t k = 0; k < streams; k++) {
				struct loop loops[] = {{0, 0, 1, 8}, {1, 0, 2, 10}, {2, 0, 1, 12}};
				for (size_t d = 0; d < 3; d++)
					loops[d].start = trace_random(&seed) % 20;
				trace_loops(&s->trace, loops, 3);
			}
			trace_interleave(&s->trace, &s->mixed, streams);
			run(s, "hyperslabs", &s->mixed);
		}
	print_sum(s, "2, 4 and 8 hyperslabs at the same time");
}

static void run_random(struct sim *s, uint64_t length, const char *kind)
{
	static const uint64_t sizes[] = {192, 1000, 10000, 1000000};
	uint64_t seed = 5;
	for (size_t i = 0; i < N_OF(sizes); i++)
		for (int times = 0; times < 20; times++) {
			trace_init(&s->trace, 1, &sizes[i]);
			for (int k = 0; k < 50; k++) {
				const uint64_t at = trace_random(&seed) % (sizes[i] - length + 1);
				for (uint64_t n = 0; n < length; n++)
					trace_add(&s->trace, at + n);
			}
			run(s, kind, &s->trace);
		}
	print_sum(s, kind);
}

/* A program that reads `length` chunks in order and stops. `at` is the place of the first one, in
 * thousandths of the dataset. */
static void run_series(struct sim *s, uint64_t at, uint64_t length, const char *kind)
{
	static const uint64_t sizes[] = {20, 192, 1000, 1000000};
	for (size_t i = 0; i < N_OF(sizes); i++) {
		trace_init(&s->trace, 1, &sizes[i]);
		const uint64_t first = sizes[i] * at / 1000;
		for (uint64_t n = 0; n < length && first + n < sizes[i]; n++)
			trace_add(&s->trace, first + n);
		run(s, kind, &s->trace);
	}
	print_sum(s, kind);
}

int main(int argc, char **argv)
{
	struct sim *s = calloc(1, sizeof(*s));
	if (argc < 5 || !s) {
		fprintf(stderr, "usage: %s LATENCY_MS MBIT_PER_S CHUNK_BYTES THINK_US [verbose]\n",
			argv[0]);
		return 2;
	}
	s->latency = strtod(argv[1], NULL) * 1e6;
	s->rate = strtod(argv[2], NULL) / 8e3;
	s->cost = strtod(argv[3], NULL);
	s->think = strtod(argv[4], NULL) * 1e3;
	s->verbose = argc > 5;
	printf("%-46s %7s %7s %7s %6s\n", "reads", "chunks", "rounds", "wasted", "time");
	for (size_t i = 0; i < N_OF(orders); i++) {
		make(s, &orders[i]);
		run(s, orders[i].name, &s->trace);
	}
	print_sum(s, "loop nests in order");
	run_threads(s, 2, "two threads");
	run_threads(s, 4, "four threads");
	run_strays(s);
	run_side_by_side(s);
	run_random(s, 1, "random");
	run_random(s, 4, "random places, runs of 4");
	run_series(s, 0, 20, "the first 20 chunks of 4 datasets");
	run_series(s, 400, 20, "20 chunks from within");
	run_series(s, 0, 2, "the first 2 chunks");
	run_series(s, 400, 4, "4 chunks from within");
	free(s);
	return 0;
}
