/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises loop nests. For each chunk that is read, the first rule that applies decides:
 *  - A track of the dataset predicts the chunk, or has passed it recently.
 *  - The chunk continues a track whose run is shorter or longer than the runs before.
 *  - The chunk lies before the first chunk of a new track: parallel readers changed the order.
 *  - The chunk and an unmatched one are up to three strides of a track apart, and the track has
 *    ended, or more other chunks were read since its last step than before that step: the two
 *    chunks begin its next run.
 *  - The chunk and two unmatched ones are equally spaced: a new track.
 *  - The chunk and an unmatched one are chunks 0 and 1: a new track.
 *  - Otherwise the chunk becomes an unmatched one. The last track that was used breaks if many more
 *    other chunks were read since its last step than before that step. A single other chunk breaks
 *    no track, because it may be the kernel's read-ahead.
 *
 * Random reads contain equally spaced chunks, too. Three chunks make a track only if the chance
 * that a random read finds three chunks as simple and as recent is below 1 in 1,000. The chance is
 * the number of differences that are as simple, times the number of combinations of unmatched
 * chunks that are as recent, divided by the square of the number of chunks. So a walk from chunk to
 * chunk is recognised in a small dataset, and three distant chunks only in a large one. If a fourth
 * chunk continues the progression, the chance is smaller.
 */
#include "pattern.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMBINED = 24,	  /* unmatched chunks that are combined with a chunk for a new track... */
	COMBINED_RUN = 8, /* ...and for the next run of a track */
	OTHERS_MIN = 2,
	OTHERS_MAX = 64,
	OUT_OF_ORDER = 6, /* factor by which three chunks are less likely if read out of order */
};

static const double CHANCE_MAX = 1.0 / 1000; /* that three random chunks make a track */

/* A chunk that is read, and the unmatched ones of its dataset. */
struct access {
	struct pattern *p;
	const struct chunk_grid *g;
	uint64_t number;
	double chunks; /* of the grid */
	uint32_t dataset;
	unsigned int n;
	uint64_t unmatched[COMBINED]; /* newest first */
};

static bool is_of(const struct track *t, uint32_t dataset)
{
	return t->used && t->dataset == dataset;
}

static void remove_unmatched(struct pattern *p, uint32_t dataset, uint64_t number)
{
	for (uint32_t i = 0; i < p->nunmatched; i++) {
		if (p->unmatched[i].dataset != dataset || p->unmatched[i].number != number)
			continue;
		p->nunmatched--;
		memmove(&p->unmatched[i], &p->unmatched[i + 1],
			(p->nunmatched - i) * sizeof(p->unmatched[0]));
		return;
	}
}

static struct access access_to(struct pattern *p, uint32_t dataset, const struct chunk_grid *g,
			       uint64_t number)
{
	struct access x = {.p = p, .g = g, .number = number, .dataset = dataset};
	x.chunks = (double)chunk_grid_size(g);
	for (uint32_t i = 0; i < p->nunmatched && x.n < COMBINED; i++)
		if (p->unmatched[i].dataset == dataset)
			x.unmatched[x.n++] = p->unmatched[i].number;
	return x;
}

static bool is_unmatched(const struct access *x, uint64_t number)
{
	for (unsigned int i = 0; i < x->n; i++)
		if (x->unmatched[i] == number)
			return true;
	return false;
}

/* A track that is not continued is removed after this many other chunks of its dataset. Otherwise
 * random reads would continue it by chance, and earlier in a small dataset. */
static uint32_t others_max(const struct access *x)
{
	return x->chunks < 32 * OTHERS_MIN   ? OTHERS_MIN
	       : x->chunks > 32 * OTHERS_MAX ? OTHERS_MAX
					     : (uint32_t)x->chunks / 32;
}

/* Counts a chunk for all tracks of the dataset to which it does not belong. */
static void count_other(struct access *x, const struct track *except)
{
	x->p->clock++;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (t != except && is_of(t, x->dataset) && ++t->others > others_max(x))
			t->used = 0;
	}
}

static struct track *moved(struct access *x, struct track *t)
{
	count_other(x, t);
	t->others_before = t->others;
	t->others = 0;
	t->used = x->p->clock;
	t->broken = false;
	return t;
}

/* Adds to a new track or run the unmatched chunks that belong to it. */
static struct track *absorb(struct access *x, struct track *t)
{
	for (unsigned int i = 0; i < x->n; i++) {
		int steps = 0;
		if (!loop_nest_find(&t->nest, x->g, x->unmatched[i], &steps))
			continue;
		if (steps > 0)
			loop_nest_step(&t->nest, x->g, (unsigned int)steps);
		remove_unmatched(x->p, x->dataset, x->unmatched[i]);
	}
	return moved(x, t);
}

/* Replaces an unused track, or the least recently used one, by a new track. */
static struct track *new_track(struct access *x, uint64_t a, uint64_t b)
{
	struct track *t = x->p->tracks;
	for (size_t i = 1; i < PATTERN_TRACKS; i++)
		if (x->p->tracks[i].used < t->used)
			t = &x->p->tracks[i];
	*t = (struct track){.dataset = x->dataset};
	loop_nest_init(&t->nest, a, b);
	return t;
}

/* Returns true if `a` steps to a chunk are better than `b` steps: forward is better than backward,
 * and then fewer are better. */
static bool is_better(int a, int b)
{
	return (a > 0) != (b > 0) ? a > 0 : abs(a) < abs(b);
}

/* Returns the track that predicts the chunk within the fewest steps. If there is none, returns the
 * track that has passed the chunk most recently. */
static struct track *find_track(const struct access *x, int *steps)
{
	struct track *best = NULL;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		int n = 0;
		if (!is_of(t, x->dataset) || !loop_nest_find(&t->nest, x->g, x->number, &n) ||
		    (best && !is_better(n, *steps)))
			continue;
		best = t;
		*steps = n;
	}
	return best;
}

/* Returns the first track of the dataset that a function has adapted to the chunk. */
static struct track *adapt(const struct access *x,
			   bool (*fits)(struct loop_nest *t, const struct chunk_grid *g,
					uint64_t number))
{
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (is_of(t, x->dataset) && fits(&t->nest, x->g, x->number))
			return t;
	}
	return NULL;
}

static bool has_ended(const struct access *x, const struct track *t)
{
	uint64_t next = 0;
	return !loop_nest_expect(&t->nest, x->g, 0, &next);
}

/* Begins a track's next run if the chunk and an unmatched one are two of its first chunks. If
 * several runs are possible, chooses the one whose start has the simplest difference from the
 * previous start. */
static struct track *begin_run(struct access *x)
{
	struct track *best = NULL;
	double least = 0;
	uint64_t start = 0, strides = 0;
	for (unsigned int i = 0; i < x->n && i < COMBINED_RUN; i++) {
		for (size_t k = 0; k < PATTERN_TRACKS; k++) {
			struct track *t = &x->p->tracks[k];
			if (!is_of(t, x->dataset) ||
			    (t->others <= t->others_before && !has_ended(x, t)))
				continue;
			const int n = loop_nest_strides(&t->nest, x->g, x->unmatched[i], x->number);
			if (n == 0)
				continue;
			const uint64_t first = n > 0 ? x->unmatched[i] : x->number;
			const uint64_t last = loop_nest_run_start(&t->nest);
			const double simpler = grid_vector_simpler(x->g, last, first) * (i + 1);
			if (best && simpler >= least)
				continue;
			best = t;
			least = simpler;
			start = first;
			strides = (uint64_t)(n > 0 ? n : -n);
		}
	}
	if (!best)
		return NULL;
	uint64_t before = start - (uint64_t)best->nest.levels[0].stride;
	while (is_unmatched(x, before) &&
	       loop_nest_strides(&best->nest, x->g, before, start) == 1) {
		start = before;
		before -= (uint64_t)best->nest.levels[0].stride;
		strides++;
	}
	loop_nest_restart(&best->nest, start, strides);
	return absorb(x, best);
}

/* Most programs that begin with chunks 0 and 1 read the whole dataset. */
static struct track *begin_dataset(struct access *x)
{
	if (x->number > 1 || !is_unmatched(x, 1 - x->number))
		return NULL;
	return absorb(x, new_track(x, 0, 1));
}

/* Three equally spaced chunks. */
struct three {
	uint64_t first, middle, last;
	double chance;
	unsigned int others; /* unmatched chunks that were read between the two newest */
};

/* Returns true if the chunk before these two in the progression is unmatched, too. */
static bool has_fourth(const struct access *x, uint64_t first, uint64_t middle)
{
	const struct grid_vector s = {middle, first, 1};
	uint64_t before = 0;
	return grid_vector_sum(x->g, first, &s, 1, &before) && is_unmatched(x, before);
}

static void consider(const struct access *x, struct three *best, uint64_t first, uint64_t middle,
		     uint64_t last, unsigned int others, double chance)
{
	const struct grid_vector s = {first, middle, 2};
	uint64_t found = 0;
	if (last - middle != middle - first || !grid_vector_sum(x->g, first, &s, 1, &found) ||
	    found != last)
		return;
	chance *= grid_vector_simpler(x->g, first, middle);
	if (chance >= CHANCE_MAX && has_fourth(x, first, middle))
		chance *= x->n / x->chunks;
	if (chance < best->chance)
		*best = (struct three){first, middle, last, chance, others};
}

/* Begins a track with the simplest and most recent three chunks. Programs usually read them in
 * order, so another order counts as less likely. */
static struct track *begin_track(struct access *x)
{
	struct three best = {.chance = CHANCE_MAX};
	for (unsigned int i = 1; i < x->n; i++) {
		const uint64_t older = x->unmatched[i];
		const double chance = (i + 1.0) * i / 2 / x->chunks / x->chunks;
		for (unsigned int k = 0; k < i; k++) {
			const uint64_t newer = x->unmatched[k];
			consider(x, &best, older, newer, x->number, k, chance);
			consider(x, &best, newer, older, x->number, k, chance * OUT_OF_ORDER);
			consider(x, &best, older, x->number, newer, k, chance * OUT_OF_ORDER);
		}
	}
	if (best.chance >= CHANCE_MAX)
		return NULL;
	struct track *t = new_track(x, best.first, best.middle);
	loop_nest_step(&t->nest, x->g, 1);
	t->others = best.others;
	return absorb(x, t);
}

static enum pattern_event break_track(struct access *x, struct track **track)
{
	struct track *last = NULL;
	count_other(x, NULL);
	x->p->nunmatched += x->p->nunmatched < PATTERN_UNMATCHED;
	memmove(&x->p->unmatched[1], &x->p->unmatched[0],
		(x->p->nunmatched - 1) * sizeof(x->p->unmatched[0]));
	x->p->unmatched[0] = (struct unmatched_chunk){x->number, x->dataset};
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (is_of(t, x->dataset) && (!last || t->used > last->used))
			last = t;
	}
	if (!last || last->broken || last->others <= 1 + 2 * last->others_before)
		return PATTERN_RANDOM;
	last->broken = true;
	if (has_ended(x, last))
		return PATTERN_RANDOM;
	*track = last;
	return PATTERN_BREAKS;
}

enum pattern_event pattern_read(struct pattern *p, uint32_t dataset, const struct chunk_grid *g,
				uint64_t number, struct track **track)
{
	*track = NULL;
	if (number >= chunk_grid_size(g))
		return PATTERN_RANDOM;
	struct access x = access_to(p, dataset, g, number);
	int steps = 0;
	struct track *t = find_track(&x, &steps);
	if (t && steps > 0) {
		loop_nest_step(&t->nest, g, (unsigned int)steps);
		*track = moved(&x, t);
		return PATTERN_FOLLOWS;
	}
	if (t || is_unmatched(&x, number)) {
		*track = t;
		return PATTERN_REPEAT;
	}
	t = adapt(&x, loop_nest_correct_count);
	if (!t && (*track = adapt(&x, loop_nest_begin_earlier)))
		return PATTERN_REPEAT;
	t = t ? moved(&x, t) : begin_run(&x);
	if (!t)
		t = begin_track(&x);
	if (!t)
		t = begin_dataset(&x);
	*track = t;
	return t ? PATTERN_FOLLOWS : break_track(&x, track);
}

bool pattern_expect(const struct track *t, const struct chunk_grid *g, uint64_t n, uint64_t *number)
{
	return loop_nest_expect(&t->nest, g, n, number);
}
