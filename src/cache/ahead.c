/* SPDX-License-Identifier: Apache-2.0 */
/* See ahead.h. */
#include "ahead.h"

enum {
	LATENCY_WINDOW = 32, /* loads */
	REQUEST = 5 << 18,   /* bytes of the kernel's at once, and a quarter */
	HOLES = 16,	     /* chunks without a slot that are passed over for each that has one */
};

#define STOPPED_NS UINT64_C(1000000000) /* without a read: a reader that has stopped */
#define COST_MAX   (UINT64_C(1) << 40)	/* larger than any chunk; sums stay far from overflow */

void ahead_describe(const struct cache_owner *o, uint32_t dataset, struct cache_dataset *out)
{
	o->src.describe(o->src.ctx, dataset, out);
	out->cost = min_u64(out->cost, COST_MAX) + sizeof(struct entry);
	out->load_cost =
		max_u64(min_u64(out->load_cost, COST_MAX) + sizeof(struct entry), out->cost);
}

/* ---- how long loads take ---- */

/* The least of the last 32 to 64: it follows a store that became slower, and a burst of loads that
 * stand in each other's way does not count. */
void ahead_measure_locked(struct cache_owner *o, uint64_t ns)
{
	struct latency *l = &o->latency;
	ns = max_u64(ns, 1);
	if (l->now == 0 || ns < l->now)
		l->now = ns;
	if (++l->n < LATENCY_WINDOW)
		return;
	*l = (struct latency){.before = l->now};
}

uint64_t ahead_latency(const struct cache_owner *o)
{
	const struct latency *l = &o->latency;
	return l->now && l->before ? min_u64(l->now, l->before) : l->now + l->before;
}

/* ---- shares ---- */

static uint64_t stream_share(const struct cache_stream *s)
{
	const struct cache *c = s->owner->cache;
	uint64_t others = c->ahead_streams - (s->ahead_bytes > 0);
	return turn_ahead_share(c) / (others + 1);
}

/* Another thread may have touched the stream after this one read the clock. */
static bool has_stopped(const struct cache_stream *s, uint64_t now)
{
	return !s || (now > s->touched_ns && now - s->touched_ns > STOPPED_NS);
}

/* A reader that stopped in the middle does not keep others from loading ahead. */
static bool reclaim(struct cache *c, const struct cache_stream *s, struct todo *todo)
{
	for (struct entry *e = list_oldest(c, LIST_UNREAD); e;) {
		if (e->stream != s && has_stopped(e->stream, todo->now)) {
			entry_forget_locked(c, e, &todo->victims);
			return true;
		}
		if (e == c->lists[LIST_UNREAD].head)
			break;
		e = e->prev;
	}
	return false;
}

static bool has_share(struct cache *c, const struct cache_stream *s, uint64_t cost,
		      struct todo *todo)
{
	const uint64_t all = turn_ahead_share(c);
	if (s && s->ahead_bytes + cost > stream_share(s))
		return false;
	while (c->ahead_bytes + cost > all)
		if (!reclaim(c, s, todo))
			return false;
	return true;
}

/* ---- asking ---- */

struct entry *ahead_find_locked(struct cache_owner *o, uint32_t dataset, uint64_t slot,
				struct todo *todo)
{
	struct cache *c = o->cache;
	struct entry *e = entry_find_locked(c, o, dataset, slot);
	if (e && e->list == LIST_FAILED && e->failed_until <= todo->now) {
		entry_drop_locked(c, e, &todo->victims);
		return NULL;
	}
	return e;
}

bool ahead_ask_locked(struct cache_owner *o, struct cache_stream *s, uint8_t pace, uint32_t dataset,
		      const struct cache_dataset *d, uint64_t slot, struct todo *todo)
{
	struct cache *c = o->cache;
	struct entry *e = ahead_find_locked(o, dataset, slot, todo);
	if (e && e->list == LIST_LOADING)
		atomic_store(&e->fill->unwanted, false);
	if (e && e->stream != s)
		e->shared = true;
	if (e)
		return true;
	if (!has_share(c, s, d->load_cost, todo))
		return false;
	e = entry_new_locked(o, dataset, slot, d->load_cost, LIST_AHEAD);
	if (!e)
		return false;
	entry_expect_locked(c, e, s, pace, d->load_cost);
	return true;
}

/* ---- patterns ---- */

static void forget_list(struct cache_stream *s, enum entry_list which, int pace, struct todo *todo)
{
	struct cache *c = s->owner->cache;
	struct entry *next;
	for (struct entry *e = c->lists[which].head; e; e = next) {
		next = e->next;
		if (e->stream == s && (pace < 0 || e->pace == pace))
			entry_forget_locked(c, e, &todo->victims);
	}
}

/* What was asked for along a pattern (or, negative, at all) is not expected to be read. */
static void forget(struct cache_stream *s, int pace, struct todo *todo)
{
	if (s->ahead_bytes == 0)
		return;
	forget_list(s, LIST_AHEAD, pace, todo);
	forget_list(s, LIST_LOADING, pace, todo);
	forget_list(s, LIST_UNREAD, pace, todo);
}

/* Chunks that are not stored are passed over. */
static void ask(struct cache_stream *s, const struct track *t, uint32_t dataset,
		const struct cache_dataset *d, struct todo *todo)
{
	struct cache_owner *o = s->owner;
	const struct pattern_grid grid = {.rank = d->rank, .counts = d->counts};
	const uint8_t pace = (uint8_t)(t - s->pattern.tracks);
	const uint32_t depth = s->paces[pace].depth;
	const uint64_t end = (uint64_t)HOLES * (depth + 1);
	uint64_t number = 0, slot = 0, stored = 0;
	for (uint64_t n = 0; stored < depth && n < end; n++) {
		if (!pattern_expect(t, &grid, n, &number))
			break;
		if (!o->src.slot(o->src.ctx, dataset, number, &slot))
			continue;
		if (!ahead_ask_locked(o, s, pace, dataset, d, slot, todo))
			break;
		stored++;
	}
}

/* Chunks that follow each other are slots that do, and bytes of the file; two threads that read a
 * request of the kernel each take turns, and leave none out. */
static bool is_sequential(const struct cache_stream *s, const struct track *t,
			  const struct cache_dataset *d)
{
	const struct pattern_grid grid = {.rank = d->rank, .counts = d->counts};
	const struct cache_owner *o = s->owner;
	uint64_t number = 0, slot = 0;
	if (!pattern_expect(t, &grid, 0, &number) ||
	    !o->src.slot(o->src.ctx, s->dataset, number, &slot))
		return false;
	const uint64_t way = max_u64(slot, s->slot) - min_u64(slot, s->slot);
	return slot == s->slot + 1 || (slot > 0 && way * d->cost <= REQUEST &&
				       entry_find_locked(o->cache, s->owner, s->dataset, slot - 1));
}

static void step(struct cache_stream *s, struct track *t, enum pattern_event event,
		 const struct cache_dataset *d, bool late, const struct todo *todo)
{
	struct pace *p = &s->paces[t - s->pattern.tracks];
	const struct pace_step now = {
		.now_ns = todo->now,
		.waited_ns = s->waited_ns,
		.steps = 1,
		.latency_ns = ahead_latency(s->owner),
		.cost = d->cost,
		.worth = pattern_worth(t),
		.late = late,
		.sequential = is_sequential(s, t, d),
	};
	if (event == PATTERN_GUESS)
		pace_guess(p, &now);
	else if (t->depth == 0) /* confirmed as soon as it was born */
		pace_begin(p, &now);
	else
		pace_follow(p, &now);
	t->depth = p->depth;
}

void ahead_touch_locked(struct cache_stream *s, uint32_t dataset, uint64_t slot, bool late,
			struct todo *todo)
{
	struct cache_owner *o = s->owner;
	struct cache_dataset d;
	struct track *t = NULL;
	const bool again = s->touched_ns && s->dataset == dataset && s->slot == slot;
	s->touched_ns = todo->now;
	if (again)
		return; /* one use */
	s->dataset = dataset;
	s->slot = slot;
	ahead_describe(o, dataset, &d);
	const struct pattern_grid grid = {.rank = d.rank, .counts = d.counts};
	const enum pattern_event event = pattern_touch(
		&s->pattern, dataset, &grid, o->src.number(o->src.ctx, dataset, slot), &t);
	switch (event) {
	case PATTERN_AGAIN:
	case PATTERN_RANDOM:
		return;
	case PATTERN_BREAKS:
		pace_break(&s->paces[t - s->pattern.tracks]);
		forget(s, (int)(t - s->pattern.tracks), todo);
		return;
	case PATTERN_GUESS:
	case PATTERN_FOLLOWS:
		step(s, t, event, &d, late, todo);
		ask(s, t, dataset, &d, todo);
		return;
	}
}

void ahead_wasted_locked(struct cache_stream *s, uint8_t pace)
{
	if (pace < AHEAD_PACES)
		pace_wasted(&s->paces[pace]);
}

void ahead_close_locked(struct cache_stream *s, struct todo *todo)
{
	for (struct entry *e = s->owner->cache->lists[LIST_LOADING].head; e; e = e->next)
		if (e->stream == s && !e->shared)
			entry_unwanted_locked(e);
	forget(s, -1, todo);
}
