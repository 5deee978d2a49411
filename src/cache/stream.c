/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h. */
#include "stream.h"

#define STOPPED_NS UINT64_C(1000000000) /* without a read for this long, a stream has stopped */
#define COST_MAX   (UINT64_C(1) << 40)	/* larger than any chunk; sums do not overflow */

void stream_describe(const struct cache_owner *o, uint32_t dataset, struct cache_dataset *out)
{
	o->src.describe(o->src.ctx, dataset, out);
	out->cost = min_u64(out->cost, COST_MAX) + sizeof(struct entry);
	out->load_cost =
		max_u64(min_u64(out->load_cost, COST_MAX) + sizeof(struct entry), out->cost);
}

/* ---- shares ---- */

static uint64_t stream_share(const struct cache_stream *s)
{
	const struct cache *c = s->owner->cache;
	uint64_t others = c->prefetch_streams - (s->prefetch_bytes > 0);
	return load_queue_prefetch_share(c) / (others + 1);
}

/* Returns the bytes that the first batches of series may still take. A program may read two chunks
 * of each of many datasets and leave the batches unread. They do not take the room of what it reads
 * later. */
static uint64_t first_room(const struct cache_stream *s)
{
	enum { FIRST_SHARE = 4 };
	const uint64_t all = stream_share(s) / FIRST_SHARE;
	return all > s->prefetch_bytes ? all - s->prefetch_bytes : 0;
}

/* Another thread may have read for the stream after this thread read the clock, so read_ns may be
 * later than now. */
static bool has_stopped(const struct cache_stream *s, uint64_t now)
{
	return !s || (now > s->read_ns && now - s->read_ns > STOPPED_NS);
}

/* Takes room from a stream that has stopped, so that others can prefetch. */
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
	const uint64_t all = load_queue_prefetch_share(c);
	if (s && s->prefetch_bytes + cost > stream_share(s))
		return false;
	while (c->prefetch_bytes + cost > all)
		if (!reclaim(c, s, todo))
			return false;
	return true;
}

/* ---- requests ---- */

struct entry *stream_find_locked(struct cache_owner *o, uint32_t dataset, uint64_t slot,
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

bool stream_request_locked(struct cache_owner *o, struct cache_stream *s, uint8_t group,
			   uint32_t dataset, const struct cache_dataset *d, uint64_t slot,
			   struct todo *todo)
{
	struct cache *c = o->cache;
	struct entry *e = stream_find_locked(o, dataset, slot, todo);
	if (e && e->list == LIST_LOADING)
		atomic_store(&e->fill->cancel, false);
	if (e && e->stream != s)
		e->shared = true;
	if (e)
		return true;
	if (!has_share(c, s, d->load_cost, todo))
		return false;
	e = entry_new_locked(o, dataset, slot, d, LIST_PREFETCH);
	if (!e)
		return false;
	entry_expect_locked(c, e, s, group, d->load_cost);
	return true;
}

static void forget_list(struct cache_stream *s, enum entry_list which, int group, struct todo *todo)
{
	struct cache *c = s->owner->cache;
	struct entry *next;
	for (struct entry *e = c->lists[which].head; e; e = next) {
		next = e->next;
		if (e->stream == s && (group < 0 || e->group == group))
			entry_forget_locked(c, e, &todo->victims);
	}
}

/* Called if the stream will not read the prefetched chunks of a group, or of all groups if group is
 * negative. */
static void forget(struct cache_stream *s, int group, struct todo *todo)
{
	if (s->prefetch_bytes == 0)
		return;
	forget_list(s, LIST_PREFETCH, group, todo);
	forget_list(s, LIST_LOADING, group, todo);
	forget_list(s, LIST_UNREAD, group, todo);
}

/* ---- reading ---- */

static bool slot_of(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot)
{
	const struct cache_owner *o = ctx;
	return o->src.slot(o->src.ctx, dataset, number, slot);
}

static bool is_known(void *ctx, uint32_t dataset, uint64_t slot)
{
	struct cache_owner *o = ctx;
	return entry_find_locked(o->cache, o, dataset, slot);
}

void stream_read_locked(struct cache_stream *s, uint32_t dataset, uint64_t slot, bool late,
			struct todo *todo)
{
	struct cache_owner *o = s->owner;
	struct cache_dataset d;
	s->read_ns = todo->now;
	stream_describe(o, dataset, &d);
	const struct prefetch_dataset known = {
		.dataset = dataset,
		.rank = d.rank,
		.counts = d.counts,
		.cost = d.cost,
		.joined = d.joined,
		.most = stream_share(s) / d.load_cost,
		.room = first_room(s) / d.load_cost,
		.read_ahead = d.read_ahead,
		.in_order = atomic_load(&s->in_order),
		.slot = slot_of,
		.is_known = is_known,
		.ctx = o,
	};
	const struct prefetch_read read = {
		.slot = slot,
		.number = o->src.number(o->src.ctx, dataset, slot),
		.now_ns = todo->now,
		.waited_ns = s->waited_ns,
		.latency_ns = latency_shortest(&o->latency),
		.late = late,
	};
	struct prefetch_advice advice = prefetch_read(s->prefetch, &known, &read);
	uint64_t next = 0;
	if (advice.action == PREFETCH_CANCEL)
		forget(s, advice.group, todo);
	while (advice.action == PREFETCH_LOAD && prefetch_next(&advice, &known, &next))
		if (!stream_request_locked(o, s, advice.group, dataset, &d, next, todo))
			break;
}

void stream_close_locked(struct cache_stream *s, struct todo *todo)
{
	for (struct entry *e = s->owner->cache->lists[LIST_LOADING].head; e; e = e->next)
		if (e->stream == s && !e->shared)
			entry_cancel_locked(e);
	forget(s, -1, todo);
}
