/* SPDX-License-Identifier: Apache-2.0 */
/* See load_queue.h. */
#include "load_queue.h"

#include <assert.h>

#include <base/repeat_time.h>

enum {
	PREFETCH_SHARE = 2, /* unread prefetches may take half of the budget for chunks */
};

void todo_init(struct todo *todo, const struct cache *c)
{
	*todo = (struct todo){.now = c->env->now(c->env), .end = &todo->first};
}

static void todo_load(struct todo *todo, struct cache_fill *f)
{
	f->next = NULL;
	*todo->end = f;
	todo->end = &f->next;
}

static struct cache_fill *todo_next(struct todo *todo)
{
	struct cache_fill *f = todo->first;
	if (!f)
		return NULL;
	todo->first = f->next;
	if (!todo->first)
		todo->end = &todo->first;
	return f;
}

void load_queue_idle_locked(struct cache_owner *o)
{
	assert(o->busy > 0);
	if (--o->busy == 0)
		pthread_cond_broadcast(&o->idle);
}

/* Loads of one owner that are started by one thread. */
struct batch {
	struct cache_owner *owner; /* busy, so that it is not freed; NULL if there is none */
	void *of_source;
};

static void batch_end(struct batch *b, struct cache *c)
{
	struct cache_owner *o = b->owner;
	if (!o)
		return;
	b->owner = NULL;
	o->src.end(o->src.ctx, b->of_source);
	pthread_mutex_lock(&c->lock);
	load_queue_idle_locked(o);
	pthread_mutex_unlock(&c->lock);
}

static void batch_begin(struct batch *b, struct cache_owner *o, struct cache *c)
{
	if (o == b->owner)
		return;
	batch_end(b, c);
	*b = (struct batch){0};
	if (!o->src.begin)
		return;
	pthread_mutex_lock(&c->lock);
	o->busy++;
	pthread_mutex_unlock(&c->lock);
	*b = (struct batch){.owner = o, .of_source = o->src.begin(o->src.ctx)};
}

void todo_do(struct todo *todo, struct cache *c)
{
	struct batch batch = {0};
	struct cache_fill *f;
	entry_free_all(todo->victims);
	todo->victims = NULL;
	while ((f = todo_next(todo))) {
		/* The entry remains while its load is incomplete. */
		const struct entry_key key = f->entry->key;
		struct cache_owner *o = key.owner;
		batch_begin(&batch, o, c);
		f->batch = batch.of_source;
		/* Others may wait for it, too. */
		struct repeat_scope scope;
		repeat_use(&scope, NULL);
		o->src.load(o->src.ctx, (uint32_t)key.dataset, key.slot, f);
		repeat_end(&scope);
		pthread_mutex_lock(&c->lock);
		f->starting = false;
		if (f->complete) {
			todo->now = c->env->now(c->env);
			load_queue_run_locked(c, todo);
		}
		fill_unref_locked(f);
		load_queue_idle_locked(o);
		pthread_mutex_unlock(&c->lock);
		entry_free_all(todo->victims);
		todo->victims = NULL;
	}
	batch_end(&batch, c);
}

/* ---- room ---- */

/* Returns the bytes of chunks that are not main, loads in flight included. */
static uint64_t new_bytes(const struct cache *c)
{
	return c->stats.bytes - c->main_bytes + c->stats.in_flight;
}

static struct entry *choose_victim(const struct cache *c, bool for_reader)
{
	struct entry *new = list_oldest(c, LIST_NEW), *main = list_oldest(c, LIST_MAIN);
	if (main && two_q_is_stale(&c->two_q, &main->use))
		return main;
	if (new && (!main || two_q_evicts_new(&c->two_q, new_bytes(c))))
		return new;
	if (!for_reader)
		return two_q_evicts_new(&c->two_q, new_bytes(c)) ? NULL : main;
	/* The program reads the latest prefetched chunk last. */
	return main ? main : c->lists[LIST_UNREAD].head;
}

static bool make_room(struct cache *c, uint64_t cost, bool for_reader, struct todo *todo)
{
	const bool large = cost > c->stats.budget / LOAD_QUEUE_LARGE;
	struct entry *victim;
	bool fits;
	while (!(fits = budget_fits(c->env->budget, cost)) &&
	       (victim = choose_victim(c, for_reader))) {
		if (large && victim->kept_until > todo->now)
			return false;
		if (victim->list == LIST_UNREAD && victim->stream)
			prefetch_wasted(victim->stream->prefetch, victim->group);
		c->stats.evictions++;
		entry_drop_locked(c, victim, &todo->victims);
	}
	return fits;
}

void load_queue_trim_locked(struct cache *c, struct todo *todo)
{
	make_room(c, 0, true, todo);
}

/* ---- starting loads ---- */

static void start(struct cache *c, struct entry *e, struct todo *todo)
{
	entry_start_locked(c, e, todo->now);
	todo_load(todo, e->fill);
}

/* Returns true if a load that does not fit the budget may begin. */
static bool may_run_alone(const struct cache *c)
{
	const uint64_t idle =
		c->lists[LIST_UNREAD].n + c->lists[LIST_NEW].n + c->lists[LIST_MAIN].n;
	return idle == 0 && c->lists[LIST_LOADING].n == 0 &&
	       (c->lists[LIST_HELD].n == 0 || c->passed >= LOAD_QUEUE_PATIENCE);
}

static bool begin_for_reader(struct cache *c, struct todo *todo)
{
	struct entry *e = list_oldest(c, LIST_DEMAND);
	if (!e || (!make_room(c, e->fill->cost, true, todo) && !may_run_alone(c)))
		return false;
	c->passed = 0;
	start(c, e, todo);
	return true;
}

/* The first prefetch begins when there is room for a whole request, so that others begin with it
 * and the source can join them. */
static bool begin_prefetch(struct cache *c, bool first, struct todo *todo)
{
	struct entry *e = list_oldest(c, LIST_PREFETCH);
	if (!e || c->lists[LIST_DEMAND].n > 0 ||
	    c->loading_parts + (first ? REQUEST_PARTS : e->fill->parts) >
		    (uint64_t)c->max_prefetch * REQUEST_PARTS ||
	    !make_room(c, e->fill->cost, false, todo))
		return false;
	start(c, e, todo);
	return true;
}

void load_queue_run_locked(struct cache *c, struct todo *todo)
{
	while (begin_for_reader(c, todo))
		;
	for (bool first = true; begin_prefetch(c, first, todo);)
		first = false;
}

void load_queue_restart_locked(struct cache *c, struct entry *e, struct todo *todo)
{
	entry_restart_locked(c, e, todo->now);
	todo_load(todo, e->fill);
}

void load_queue_unheld_locked(struct cache *c, struct entry *e, bool done, uint64_t now)
{
	e->kept_until =
		done ? 0 : min_u64(now + LOAD_QUEUE_KEPT_NS, e->loaded_ns + LOAD_QUEUE_KEPT_MAX_NS);
	c->passed += c->lists[LIST_DEMAND].n > 0;
}

uint64_t load_queue_prefetch_share(const struct cache *c)
{
	return budget_room(c->env->budget) / PREFETCH_SHARE;
}
