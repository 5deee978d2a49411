/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading through the cache. Each cache has one lock, which guards all of its state (entry.h). The
 * lock is not held while a load is started, chunk bytes are freed, or a message is logged. So
 * functions that hold the lock put loads to start and entries to free on a todo list, and their
 * caller processes the list after the unlock.
 *
 * All readers of a chunk that is not cached wait for one load, whose fill contains the result. A
 * cached failure is a complete load; a reader "waits" for it as for any other, and gets its error.
 */
#include <cache/cache.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <hsmount/log.h>

#include "entry.h"
#include "load_queue.h"
#include "stream.h"

/* ---- life ---- */

/* The budget calls this when metadata takes more or less of it. */
static void room_changed(void *ctx)
{
	struct cache *c = ctx;
	struct todo todo;
	todo_init(&todo, c);
	pthread_mutex_lock(&c->lock);
	load_queue_trim_locked(c, &todo);
	load_queue_run_locked(c, &todo);
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, c);
}

struct cache *cache_new(const struct env *env, unsigned int max_prefetch, struct err *err)
{
	struct cache *c = calloc(1, sizeof(*c));
	struct budget_stats budget;
	budget_get_stats(env->budget, &budget);
	if (!c || !two_q_init(&c->two_q, budget.limit) || pthread_mutex_init(&c->lock, NULL)) {
		if (c)
			two_q_release(&c->two_q);
		free(c);
		err_errno(err, -ENOMEM, "chunk cache");
		return NULL;
	}
	c->env = env;
	c->max_prefetch = max_prefetch;
	c->stats.budget = budget.limit;
	budget_add_holder(env->budget,
			  &(struct budget_holder){.room_changed = room_changed, .ctx = c});
	return c;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	assert(c->owners == 0 && !c->table);
	budget_remove_holder(c->env->budget, c);
	two_q_release(&c->two_q);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void cache_get_stats(struct cache *c, struct cache_stats *out)
{
	pthread_mutex_lock(&c->lock);
	entry_check_locked(c);
	*out = c->stats;
	out->loading = c->lists[LIST_LOADING].n;
	out->queued = c->lists[LIST_DEMAND].n + c->lists[LIST_PREFETCH].n;
	histogram_read(&c->waited, &out->waited);
	pthread_mutex_unlock(&c->lock);
	struct budget_stats budget;
	budget_get_stats(c->env->budget, &budget);
	out->charged = budget.used[BUDGET_TREES] + budget.used[BUDGET_PLANS] +
		       budget.used[BUDGET_DRAFTS] + budget.used[BUDGET_NAMES];
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
	o->serial = ++c->last_serial;
	pthread_mutex_unlock(&c->lock);
	return o;
}

/* Drops queued prefetches and cancels loads in flight. */
static void cancel_all_locked(struct cache_owner *o, struct todo *todo)
{
	struct entry *next;
	for (struct entry *e = o->entries; e; e = next) {
		next = e->own_next;
		if (e->list == LIST_LOADING)
			entry_cancel_locked(e);
		else if (e->list == LIST_PREFETCH)
			entry_drop_locked(o->cache, e, &todo->victims);
	}
}

void cache_owner_clear(struct cache_owner *o)
{
	struct cache *c = o->cache;
	struct todo todo;
	todo_init(&todo, c);
	pthread_mutex_lock(&c->lock);
	cancel_all_locked(o, &todo);
	while (o->busy > 0)
		pthread_cond_wait(&o->idle, &c->lock);
	entry_check_locked(c);
	while (o->entries)
		entry_drop_locked(c, o->entries, &todo.victims);
	load_queue_run_locked(c, &todo);
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, c);
}

void cache_owner_free(struct cache_owner *o)
{
	if (!o)
		return;
	cache_owner_clear(o);
	pthread_mutex_lock(&o->cache->lock);
	o->cache->owners--;
	pthread_mutex_unlock(&o->cache->lock);
	pthread_cond_destroy(&o->idle);
	free(o);
}

void cache_owner_get_stats(struct cache_owner *o, struct cache_owner_stats *out)
{
	pthread_mutex_lock(&o->cache->lock);
	*out = o->stats;
	pthread_mutex_unlock(&o->cache->lock);
}

struct cache_stream *cache_stream_new(struct cache_owner *o)
{
	struct cache_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->owner = o;
	s->prefetch = prefetch_new();
	if (s->prefetch)
		return s;
	free(s);
	return NULL;
}

void cache_stream_free(struct cache_stream *s)
{
	if (!s)
		return;
	struct cache *c = s->owner->cache;
	struct todo todo;
	todo_init(&todo, c);
	pthread_mutex_lock(&c->lock);
	stream_close_locked(s, &todo);
	load_queue_run_locked(c, &todo);
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, c);
	prefetch_free(s->prefetch);
	free(s);
}

/* ---- reading ---- */

/* Returns the entry of a chunk, held for the reader unless it is a failure, and with a reference to
 * its fill, if any. Returns NULL if out of memory. *late becomes true if the reader has to wait. */
static struct entry *take_locked(struct cache_owner *o, uint32_t dataset, uint64_t slot,
				 struct todo *todo, bool *late)
{
	struct cache *c = o->cache;
	struct entry *e = stream_find_locked(o, dataset, slot, todo);
	if (!e) { /* a load for the reader is queued */
		struct cache_dataset d;
		stream_describe(o, dataset, &d);
		e = entry_new_locked(o, dataset, slot, &d, LIST_DEMAND);
	}
	if (!e)
		return NULL;
	*late = e->fill && e->list != LIST_FAILED;
	if (!*late) {
		c->stats.hits++;
		o->stats.hits++;
	} else if (e->holds == 0 && e->list != LIST_LOADING) {
		c->stats.misses++;
		o->stats.misses++;
	} else {
		c->stats.waits++;
		o->stats.waits++;
	}
	if (e->list != LIST_FAILED)
		entry_hold_locked(c, e);
	if (e->fill)
		e->fill->refs++;
	return e;
}

/* A reader that waits for a load. It has a reference to the fill. */
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

/* Counts the time that a read has waited, whether it succeeded or not. */
static void waited_locked(struct cache_owner *o, struct cache_stream *s, uint64_t ns)
{
	histogram_record(&o->cache->waited, ns);
	o->cache->stats.wait_ns += ns;
	o->stats.wait_ns += ns;
	if (s)
		s->waited_ns += ns;
}

/* Waits until the load is complete. If it is queued, also tries to start it every
 * LOAD_QUEUE_LOOK_NS, because chunks may be evicted for it after some time. */
static void wait_locked(struct cache *c, struct cache_fill *f, struct todo *todo)
{
	struct timespec until;
	if (!f->entry || f->entry->list != LIST_DEMAND) {
		pthread_cond_wait(&f->done, &c->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOAD_QUEUE_LOOK_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&f->done, &c->lock, &until);
	todo->now = c->env->now(c->env);
	load_queue_run_locked(c, todo);
	if (!todo->first && !todo->victims)
		return;
	pthread_mutex_unlock(&c->lock);
	todo_do(todo, c);
	pthread_mutex_lock(&c->lock);
}

/* The reader's hold on e ends if the load fails or the wait is cancelled. */
static int wait_for(struct cache_owner *o, struct cache_stream *s, struct entry *e,
		    struct cache_fill *f, struct cancel *cancel, struct err *err)
{
	struct cache *c = o->cache;
	struct wait w = {.cache = c, .fill = f};
	struct todo todo;
	int code;
	todo_init(&todo, c);
	const uint64_t since = todo.now;
	cancel_begin(cancel, wake, &w);
	pthread_mutex_lock(&c->lock);
	while (!f->complete && !cancel_is_fired(cancel))
		wait_locked(c, f, &todo);
	if (f->complete) {
		code = f->err.code;
		if (code && err)
			err_copy(err, &f->err);
	} else {
		code = err_set(err, -EINTR, "read was interrupted");
		entry_leave_locked(c, e, &todo.victims);
	}
	waited_locked(o, s, c->env->now(c->env) - since);
	load_queue_run_locked(c, &todo);
	pthread_mutex_unlock(&c->lock);
	cancel_end(cancel);
	pthread_mutex_lock(&c->lock);
	fill_unref_locked(f);
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, c);
	return code;
}

int cache_get(struct cache_owner *o, struct cache_stream *s, uint32_t dataset, uint64_t slot,
	      struct cancel *cancel, const struct chunk_data **out, struct err *err)
{
	struct cache *c = o->cache;
	struct todo todo;
	bool late = false;
	assert(!s || s->owner == o);
	todo_init(&todo, c);

	pthread_mutex_lock(&c->lock);
	struct entry *e = take_locked(o, dataset, slot, &todo, &late);
	struct cache_fill *fill = e ? e->fill : NULL;
	if (e && s)
		stream_read_locked(s, dataset, slot, late, &todo);
	load_queue_run_locked(c, &todo);
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, c);
	if (!e)
		return err_errno(err, -ENOMEM, "chunk cache");

	int rc = fill ? wait_for(o, s, e, fill, cancel, err) : 0;
	if (rc == 0)
		*out = &e->chunk;
	return rc;
}

void cache_put(struct cache_owner *o, const struct chunk_data *chunk, bool done)
{
	struct cache *c = o->cache;
	_Static_assert(offsetof(struct entry, chunk) == 0, "a chunk is the start of its entry");
	struct entry *e = (struct entry *)(uintptr_t)chunk;
	struct todo todo;
	todo_init(&todo, c);
	pthread_mutex_lock(&c->lock);
	assert(e->key.owner == o);
	load_queue_unheld_locked(c, e, done, todo.now);
	entry_unhold_locked(c, e);
	load_queue_trim_locked(c, &todo);
	load_queue_run_locked(c, &todo);
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, c);
}

uint64_t cache_advise(struct cache_owner *o, struct cache_stream *s, uint32_t dataset,
		      uint64_t first, uint64_t n)
{
	struct cache *c = o->cache;
	struct cache_dataset d;
	struct todo todo;
	uint64_t i = 0;
	stream_describe(o, dataset, &d);
	if (first >= d.nslots)
		return n;
	todo_init(&todo, c);

	pthread_mutex_lock(&c->lock);
	for (uint64_t last = min_u64(n, d.nslots - first); i < last; i++)
		if (!stream_request_locked(o, s, PREFETCH_FILE_ORDER, dataset, &d, first + i,
					   &todo))
			break;
	if (i >= d.nslots - first)
		i = n;
	load_queue_run_locked(c, &todo);
	pthread_mutex_unlock(&c->lock);
	todo_do(&todo, c);
	return i;
}

void cache_stream_in_order(struct cache_stream *s, bool in_order)
{
	atomic_store(&s->in_order, in_order);
}

uint32_t cache_stream_depth(struct cache_stream *s, uint64_t slots, bool begins,
			    const struct cache_dataset *d)
{
	struct cache *c = s->owner->cache;
	pthread_mutex_lock(&c->lock);
	const struct prefetch_step step = {
		.begins = begins,
		.slots = slots,
		.cost = d->cost,
		.joined = d->joined,
		.read_ahead = d->read_ahead,
		.now_ns = c->env->now(c->env),
		.waited_ns = s->waited_ns,
		.latency_ns = latency_shortest(&s->owner->latency),
	};
	const uint32_t depth = prefetch_in_file_order(s->prefetch, &step);
	pthread_mutex_unlock(&c->lock);
	return depth;
}

/* ---- loads ---- */

static bool was_cancelled(const struct cache_fill *fill, int code)
{
	return code == -ECANCELED && fill->may_be_cancelled;
}

/* Returns true if the failure is cached. */
static bool fail_locked(struct entry *e, struct cache_fill *fill, int code, const struct err *err,
			struct todo *todo)
{
	struct cache *c = e->key.owner->cache;
	const bool cancelled = was_cancelled(fill, code);
	if (err)
		err_copy(&fill->err, err);
	fill->err.code = code;
	if (!cancelled) {
		c->stats.load_failures++;
		e->key.owner->stats.failures++;
	}
	/* These failures do not depend on the chunk. */
	const bool is_transient = code == -ENOMEM || code == -EINTR;
	if (!is_transient && !cancelled) {
		entry_failed_locked(c, e, todo->now, &todo->victims);
		return true;
	}
	entry_drop_locked(c, e, &todo->victims);
	return false;
}

void cache_complete(struct cache_fill *fill, int code, struct chunk_data *chunk,
		    const struct err *err)
{
	struct entry *e = fill->entry;
	struct cache_owner *o = e->key.owner;
	struct cache *c = o->cache;
	const struct env *env = c->env;
	struct todo todo;
	bool unreported = false, kept = false;
	todo_init(&todo, c);

	pthread_mutex_lock(&c->lock);
	if (was_cancelled(fill, code) && !atomic_load(&fill->cancel)) {
		/* A reader or a stream has requested it again. */
		load_queue_restart_locked(c, e, &todo);
		pthread_mutex_unlock(&c->lock);
		chunk_data_release(chunk);
		todo_do(&todo, c);
		return;
	}
	if (code == 0) {
		latency_record(&o->latency, todo.now - fill->started);
		entry_loaded_locked(c, e, chunk, todo.now);
		load_queue_trim_locked(c, &todo);
	} else {
		unreported = e->holds == 0 && !was_cancelled(fill, code);
		kept = fail_locked(e, fill, code, err, &todo);
	}
	fill->complete = true;
	pthread_cond_broadcast(&fill->done);
	/* While load() runs, the thread that called it will run the queue afterwards. */
	if (!fill->starting)
		load_queue_run_locked(c, &todo);
	if (!kept)
		fill_unref_locked(fill);
	load_queue_idle_locked(o);
	pthread_mutex_unlock(&c->lock);

	todo_do(&todo, c);
	if (code)
		chunk_data_release(chunk);
	/* A program that reads the chunk later gets the error itself, so this is only a debug
	 * message. */
	if (unreported)
		log_debug(env->log, "prefetch: %s", err ? err->msg : "failed");
}
