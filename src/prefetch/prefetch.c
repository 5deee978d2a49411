/* SPDX-License-Identifier: Apache-2.0 */
/* See prefetch/prefetch.h. */
#include <prefetch/prefetch.h>

#include <stdlib.h>

#include <base/mem.h>
#include <base/search.h>
#include <prefetch/kernel.h>

#include "depth.h"
#include "pattern.h"

enum {
	HOLES = 16,	     /* chunks without a slot that are skipped for each chunk with one */
	JOINED_DISTANCE = 2, /* slots; loads of chunks that are further apart are not joined */
};

_Static_assert((int)PREFETCH_FILE_ORDER == (int)PATTERN_TRACKS,
	       "one group for each track, and one for file order");

struct prefetch {
	struct pattern pattern;
	struct depth depths[PREFETCH_GROUPS];
	bool has_read;
	uint32_t dataset; /* of the last read */
	uint64_t slot;
};

struct prefetch *prefetch_new(void)
{
	return calloc(1, sizeof(struct prefetch));
}

void prefetch_free(struct prefetch *p)
{
	free(p);
}

static struct chunk_grid grid_of(const struct prefetch_dataset *d)
{
	return (struct chunk_grid){.rank = d->rank, .counts = d->counts};
}

/* Returns true if the program may be reading in file order, because the slots are consecutive. If
 * two threads serve the kernel's requests in turn, the slots are not consecutive, but the slot
 * before the next one is loaded or requested. */
static bool is_sequential(const struct prefetch *p, const struct track *t,
			  const struct prefetch_dataset *d)
{
	const struct chunk_grid grid = grid_of(d);
	uint64_t number = 0, slot = 0;
	if (!pattern_expect(t, &grid, 0, &number) || !d->slot(d->ctx, d->dataset, number, &slot))
		return false;
	const uint64_t distance = max_u64(slot, p->slot) - min_u64(slot, p->slot);
	return slot == p->slot + 1 || (slot > 0 && distance * d->cost <= KERNEL_REQUEST &&
				       d->is_known(d->ctx, d->dataset, slot - 1));
}

/* Returns how many loads of the chunks that the track predicts take one request, which is 1 unless
 * the chunks are neighbours. */
static uint64_t joined_by(const struct track *t, const struct prefetch_dataset *d)
{
	const struct chunk_grid grid = grid_of(d);
	uint64_t slots[2], number = 0;
	if (d->joined <= 1)
		return 1;
	for (uint64_t i = 0; i < 2; i++)
		if (!pattern_expect(t, &grid, i, &number) ||
		    !d->slot(d->ctx, d->dataset, number, &slots[i]))
			return 1;
	const uint64_t distance = max_u64(slots[0], slots[1]) - min_u64(slots[0], slots[1]);
	return distance <= JOINED_DISTANCE ? d->joined : 1;
}

/* Returns true if no other chunk of the dataset was read than those of a track. */
static bool is_alone(const struct pattern *p, const struct track *track)
{
	for (uint32_t i = 0; i < p->nunmatched; i++)
		if (p->unmatched[i].dataset == track->dataset)
			return false;
	for (const struct track *t = p->tracks; t < p->tracks + PATTERN_TRACKS; t++)
		if (t != track && t->used && t->dataset == track->dataset)
			return false;
	return true;
}

/* Returns how many chunks the program has read before the current one if it has begun to read a
 * dataset in order: either with chunks 0 and 1, or with DEPTH_SERIES others. Otherwise returns 0.
 * Requests of the kernel's read-ahead arrive out of order, so the track may have skipped the last
 * of these. */
static uint64_t begun(const struct prefetch *p, const struct track *t, bool in_order,
		      bool sequential)
{
	const struct loop_level *level = &t->nest.levels[0];
	const uint64_t n = level->k + 1;
	const bool begins = n == 2 ? in_order && t->nest.origin == 0
				   : n >= DEPTH_SERIES && n < DEPTH_SERIES + LOOP_NEST_AHEAD &&
					     sequential && t->nest.origin != 0;
	return begins && t->nest.n == 1 && level->stride == 1 && is_alone(&p->pattern, t) ? level->k
											  : 0;
}

static uint32_t follow(struct prefetch *p, struct track *t, const struct prefetch_dataset *d,
		       const struct prefetch_read *read, bool in_order)
{
	struct depth *depth = &p->depths[t - p->pattern.tracks];
	const bool sequential = is_sequential(p, t, d);
	const struct depth_step step = {
		.now_ns = read->now_ns,
		.waited_ns = read->waited_ns,
		/* A new track begins with the chunks that made it. */
		.steps = t->depth ? 1 : t->nest.levels[0].k + 1,
		.latency_ns = read->latency_ns,
		.cost = d->cost,
		.joined = joined_by(t, d),
		.late = read->late,
		.sequential = sequential,
		.read_ahead = sequential ? d->read_ahead : KERNEL_READ_AHEAD,
		.begun = begun(p, t, in_order, sequential),
		.room = d->room,
		/* A series ends with the row of the grid. */
		.newest = t->nest.n == 1 ? t->nest.newest : UINT64_MAX,
	};
	if (t->depth == 0)
		depth_begin(depth, &step);
	else
		depth_follow(depth, &step);
	t->depth = (uint32_t)max_u64(depth->chunks, 1);
	return depth->chunks;
}

uint32_t prefetch_refill(uint64_t joined, uint32_t depth)
{
	return (uint32_t)max_u64(min_u64(joined, depth / 2), 1);
}

/* Returns true if the n-th chunk after the newest one, or the track's last one if that comes before
 * it, is loaded or requested. */
static bool reaches(const struct track *t, const struct prefetch_dataset *d, uint64_t n)
{
	const struct chunk_grid grid = grid_of(d);
	uint64_t number = 0, slot = 0;
	/* the number of chunks that the track predicts, at most n */
	n = LOWER_BOUND(i, n, pattern_expect(t, &grid, i, &number));
	return n == 0 || (pattern_expect(t, &grid, n - 1, &number) &&
			  d->slot(d->ctx, d->dataset, number, &slot) &&
			  d->is_known(d->ctx, d->dataset, slot));
}

/* Computes the advice to load `depth` chunks of the track. */
static void advise(struct prefetch_advice *a, const struct track *t,
		   const struct prefetch_dataset *d, uint32_t depth)
{
	const uint64_t joined = joined_by(t, d);
	if (joined > 1) {
		depth = (uint32_t)min_u64(depth, max_u64(d->most, 1));
		const uint32_t refill = prefetch_refill(joined, depth);
		if (refill > 1 && reaches(t, d, depth - refill + 1))
			return;
	}
	a->action = PREFETCH_LOAD;
	a->track = t;
	a->left = depth;
	a->end = depth + (uint64_t)HOLES * min_u64(depth + 1, DEPTH_MAX);
}

/* Returns true if the last read was of the same chunk. Remembers this one. */
static bool is_same(struct prefetch *p, uint32_t dataset, uint64_t slot)
{
	const bool same = p->has_read && p->dataset == dataset && p->slot == slot;
	p->has_read = true;
	p->dataset = dataset;
	p->slot = slot;
	return same;
}

struct prefetch_advice prefetch_read(struct prefetch *p, const struct prefetch_dataset *d,
				     const struct prefetch_read *read)
{
	const struct chunk_grid grid = grid_of(d);
	struct prefetch_advice a = {.action = PREFETCH_NOTHING};
	struct track *t = NULL;
	const bool in_order = p->has_read && p->dataset == d->dataset && p->slot + 1 == read->slot;
	if (is_same(p, d->dataset, read->slot))
		return a;
	const enum pattern_event event =
		pattern_read(&p->pattern, d->dataset, &grid, read->number, &t);
	if (event == PATTERN_REPEAT || event == PATTERN_RANDOM)
		return a;
	a.group = (uint8_t)(t - p->pattern.tracks);
	if (event == PATTERN_BREAKS) {
		depth_break(&p->depths[a.group]);
		a.action = PREFETCH_CANCEL;
		return a;
	}
	if (!d->in_order || t->nest.n > 1)
		advise(&a, t, d, follow(p, t, d, read, in_order));
	return a;
}

bool prefetch_next(struct prefetch_advice *a, const struct prefetch_dataset *d, uint64_t *slot)
{
	const struct chunk_grid grid = grid_of(d);
	uint64_t number = 0;
	while (a->left > 0 && a->next < a->end) {
		if (!pattern_expect(a->track, &grid, a->next++, &number))
			return false;
		if (!d->slot(d->ctx, d->dataset, number, slot))
			continue;
		a->left--;
		return true;
	}
	return false;
}

void prefetch_wasted(struct prefetch *p, uint8_t group)
{
	if (group < PREFETCH_GROUPS)
		depth_wasted(&p->depths[group]);
}

uint32_t prefetch_in_file_order(struct prefetch *p, const struct prefetch_step *step)
{
	struct depth *depth = &p->depths[PREFETCH_FILE_ORDER];
	const struct depth_step s = {
		.now_ns = step->now_ns,
		.waited_ns = step->waited_ns,
		.steps = step->slots,
		.latency_ns = step->latency_ns,
		.cost = step->cost,
		.joined = step->joined,
		.read_ahead = step->read_ahead,
		.late = step->waited_ns > depth->waited_ns,
	};
	if (depth->stepped_ns == 0 || step->begins)
		depth_begin(depth, &s);
	else
		depth_follow(depth, &s);
	return depth->chunks;
}
