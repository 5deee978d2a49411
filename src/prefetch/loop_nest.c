/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunk numbers are first added modulo 2^64, which is cheap. Only if the sum is the number that is
 * looked for, the coordinates are checked one by one (at()). So a chunk that is found or predicted
 * always lies in the grid.
 */
#include "loop_nest.h"

#include <assert.h>

#include <base/mem.h>

/* Iterations of all levels. */
struct position {
	uint64_t k[LOOP_NEST_LEVELS];
};

static struct position current(const struct loop_nest *t)
{
	struct position p = {0};
	for (unsigned int l = 0; l < t->n; l++)
		p.k[l] = t->levels[l].k;
	return p;
}

static uint64_t sum(const struct loop_nest *t, const struct position *p)
{
	uint64_t number = t->origin;
	for (unsigned int l = 0; l < t->n; l++)
		number += p->k[l] * (uint64_t)t->levels[l].stride;
	return number;
}

static struct grid_vector step_of(const struct loop_level *v, uint64_t times)
{
	return (struct grid_vector){v->from, v->from + (uint64_t)v->stride, times};
}

static bool at(const struct loop_nest *t, const struct chunk_grid *g, const struct position *p,
	       uint64_t *number)
{
	struct grid_vector steps[LOOP_NEST_LEVELS];
	for (unsigned int l = 0; l < t->n; l++)
		steps[l] = step_of(&t->levels[l], p->k[l]);
	return grid_vector_sum(g, t->origin, steps, t->n, number);
}

static bool is_at(const struct loop_nest *t, const struct chunk_grid *g, const struct position *p,
		  uint64_t number)
{
	uint64_t found = 0;
	return sum(t, p) == number && at(t, g, p, &found) && found == number;
}

void loop_nest_init(struct loop_nest *t, uint64_t a, uint64_t b)
{
	*t = (struct loop_nest){.origin = a, .newest = b, .n = 1};
	t->levels[0] =
		(struct loop_level){.from = a, .stride = (int64_t)(b - a), .k = 1, .seen = 1};
}

/* Returns the number of steps that a level predicts. */
static uint64_t predicted(const struct loop_nest *t, unsigned int l)
{
	return l == 0 || t->levels[l].seen > 1 ? UINT64_MAX : t->levels[l].seen;
}

/* Stores the position n steps after the current one. */
static bool ahead(const struct loop_nest *t, uint64_t n, struct position *p)
{
	*p = current(t);
	for (unsigned int l = 0; l < t->n && n > 0; l++) {
		const struct loop_level *v = &t->levels[l];
		if (n > predicted(t, l) || !add_u64(p->k[l], n, &p->k[l]))
			return false;
		n = v->count ? p->k[l] / v->count : 0;
		p->k[l] -= n * v->count;
	}
	return n == 0;
}

bool loop_nest_expect(const struct loop_nest *t, const struct chunk_grid *g, uint64_t n,
		      uint64_t *number)
{
	struct position p;
	return n < UINT64_MAX && ahead(t, n + 1, &p) && at(t, g, &p, number);
}

static bool step_back(const struct loop_nest *t, struct position *p)
{
	for (unsigned int l = 0; l < t->n; l++) {
		if (p->k[l]-- > 0)
			return true;
		p->k[l] = t->levels[l].count - 1;
	}
	return false;
}

bool loop_nest_find(const struct loop_nest *t, const struct chunk_grid *g, uint64_t number,
		    int *steps)
{
	struct position p;
	*steps = 0;
	if (number == t->newest)
		return true;
	for (int n = 1; n <= LOOP_NEST_AHEAD && ahead(t, (uint64_t)n, &p); n++) {
		*steps = n;
		if (is_at(t, g, &p, number))
			return true;
	}
	p = current(t);
	for (int n = 1; n <= LOOP_NEST_BACK && step_back(t, &p); n++) {
		*steps = -n;
		if (is_at(t, g, &p, number))
			return true;
	}
	return false;
}

void loop_nest_step(struct loop_nest *t, const struct chunk_grid *g, unsigned int steps)
{
	struct position p;
	uint64_t number = 0;
	bool moves = ahead(t, steps, &p) && at(t, g, &p, &number);
	assert(steps > 0 && moves);
	if (!moves)
		return;
	for (unsigned int l = 0; l < t->n; l++) {
		struct loop_level *v = &t->levels[l];
		v->seen += p.k[l] != v->k && v->seen < UINT32_MAX;
		v->k = p.k[l];
	}
	t->newest = number;
}

/* Returns how many strides of level 0 chunk a lies before chunk b, or 0 if it does not, or by more
 * than `most`. */
static uint64_t strides_before(const struct loop_nest *t, const struct chunk_grid *g, uint64_t a,
			       uint64_t b, int64_t most)
{
	const int64_t stride = t->levels[0].stride, d = (int64_t)(b - a);
	uint64_t found = 0;
	if (d % stride || d / stride < 1 || d / stride > most)
		return 0;
	const struct grid_vector s = step_of(&t->levels[0], (uint64_t)(d / stride));
	return grid_vector_sum(g, a, &s, 1, &found) && found == b ? s.times : 0;
}

bool loop_nest_begin_earlier(struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	struct loop_level *v = &t->levels[0], *top = &t->levels[t->n - 1];
	if (t->n > 1 && (top->seen != 1 || top->k != 1))
		return false;
	const uint64_t before =
		strides_before(t, g, number, loop_nest_run_start(t), LOOP_NEST_AHEAD);
	v->k += before;
	if (t->n == 1)
		t->origin -= before * (uint64_t)v->stride;
	else
		top->stride -= (int64_t)before * v->stride;
	if (v->count && v->count <= v->k)
		v->count = v->k + 1;
	return before > 0;
}

/* Removes the count of level l and all levels above it: the level has more iterations than its
 * count. */
static void forget_levels_above(struct loop_nest *t, unsigned int l)
{
	struct position p = current(t);
	for (unsigned int i = 0; i <= l; i++)
		p.k[i] = 0;
	t->origin = sum(t, &p);
	t->n = l + 1;
	t->levels[l].count = 0;
}

bool loop_nest_correct_count(struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	struct position p = current(t);
	for (unsigned int l = 0; l < t->n; l++) {
		struct loop_level *v = &t->levels[l];
		p.k[l]++;
		if (v->seen && is_at(t, g, &p, number)) {
			if (l > 0)
				v[-1].count = v[-1].k + 1;
			if (v->count && p.k[l] == v->count)
				forget_levels_above(t, l);
			for (unsigned int i = 0; i <= l; i++)
				t->levels[i].k = p.k[i];
			v->seen++;
			t->newest = number;
			return true;
		}
		p.k[l] = 0;
	}
	return false;
}

int loop_nest_strides(const struct loop_nest *t, const struct chunk_grid *g, uint64_t a, uint64_t b)
{
	return (int)strides_before(t, g, a, b, LOOP_NEST_NEAR) -
	       (int)strides_before(t, g, b, a, LOOP_NEST_NEAR);
}

uint64_t loop_nest_run_start(const struct loop_nest *t)
{
	struct position p = current(t);
	p.k[0] = 0;
	return sum(t, &p);
}

static bool loops_below_top_are_done(const struct loop_nest *t)
{
	for (unsigned int l = 0; l + 1 < t->n; l++)
		if (t->levels[l].k + 1 != t->levels[l].count)
			return false;
	return true;
}

static void begin_iterations(struct loop_nest *t)
{
	for (unsigned int l = 0; l < t->n; l++)
		t->levels[l].k = 0;
}

static void add_level(struct loop_nest *t, uint64_t start)
{
	struct loop_level *top = &t->levels[t->n - 1];
	top->count = top->k + 1;
	begin_iterations(t);
	t->levels[t->n++] = (struct loop_level){
		.from = t->origin, .stride = (int64_t)(start - t->origin), .k = 1, .seen = 1};
}

/* Moves the lower loops to another start. If the stride of the top level was seen less than twice,
 * the latest stride replaces it; the level then predicts nothing unless both strides are equal. */
static void move(struct loop_nest *t, uint64_t start)
{
	while (t->n > 2 && t->levels[t->n - 1].seen < 2)
		t->n--;
	struct loop_level *top = &t->levels[t->n - 1];
	if (t->n > 1 && top->seen < 2) {
		const uint64_t last = t->origin + top->k * (uint64_t)top->stride;
		const int64_t stride = (int64_t)(start - last);
		*top = (struct loop_level){
			.from = last, .stride = stride, .seen = stride == top->stride ? 2 : 0};
	}
	begin_iterations(t);
	t->origin = start;
}

void loop_nest_restart(struct loop_nest *t, uint64_t start, uint64_t strides)
{
	struct loop_level *run = &t->levels[0];
	if (loops_below_top_are_done(t) && t->n < LOOP_NEST_LEVELS)
		add_level(t, start);
	else
		move(t, start);
	if (run->count && strides >= run->count) { /* longer than the runs before */
		t->n = 1;
		t->origin = start;
		run->count = 0;
	}
	run->k = strides;
	t->newest = start + strides * (uint64_t)run->stride;
}
