/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading through the cache. One lock for each cache guards all of its state (entry.h). It is
 * never held over a call of the source, over freeing chunk bytes, or over a log line: what is
 * decided under the lock (loads to start, victims to free) is put on a list and done after it.
 *
 * A reader whose chunk is not there starts the load and waits for it like everybody else who wants
 * that chunk; the fill carries the outcome to all of them. A load may complete before it returns
 * from the source, in the thread that started it.
 *
 * A kept failure is a load that is complete: its reader "waits" for it like any other.
 */
#include <cache/cache.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <base/log.h>

#include "entry.h"
#include "pattern.h"

enum {
	IN_FLIGHT_SHARE = 4, /* part of the budget that loads under way may come to */
	AHEAD_SHARE = 2,     /* part of the budget that all streams together read ahead */
	AHEAD_STREAMS = 2,   /* streams that this part is meant for at least */
	AHEAD_MAX = 64,	     /* chunks ahead of one progression */
};

#define COST_MAX (UINT64_C(1) << 40) /* larger than any chunk; sums stay far from overflow */

struct cache_stream {
	struct cache_owner *owner;
	struct pattern pattern; /* guarded by the cache's lock */
};

/* What a source says of a dataset, asked before the lock is taken. */
struct dataset_facts {
	uint32_t dataset;
	uint64_t cost;
	uint64_t nchunks;
};

struct cache *cache_new(const struct env *env, uint64_t budget, struct err *err)
{
	struct cache *c = calloc(1, sizeof(*c));
	if (!c || pthread_mutex_init(&c->lock, NULL)) {
		free(c);
		err_errno(err, -ENOMEM, "chunk cache");
		return NULL;
	}
	c->env = env;
	c->stats.budget = budget;
	return c;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	assert(c->owners == 0 && !c->table);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void cache_get_stats(struct cache *c, struct cache_stats *out)
{
	pthread_mutex_lock(&c->lock);
	entry_check_locked(c);
	*out = c->stats;
	pthread_mutex_unlock(&c->lock);
}

struct cache_owner *cache_owner_new(struct cache *c, const struct cache_source *src,
				    struct err *err)
{
	struct cache_owner *o = calloc(1, sizeof(*o));
	if (!o || pthread_cond_init(&o->idle, NULL)) {
		free(o);
		err_errno(err, -ENOMEM, "chunk cache");
		return NULL;
	}
	o->cache = c;
	o->src = *src;
	pthread_mutex_lock(&c->lock);
	c->owners++;
	pthread_mutex_unlock(&c->lock);
	return o;
}

void cache_owner_free(struct cache_owner *o)
{
	if (!o)
		return;
	struct cache *c = o->cache;
	struct entry *victims = NULL;
	pthread_mutex_lock(&c->lock);
	while (o->loading > 0)
		pthread_cond_wait(&o->idle, &c->lock);
	entry_check_locked(c);
	while (o->entries)
		entry_drop_locked(c, o->entries, &victims);
	c->owners--;
	pthread_mutex_unlock(&c->lock);
	entry_free_all(victims);
	pthread_cond_destroy(&o->idle);
	free(o);
}

struct cache_stream *cache_stream_new(struct cache_owner *o)
{
	struct cache_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->owner = o;
	pthread_mutex_lock(&o->cache->lock);
	o->cache->streams++;
	pthread_mutex_unlock(&o->cache->lock);
	return s;
}

void cache_stream_free(struct cache_stream *s)
{
	if (!s)
		return;
	struct cache *c = s->owner->cache;
	pthread_mutex_lock(&c->lock);
	c->streams--;
	pthread_mutex_unlock(&c->lock);
	free(s);
}

static struct dataset_facts ask(const struct cache_owner *o, uint32_t dataset)
{
	struct dataset_facts facts = {
		.dataset = dataset,
		.cost = o->src.cost(o->src.ctx, dataset),
		.nchunks = o->src.nchunks(o->src.ctx, dataset),
	};
	facts.cost = min_u64(facts.cost, COST_MAX) + sizeof(struct entry);
	return facts;
}

/* A call's time, and what it decides under the lock and does after it. */
struct todo {
	uint64_t now;
	struct cache_fill *first, **end; /* loads to start, in order */
	struct entry *victims;
};

static void todo_init(struct todo *todo, const struct cache *c)
{
	*todo = (struct todo){.now = c->env->now(c->env), .end = &todo->first};
}

static void todo_load(struct todo *todo, struct cache_fill *f)
{
	*todo->end = f;
	todo->end = &f->next;
}

/* Without the lock. A fill may be gone as soon as its load was started. */
static void todo_do(struct todo *todo, struct cache_owner *o)
{
	struct cache_fill *f = todo->first;
	entry_free_all(todo->victims);
	while (f) {
		struct cache_fill *next = f->next;
		const struct entry_key *key = &f->entry->key;
		o->src.load(o->src.ctx, (uint32_t)key->dataset, key->chunk, f);
		f = next;
	}
}

/* The entry of a chunk, unless it is a failure whose time is over: that is dropped. */
static struct entry *find_locked(struct cache_owner *o, uint32_t dataset, uint64_t chunk,
				 struct todo *todo)
{
	struct entry *e = entry_find_locked(o->cache, o, dataset, chunk);
	if (!e || !entry_is_failed(e) || todo->now < e->failed_until)
		return e;
	entry_drop_locked(o->cache, e, &todo->victims);
	return NULL;
}

/* A load ahead of any reader. False when there is no room in flight, or no memory. */
static bool load_ahead_locked(struct cache_owner *o, const struct dataset_facts *facts,
			      uint64_t chunk, struct todo *todo)
{
	struct cache *c = o->cache;
	uint64_t loading = c->in_flight + facts->cost;
	if (find_locked(o, facts->dataset, chunk, todo))
		return true;
	/* What readers hold leaves less room; without room a chunk would go as soon as it comes. */
	if (loading > c->stats.budget / IN_FLIGHT_SHARE || c->held + loading > c->stats.budget)
		return false;
	struct entry *e = entry_new_locked(o, facts->dataset, chunk, facts->cost);
	if (!e)
		return false;
	e->ahead = true;
	c->stats.loads++;
	c->stats.prefetches++;
	todo_load(todo, e->fill);
	return true;
}

/* Chunks of one dataset that a stream may have ahead: what one reads ahead should not push out
 * what others have. */
static uint64_t ahead_limit_locked(const struct cache_stream *s, uint64_t cost)
{
	const struct cache *c = s->owner->cache;
	uint64_t share = c->stats.budget / AHEAD_SHARE / max_u64(c->streams, AHEAD_STREAMS);
	return share / pattern_active(&s->pattern) / cost;
}

static void read_ahead_locked(struct cache_stream *s, const struct dataset_facts *facts,
			      uint64_t chunk, struct todo *todo)
{
	const struct pattern_grid grid = {.rank = 1, .counts = &facts->nchunks};
	struct track *t = NULL;
	uint64_t limit = 0, next = 0;
	switch (pattern_touch(&s->pattern, facts->dataset, &grid, chunk, &t)) {
	case PATTERN_AGAIN:
	case PATTERN_RANDOM:
		return;
	case PATTERN_BREAKS:
		t->depth /= 2;
		return;
	case PATTERN_GUESS:
		t->depth = 1;
		break;
	case PATTERN_FOLLOWS:
		t->depth = t->depth ? (uint32_t)min_u64(2 * (uint64_t)t->depth, AHEAD_MAX) : 1;
		break;
	}
	limit = min_u64(t->depth, ahead_limit_locked(s, facts->cost));
	for (uint64_t n = 0; n < limit && pattern_expect(t, &grid, n, &next); n++)
		if (!load_ahead_locked(s->owner, facts, next, todo))
			return;
}

/* The entry of a chunk, held for a reader unless it is a failure; its fill, if any, has a reference
 * for the reader. If the entry is new, its load is on the list. */
static struct entry *take_locked(struct cache_owner *o, const struct dataset_facts *facts,
				 uint64_t chunk, struct todo *todo)
{
	struct cache *c = o->cache;
	struct entry *e = find_locked(o, facts->dataset, chunk, todo);
	if (!e) {
		e = entry_new_locked(o, facts->dataset, chunk, facts->cost);
		if (!e)
			return NULL;
		c->stats.misses++;
		c->stats.loads++;
		todo_load(todo, e->fill);
	} else if (e->fill && !entry_is_failed(e)) {
		c->stats.waits++;
	} else {
		c->stats.hits++;
	}
	if (!entry_is_failed(e))
		entry_hold_locked(c, e);
	if (e->fill)
		e->fill->refs++;
	return e;
}

/* A reader waits for a load, with the reference that it has to the fill. */
struct wait {
	struct cache *cache;
	struct cache_fill *fill;
};

static void wake(void *arg)
{
	const struct wait *w = arg;
	pthread_mutex_lock(&w->cache->lock);
	pthread_cond_broadcast(&w->fill->done);
	pthread_mutex_unlock(&w->cache->lock);
}

/* e: the reader's hold on it ends when the load has failed or cancel said so. */
static int wait_for(struct cache *c, struct entry *e, struct cache_fill *f, struct cancel *cancel,
		    struct err *err)
{
	struct wait w = {.cache = c, .fill = f};
	int code;
	cancel_begin(cancel, wake, &w);
	pthread_mutex_lock(&c->lock);
	while (!f->complete && !cancel_is_fired(cancel))
		pthread_cond_wait(&f->done, &c->lock);
	if (f->complete) {
		code = f->err.code;
		if (code && err)
			err_copy(err, &f->err);
	} else {
		code = err_set(err, -EINTR, "nobody waits for it any more");
		entry_leave_locked(e);
	}
	pthread_mutex_unlock(&c->lock);
	cancel_end(cancel);
	pthread_mutex_lock(&c->lock);
	fill_unref_locked(f);
	pthread_mutex_unlock(&c->lock);
	return code;
}

int cache_get(struct cache_owner *o, struct cache_stream *s, uint32_t dataset, uint64_t chunk,
	      struct cancel *cancel, const struct cache_chunk **out, struct err *err)
{
	struct cache *c = o->cache;
	const struct dataset_facts facts = ask(o, dataset);
	struct todo todo;
	assert(!s || s->owner == o);
	todo_init(&todo, c);

	pthread_mutex_lock(&c->lock);
	struct entry *e = take_locked(o, &facts, chunk, &todo);
	struct cache_fill *fill = e ? e->fill : NULL;
	if (e && s)
		read_ahead_locked(s, &facts, chunk, &todo);
	pthread_mutex_unlock(&c->lock);
	if (!e)
		return err_errno(err, -ENOMEM, "chunk cache");

	todo_do(&todo, o);
	int rc = fill ? wait_for(c, e, fill, cancel, err) : 0;
	if (rc == 0)
		*out = &e->chunk;
	return rc;
}

/* The entry that a reader's chunk is part of; only the cache's own bookkeeping in it changes. */
static struct entry *entry_of(const struct cache_chunk *chunk)
{
	_Static_assert(offsetof(struct entry, chunk) == 0, "a chunk is the start of its entry");
	return (struct entry *)(uintptr_t)chunk;
}

void cache_put(struct cache_owner *o, const struct cache_chunk *chunk)
{
	struct cache *c = o->cache;
	struct entry *victims = NULL;
	struct entry *e = entry_of(chunk);
	pthread_mutex_lock(&c->lock);
	assert(e->key.owner == o);
	entry_unhold_locked(c, e);
	entry_evict_locked(c, &victims);
	pthread_mutex_unlock(&c->lock);
	entry_free_all(victims);
}

void cache_advise(struct cache_owner *o, uint32_t dataset, uint64_t first, uint64_t n)
{
	struct cache *c = o->cache;
	const struct dataset_facts facts = ask(o, dataset);
	struct todo todo;
	if (first >= facts.nchunks)
		return;
	n = min_u64(n, facts.nchunks - first);
	todo_init(&todo, c);

	pthread_mutex_lock(&c->lock);
	for (uint64_t i = 0; i < n; i++)
		if (!load_ahead_locked(o, &facts, first + i, &todo))
			break;
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, o);
}

/* Failures of this moment, not of the chunk. */
static bool passes(int code)
{
	return code == -ENOMEM || code == -EINTR;
}

void cache_complete(struct cache_fill *fill, int code, struct cache_chunk *chunk,
		    const struct err *err)
{
	struct entry *e = fill->entry;
	struct cache *c = e->key.owner->cache;
	struct entry *victims = NULL;
	const struct env *env = c->env;
	const uint64_t now = env->now(env);
	bool unheard = false, kept = code && !passes(code);

	pthread_mutex_lock(&c->lock);
	if (code == 0) {
		entry_loaded_locked(c, e, chunk);
		entry_evict_locked(c, &victims);
	} else {
		if (err)
			err_copy(&fill->err, err);
		fill->err.code = code;
		unheard = e->holds == 0;
		c->stats.load_failures++;
		if (kept)
			entry_failed_locked(c, e, now, &victims);
		else
			entry_drop_locked(c, e, &victims);
	}
	fill->complete = true;
	pthread_cond_broadcast(&fill->done);
	if (!kept)
		fill_unref_locked(fill);
	pthread_mutex_unlock(&c->lock);

	entry_free_all(victims);
	if (code && chunk) {
		bytes_release(&chunk->slot);
		bytes_release(&chunk->heap);
	}
	/* Whoever reads the chunk will hear of it then. */
	if (unheard)
		log_debug(env->log, "reading ahead: %s", err ? err->msg : "failed");
}
