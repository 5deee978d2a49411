/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers are added modulo 2^64 first, which is cheap, and only what looks right is checked
 * coordinate by coordinate (at()): a chunk that is found or expected is always the sum of strides
 * in the grid.
 */
#include "loop_nest.h"

#include <assert.h>

#include <base/mem.h>

enum {
	NEAR = 3,	  /* strides by which readers side by side change the order */
	YOUNG = 8,	  /* steps after which a run is known */
	SKIPS_NEEDED = 2, /* after the first; chunks that are late will have come until then */
	STRETCH_MAX = 2,  /* runs that are longer than those before, in sequence */
};

/* Indices of all levels, lowest first. */
struct place {
	uint64_t k[LOOP_NEST_LEVELS];
};

static struct place current(const struct loop_nest *t)
{
	struct place p = {0};
	for (unsigned int l = 0; l < t->n; l++)
		p.k[l] = t->levels[l].k;
	return p;
}

static uint64_t sum(const struct loop_nest *t, const struct place *p)
{
	uint64_t number = t->origin;
	for (unsigned int l = 0; l < t->n; l++)
		number += p->k[l] * (uint64_t)t->levels[l].stride;
	return number;
}

/* Whole strides of level 0 by number, across the ends of rows. */
static bool add_flat(const struct loop_nest *t, const struct chunk_grid *g, uint64_t k,
		     uint64_t *number)
{
	int64_t by = 0;
	if (k > INT64_MAX || __builtin_mul_overflow(t->levels[0].stride, (int64_t)k, &by) ||
	    __builtin_add_overflow((int64_t)*number, by, &by))
		return false;
	*number = (uint64_t)by;
	return by >= 0 && *number < chunk_grid_size(g);
}

static struct grid_vector step_of(const struct loop_level *v, uint64_t times)
{
	return (struct grid_vector){v->from, v->from + (uint64_t)v->stride, times};
}

static bool at(const struct loop_nest *t, const struct chunk_grid *g, const struct place *p,
	       uint64_t *number)
{
	struct grid_vector steps[LOOP_NEST_LEVELS];
	const unsigned int flat = t->rows != LOOP_NEST_ROW_ENDS;
	for (unsigned int l = flat; l < t->n; l++)
		steps[l - flat] = step_of(&t->levels[l], p->k[l]);
	return grid_vector_sum(g, t->origin, steps, t->n - flat, number) &&
	       (!flat || add_flat(t, g, p->k[0], number));
}

/* Steps of level 0 within the row. */
static bool in_row(const struct loop_nest *t, const struct chunk_grid *g, uint64_t start,
		   uint64_t steps)
{
	const struct grid_vector s = step_of(&t->levels[0], steps);
	uint64_t found = 0;
	return grid_vector_sum(g, start, &s, 1, &found);
}

static bool is_at(const struct loop_nest *t, const struct chunk_grid *g, const struct place *p,
		  uint64_t number)
{
	uint64_t found = 0;
	return sum(t, p) == number && at(t, g, p, &found) && found == number;
}

static void go(struct loop_nest *t, const struct place *p, uint64_t number)
{
	for (unsigned int l = 0; l < t->n; l++)
		t->levels[l].k = p->k[l];
	t->newest = number;
}

void loop_nest_init(struct loop_nest *t, const struct chunk_grid *g, uint64_t a, uint64_t b)
{
	const int64_t stride = (int64_t)(b - a);
	*t = (struct loop_nest){.origin = a, .newest = b, .n = 1, .reach = 1};
	t->levels[0] = (struct loop_level){.from = a, .stride = stride, .k = 1, .seen = 1};
	if ((stride == 1 || stride == -1) && grid_vector_starts_row(g, a, stride > 0))
		t->rows = LOOP_NEST_ROW_PRESUMED;
}

/* How far a level may go on the strength of what was seen. */
static uint64_t trusted(const struct loop_nest *t, unsigned int l)
{
	const uint32_t seen = t->levels[l].seen;
	return seen > 1 ? UINT64_MAX : seen == 0 ? 0 : l == 0 ? 2 : 1;
}

/* n steps from the current place. */
static bool ahead(const struct loop_nest *t, uint64_t n, struct place *p)
{
	*p = current(t);
	for (unsigned int l = 0; l < t->n && n > 0; l++) {
		const struct loop_level *v = &t->levels[l];
		if (n > trusted(t, l) || !add_u64(p->k[l], n, &p->k[l]))
			return false;
		n = v->count ? p->k[l] / v->count : 0;
		p->k[l] -= n * v->count;
	}
	return n == 0;
}

bool loop_nest_expect(const struct loop_nest *t, const struct chunk_grid *g, uint64_t n,
		      uint64_t *number)
{
	struct place p;
	return n < UINT64_MAX && ahead(t, n + 1, &p) && at(t, g, &p, number);
}

/* One step back from a place. */
static bool back(const struct loop_nest *t, struct place *p)
{
	for (unsigned int l = 0; l < t->n; l++) {
		if (p->k[l]-- > 0)
			return true;
		p->k[l] = t->levels[l].count - 1;
	}
	return false;
}

/* Single level: one division in place of a walk. A row that is only presumed to go on in the next
 * one does so with its very next chunk. */
static int find_in_run(const struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	const struct loop_level *v = &t->levels[0];
	const int64_t d = (int64_t)(number - t->newest), steps = d / v->stride;
	struct place p = {{v->k + (uint64_t)steps}};
	if (d % v->stride || steps > LOOP_NEST_AHEAD || steps < -LOOP_NEST_BACK ||
	    (steps < 0 && (uint64_t)-steps > v->k) ||
	    (steps > 0 && !ahead(t, (uint64_t)steps, &p)) || !is_at(t, g, &p, number))
		return 0;
	if (t->rows == LOOP_NEST_ROW_PRESUMED && steps > 1 &&
	    !in_row(t, g, t->newest, (uint64_t)steps))
		return 0;
	return (int)steps;
}

int loop_nest_find(const struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	if (number == t->newest)
		return 0;
	if (t->n == 1)
		return find_in_run(t, g, number);
	struct place p;
	for (int n = 1; n <= LOOP_NEST_AHEAD && ahead(t, (uint64_t)n, &p); n++)
		if (is_at(t, g, &p, number))
			return n;
	p = current(t);
	for (int n = 1; n <= LOOP_NEST_BACK && back(t, &p); n++)
		if (is_at(t, g, &p, number))
			return -n;
	return 0;
}

/*
 * A run leaves out as many chunks at a time, after as many, again and again: it is a loop of two
 * levels along one line (blocks of a hyperslab), or, with runs of one chunk, a longer stride.
 */
static void reshape(struct loop_nest *t)
{
	const int64_t stride = (int64_t)(t->newest - t->skipped_to);
	const int64_t before = (int64_t)(t->skipped_to - t->origin);
	struct loop_level above = {.from = t->skipped_to, .stride = stride, .k = 1, .seen = 2};
	if (before % stride == 0 && before / stride > 0)
		above.k += (uint64_t)(before / stride);
	else
		t->origin = t->skipped_to;
	t->levels[0].count = t->before_skip;
	t->levels[0].k = 0;
	t->n = t->before_skip > 1 ? 2 : 1;
	t->levels[t->n - 1] = above;
	if (t->rows == LOOP_NEST_ROW_PRESUMED)
		t->rows = LOOP_NEST_ROW_ENDS;
	t->reach = t->n == 1 ? above.k : 0;
	t->skipped = 0;
}

static void skip(struct loop_nest *t, uint64_t skipped)
{
	if (skipped == 0) {
		t->since_skip++;
		return;
	}
	t->skips = skipped == t->skipped && (t->skips == 0 || t->since_skip == t->before_skip)
			   ? t->skips + 1
			   : 0;
	t->before_skip = t->since_skip;
	if (t->skips == SKIPS_NEEDED) {
		reshape(t);
		return;
	}
	t->skipped = skipped;
	t->skipped_to = t->newest;
	t->since_skip = 1;
}

void loop_nest_step(struct loop_nest *t, const struct chunk_grid *g, unsigned int steps)
{
	struct place p;
	uint64_t number = 0;
	bool moves = ahead(t, steps, &p) && at(t, g, &p, &number);
	assert(steps > 0 && moves);
	if (!moves)
		return;
	for (unsigned int l = 0; l < t->n; l++)
		if (p.k[l] != t->levels[l].k && t->levels[l].seen < UINT32_MAX)
			t->levels[l].seen++;
	if (t->rows == LOOP_NEST_ROW_PRESUMED && !in_row(t, g, t->newest, steps))
		t->rows = LOOP_NEST_ROW_GOES_ON;
	if (p.k[0] < t->levels[0].k)
		t->stretched = 0;
	t->early = 0;
	go(t, &p, number);
	t->reach = t->n > 1 || p.k[0] > t->reach ? p.k[0] : t->reach;
	if (t->n == 1)
		skip(t, steps - 1);
}

void loop_nest_late(struct loop_nest *t, int at)
{
	if ((uint64_t)-at >= t->since_skip)
		t->skipped = 0;
}

uint64_t loop_nest_run_start(const struct loop_nest *t)
{
	struct place p = current(t);
	p.k[0] = 0;
	return sum(t, &p);
}

bool loop_nest_wanders(const struct loop_nest *t)
{
	return t->n > 1 && t->levels[t->n - 1].seen == 0;
}

/* Forgets what lies above a level, whose current run becomes the first. */
static void forget_above(struct loop_nest *t, unsigned int l)
{
	struct place p = current(t);
	for (unsigned int i = 0; i <= l; i++)
		p.k[i] = 0;
	t->origin = sum(t, &p);
	t->n = l + 1;
	t->levels[l].count = 0;
}

/* From row to row, with the stride that the grid's rows end. */
static bool bend_row(struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	if (t->n > 1 || t->rows != LOOP_NEST_ROW_ENDS || t->levels[0].count ||
	    number != t->newest + (uint64_t)t->levels[0].stride || number >= chunk_grid_size(g))
		return false;
	t->rows = LOOP_NEST_ROW_GOES_ON;
	t->levels[0].k++;
	t->levels[0].seen++;
	t->reach = t->levels[0].k;
	t->newest = number;
	return true;
}

/* A run of level l has gone on where it should have ended. Once or twice that is a first run of
 * which something was left out; then the loop has no count. */
static void stretch(struct loop_nest *t, unsigned int l)
{
	if (++t->stretched > STRETCH_MAX)
		forget_above(t, l);
	else
		t->levels[l].count++;
}

bool loop_nest_bend(struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	if (bend_row(t, g, number))
		return true;
	struct place p = current(t);
	for (unsigned int l = 0; l < t->n; l++) {
		struct loop_level *v = &t->levels[l];
		p.k[l]++;
		if (v->seen && is_at(t, g, &p, number)) {
			if (l > 0)
				t->levels[l - 1].count = t->levels[l - 1].k + 1;
			if (v->count && v->k + 1 == v->count)
				stretch(t, l);
			go(t, &p, number);
			v->seen++;
			t->reach = p.k[0];
			return true;
		}
		p.k[l] = 0;
	}
	return false;
}

/* How many strides of level 0 a chunk lies before another, in a row; 0: none, or too many. */
static uint64_t strides_before(const struct loop_nest *t, const struct chunk_grid *g,
			       uint64_t number, uint64_t start)
{
	const int64_t stride = t->levels[0].stride, d = (int64_t)(start - number);
	uint64_t found = 0;
	if (d % stride || d / stride < 1 || d / stride > LOOP_NEST_AHEAD)
		return 0;
	const struct grid_vector s = step_of(&t->levels[0], (uint64_t)(d / stride));
	if (!grid_vector_sum(g, number, &s, 1, &found) || found != start)
		return 0;
	return (uint64_t)(d / stride);
}

/* The run goes the other way, from the farthest chunk to the one that is now before its first. */
static void turn_round(struct loop_nest *t, const struct chunk_grid *g, uint64_t number,
		       uint64_t before)
{
	struct loop_level *v = &t->levels[0];
	t->origin += t->reach * (uint64_t)v->stride;
	v->from += (uint64_t)v->stride;
	v->stride = -v->stride;
	v->k = t->reach = t->reach + before;
	t->newest = number;
	t->skipped = 0;
	t->early = 0;
	if (t->rows != LOOP_NEST_ROW_GOES_ON)
		t->rows = (v->stride == 1 || v->stride == -1) &&
					  grid_vector_starts_row(g, t->origin, v->stride > 0)
				  ? LOOP_NEST_ROW_PRESUMED
				  : LOOP_NEST_ROW_ENDS;
}

/* The end of the first run, which comes when the second has begun. */
static bool is_tail(struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	struct loop_level *v = &t->levels[0];
	if (t->n != 2)
		return false;
	const uint64_t last = t->origin + (v->count - 1) * (uint64_t)v->stride;
	const uint64_t more = last < chunk_grid_size(g) ? strides_before(t, g, last, number) : 0;
	if (more == 0 || more > NEAR)
		return false;
	v->count += more;
	return true;
}

bool loop_nest_widen(struct loop_nest *t, const struct chunk_grid *g, uint64_t number)
{
	struct loop_level *v = &t->levels[0], *top = &t->levels[t->n - 1];
	if (t->n > 1 ? top->seen != 1 || top->k != 1 : v->seen > YOUNG)
		return false;
	if (is_tail(t, g, number))
		return true;
	const uint64_t before = strides_before(t, g, number, loop_nest_run_start(t));
	if (before == 0)
		return false;
	if (t->n == 1 && t->early++ > 0) {
		turn_round(t, g, number, before);
		return true;
	}
	v->k += before;
	t->reach += before;
	if (t->n == 1) {
		t->origin = number;
		return true;
	}
	if (v->count && v->count <= v->k)
		v->count = v->k + 1;
	top->stride -= (int64_t)before * v->stride;
	return true;
}

bool loop_nest_before(const struct loop_nest *t, const struct chunk_grid *g, uint64_t a,
		      uint64_t *number)
{
	*number = a - (uint64_t)t->levels[0].stride;
	return *number < chunk_grid_size(g) && strides_before(t, g, *number, a) == 1;
}

int loop_nest_strides(const struct loop_nest *t, const struct chunk_grid *g, uint64_t a, uint64_t b)
{
	const int64_t stride = t->levels[0].stride, d = (int64_t)(b - a);
	if (d % stride || d / stride > NEAR || d / stride < -NEAR)
		return 0;
	const bool forth = d / stride >= 0;
	const uint64_t n = (uint64_t)(forth ? d / stride : -(d / stride));
	const bool flat = n == 1 && t->rows == LOOP_NEST_ROW_GOES_ON;
	return flat || strides_before(t, g, forth ? a : b, forth ? b : a) == n ? (int)(d / stride)
									       : 0;
}

/* Begins the current run again, from a chunk that it has passed. */
static bool rewind_run(struct loop_nest *t, const struct chunk_grid *g, uint64_t start)
{
	const int64_t stride = t->levels[0].stride;
	const int64_t d = (int64_t)(start - loop_nest_run_start(t));
	struct place p = current(t);
	if (d % stride || d / stride < 0 || (uint64_t)(d / stride) > t->reach)
		return false;
	p.k[0] = (uint64_t)(d / stride);
	if (!is_at(t, g, &p, start))
		return false;
	go(t, &p, start);
	return true;
}

static bool loops_below_are_done(const struct loop_nest *t)
{
	for (unsigned int l = 0; l + 1 < t->n; l++)
		if (t->levels[l].k + 1 != t->levels[l].count)
			return false;
	return true;
}

static void to_zero(struct loop_nest *t, unsigned int n)
{
	for (unsigned int l = 0; l < n; l++)
		t->levels[l].k = 0;
	t->reach = 0;
}

/* The shape is kept, at another place. A top level that was never sure of its stride is not
 * expected to go on until it has taken the same one twice. */
static void take_elsewhere(struct loop_nest *t, uint64_t start)
{
	while (t->n > 2 && t->levels[t->n - 1].seen < 2)
		t->n--;
	struct loop_level *top = &t->levels[t->n - 1];
	if (t->n > 1 && top->seen < 2) {
		struct place p = current(t);
		for (unsigned int l = 0; l + 1 < t->n; l++)
			p.k[l] = 0;
		const uint64_t last = sum(t, &p);
		const int64_t stride = (int64_t)(start - last);
		top->seen = stride == top->stride ? 2 : 0;
		top->from = last;
		top->stride = stride;
		top->count = 0;
	}
	to_zero(t, t->n);
	t->origin = start;
}

static void add_level(struct loop_nest *t, uint64_t start)
{
	struct loop_level *top = &t->levels[t->n - 1];
	top->count = t->n == 1 ? t->reach + 1 : top->k + 1;
	to_zero(t, t->n);
	t->levels[t->n++] = (struct loop_level){
		.from = t->origin, .stride = (int64_t)(start - t->origin), .k = 1, .seen = 1};
	if (t->rows == LOOP_NEST_ROW_PRESUMED)
		t->rows = LOOP_NEST_ROW_ENDS;
}

void loop_nest_restart(struct loop_nest *t, const struct chunk_grid *g, uint64_t start)
{
	struct loop_level *top = &t->levels[t->n - 1];
	const bool done = loops_below_are_done(t);
	t->skipped = 0;
	if (rewind_run(t, g, start))
		return;
	if (t->n == 2 && top->seen == 1 && top->k == 1 && t->levels[0].k == 0) {
		/* nothing came of the start that was presumed last */
		top->stride = (int64_t)(start - t->origin);
		top->from = t->origin;
	} else if (done && t->n < LOOP_NEST_LEVELS && (t->n == 1 || top->seen > 0)) {
		add_level(t, start);
	} else {
		take_elsewhere(t, start);
	}
	t->newest = start;
}
