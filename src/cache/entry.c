/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entries: see entry.h for states and invariants. The caller holds the lock. */
#include "entry.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

_Static_assert(sizeof(struct entry_key) == sizeof(void *) + 16, "no padding is hashed");

struct entry *entry_find_locked(struct cache *c, struct cache_owner *o, uint64_t dataset,
				uint64_t slot)
{
	const struct entry_key key = {.owner = o, .slot = slot, .dataset = dataset};
	struct entry *e = NULL;
	HASH_FIND(hh, c->table, &key, sizeof(key), e);
	return e;
}

/* ---- lists ---- */

static void unlist(struct cache *c, struct entry *e)
{
	struct list *list = &c->lists[e->list];
	DL_DELETE(list->head, e);
	list->n--;
	list->bytes -= e->charge;
}

static void enlist(struct cache *c, struct entry *e, enum entry_list which)
{
	struct list *list = &c->lists[which];
	e->list = which;
	DL_PREPEND(list->head, e);
	list->n++;
	list->bytes += e->charge;
}

static void move(struct cache *c, struct entry *e, enum entry_list which)
{
	unlist(c, e);
	enlist(c, e, which);
}

/* ---- prefetches ---- */

static void count_prefetch(struct cache *c, struct entry *e, uint64_t cost)
{
	struct cache_stream *s = e->stream;
	c->prefetch_bytes = c->prefetch_bytes - e->prefetch_cost + cost;
	if (s) {
		c->prefetch_streams -= s->prefetch_bytes > 0;
		s->prefetch_bytes = s->prefetch_bytes - e->prefetch_cost + cost;
		c->prefetch_streams += s->prefetch_bytes > 0;
	}
	e->prefetch_cost = cost;
}

void entry_expect_locked(struct cache *c, struct entry *e, struct cache_stream *s, uint8_t group,
			 uint64_t cost)
{
	assert(e->list == LIST_PREFETCH && !e->stream && e->prefetch_cost == 0);
	e->prefetched = true;
	e->stream = s;
	e->group = group;
	count_prefetch(c, e, cost);
}

/* Called when the stream is no longer expected to read the entry. */
static void unexpect(struct cache *c, struct entry *e)
{
	count_prefetch(c, e, 0);
	e->stream = NULL;
}

void entry_forget_locked(struct cache *c, struct entry *e, struct entry **victims)
{
	if (e->list == LIST_PREFETCH) {
		entry_drop_locked(c, e, victims);
		return;
	}
	unexpect(c, e);
	if (e->list == LIST_UNREAD) {
		unlist(c, e);
		enlist(c, e, e->use.main ? LIST_MAIN : LIST_NEW);
		/* Entries at the end are evicted first. */
		DL_DELETE(c->lists[e->list].head, e);
		DL_APPEND(c->lists[e->list].head, e);
	}
}

static void waste(struct cache *c, struct entry *e)
{
	if (!e->prefetched)
		return;
	e->prefetched = false;
	c->stats.prefetch_wasted++;
	e->key.owner->stats.prefetch_wasted++;
}

/* ---- loads ---- */

static struct cache_fill *fill_new(struct entry *e, const struct cache_dataset *d)
{
	struct cache_fill *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	const int rc = pthread_cond_init(&f->done, &clock);
	pthread_condattr_destroy(&clock);
	if (rc) {
		free(f);
		return NULL;
	}
	f->entry = e;
	f->cost = d->load_cost;
	f->parts = REQUEST_PARTS / max_u64(min_u64(d->joined, CACHE_JOINED_MAX), 1);
	f->refs = 1;
	return f;
}

void fill_unref_locked(struct cache_fill *f)
{
	assert(f->refs > 0);
	if (--f->refs > 0)
		return;
	pthread_cond_destroy(&f->done);
	free(f);
}

struct entry *entry_new_locked(struct cache_owner *o, uint64_t dataset, uint64_t slot,
			       const struct cache_dataset *d, enum entry_list list)
{
	struct cache *c = o->cache;
	struct entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->key = (struct entry_key){.owner = o, .slot = slot, .dataset = dataset};
	e->fill = fill_new(e, d);
	if (e->fill)
		HASH_ADD(hh, c->table, key, sizeof(e->key), e);
	if (!e->fill || e->hash_failed) {
		if (e->fill)
			fill_unref_locked(e->fill);
		free(e);
		return NULL;
	}
	DL_APPEND2(o->entries, e, own_prev, own_next);
	enlist(c, e, list);
	return e;
}

void entry_start_locked(struct cache *c, struct entry *e, uint64_t now)
{
	struct cache_fill *f = e->fill;
	struct cache_owner *o = e->key.owner;
	assert(e->list == LIST_DEMAND || e->list == LIST_PREFETCH);
	c->stats.loads++;
	o->stats.loads++;
	c->stats.prefetches += e->prefetched;
	o->stats.prefetches += e->prefetched;
	move(c, e, LIST_LOADING);
	c->stats.in_flight += f->cost;
	c->loading_parts += f->parts;
	budget_take(c->env->budget, BUDGET_LOADS, f->cost);
	if (c->stats.in_flight > c->stats.in_flight_max)
		c->stats.in_flight_max = c->stats.in_flight;
	f->ahead = e->prefetched;
	f->started = now;
	f->starting = true;
	f->refs++;
	o->busy += 2; /* the load, and the thread that starts it */
}

void entry_restart_locked(struct cache *c, struct entry *e, uint64_t now)
{
	struct cache_fill *f = e->fill;
	assert(e->list == LIST_LOADING);
	c->stats.loads++;
	e->key.owner->stats.loads++;
	f->started = now;
	f->starting = true;
	f->may_be_cancelled = false;
	f->ahead = false;
	f->refs++;
	e->key.owner->busy++; /* the thread that starts it */
}

void entry_cancel_locked(struct entry *e)
{
	assert(e->list == LIST_LOADING);
	if (e->holds > 0)
		return;
	e->fill->may_be_cancelled = true;
	atomic_store(&e->fill->cancel, true);
}

const atomic_bool *cache_fill_cancel(const struct cache_fill *fill)
{
	return &fill->cancel;
}

void *cache_fill_batch(const struct cache_fill *fill)
{
	return fill->batch;
}

bool cache_fill_ahead(const struct cache_fill *fill)
{
	return fill->ahead;
}

void entry_hold_locked(struct cache *c, struct entry *e)
{
	if (e->prefetched) {
		/* the first read of an entry that was prefetched or queued as a prefetch */
		unexpect(c, e);
		if (e->prefetched && e->list != LIST_PREFETCH) {
			c->stats.prefetch_used++;
			e->key.owner->stats.prefetch_used++;
		}
		e->prefetched = false;
		two_q_first_used(&c->two_q, &e->use);
	} else if (!e->fill) {
		const bool main = e->use.main;
		two_q_used(&c->two_q, &e->use);
		if (e->use.main && !main)
			c->main_bytes += e->charge;
	}
	if (e->fill)
		atomic_store(&e->fill->cancel, false);
	if (e->holds++ > 0)
		return;
	if (e->list == LIST_PREFETCH)
		move(c, e, LIST_DEMAND);
	else if (!e->fill)
		move(c, e, LIST_HELD);
}

void entry_unhold_locked(struct cache *c, struct entry *e)
{
	assert(e->holds > 0 && e->list == LIST_HELD);
	if (--e->holds == 0)
		move(c, e, e->use.main ? LIST_MAIN : LIST_NEW);
}

void entry_leave_locked(struct cache *c, struct entry *e, struct entry **victims)
{
	assert(e->holds > 0 && e->fill && !e->fill->complete);
	if (--e->holds == 0 && e->list == LIST_DEMAND)
		entry_drop_locked(c, e, victims);
}

/* Called when the load of e has succeeded or failed. */
static void end_load(struct cache *c, struct entry *e)
{
	assert(e->list == LIST_LOADING && c->stats.in_flight >= e->fill->cost);
	c->stats.in_flight -= e->fill->cost;
	c->loading_parts -= e->fill->parts;
	budget_return(c->env->budget, BUDGET_LOADS, e->fill->cost);
	e->fill->entry = NULL;
	e->fill = NULL;
}

void entry_loaded_locked(struct cache *c, struct entry *e, struct chunk_data *chunk, uint64_t now)
{
	const struct entry_key *k = &e->key;
	end_load(c, e);
	unlist(c, e);
	e->chunk = *chunk;
	*chunk = (struct chunk_data){0};
	e->loaded_ns = now;
	e->charge = chunk_data_memory(&e->chunk) + sizeof(*e);
	e->use = two_q_loaded(&c->two_q, two_q_hash(k->owner->serial, k->dataset, k->slot),
			      e->charge);
	c->stats.bytes += e->charge;
	budget_take(c->env->budget, BUDGET_CHUNKS, e->charge);
	c->main_bytes += e->use.main ? e->charge : 0;
	if (e->prefetch_cost)
		count_prefetch(c, e, e->charge);
	if (e->holds > 0)
		enlist(c, e, LIST_HELD);
	else if (e->prefetch_cost)
		enlist(c, e, LIST_UNREAD);
	else
		enlist(c, e, e->use.main ? LIST_MAIN : LIST_NEW);
}

void entry_failed_locked(struct cache *c, struct entry *e, uint64_t now, struct entry **victims)
{
	struct cache_fill *fill = e->fill;
	end_load(c, e);
	fill->complete = true;
	e->fill = fill;
	e->failed_until = now + FAILURE_KEPT_NS;
	e->holds = 0; /* waiting readers have the fill */
	unexpect(c, e);
	waste(c, e);
	move(c, e, LIST_FAILED);
	while (c->lists[LIST_FAILED].n > FAILURES_MAX ||
	       list_oldest(c, LIST_FAILED)->failed_until <= now)
		entry_drop_locked(c, list_oldest(c, LIST_FAILED), victims);
}

void entry_drop_locked(struct cache *c, struct entry *e, struct entry **victims)
{
	const struct entry_key *k = &e->key;
	if (e->list == LIST_LOADING) {
		end_load(c, e);
	} else {
		assert(e->holds == 0);
		if (e->fill)
			fill_unref_locked(e->fill);
	}
	unexpect(c, e);
	if (e->charge && !e->prefetched)
		two_q_gone(&c->two_q, two_q_hash(k->owner->serial, k->dataset, k->slot), &e->use);
	if (e->list == LIST_PREFETCH)
		c->stats.cancelled++;
	else
		waste(c, e);
	unlist(c, e);
	HASH_DELETE(hh, c->table, e);
	DL_DELETE2(k->owner->entries, e, own_prev, own_next);
	c->stats.bytes -= e->charge;
	budget_return(c->env->budget, BUDGET_CHUNKS, e->charge);
	c->main_bytes -= e->use.main ? e->charge : 0;
	e->next = *victims;
	*victims = e;
}

void entry_free_all(struct entry *victims)
{
	while (victims) {
		struct entry *next = victims->next;
		chunk_data_release(&victims->chunk);
		free(victims);
		victims = next;
	}
}

/* ---- invariants ---- */

#ifndef NDEBUG
static void check_entry(const struct entry *e)
{
	const bool waits = e->list == LIST_DEMAND || e->list == LIST_PREFETCH;
	const bool failed = e->list == LIST_FAILED;
	assert(!e->fill == (e->list > LIST_LOADING && !failed));
	assert(!e->fill || (e->charge == 0 && e->fill->complete == failed));
	assert(!e->fill || e->fill->entry == (failed ? NULL : e));
	assert(!failed || e->fill->err.code != 0);
	assert(e->list == LIST_LOADING ||
	       (e->holds > 0) == (e->list == LIST_DEMAND || e->list == LIST_HELD));
	assert(!e->prefetched || e->holds == 0);
	assert(!e->stream || e->prefetch_cost);
	assert(!e->prefetch_cost ||
	       (e->prefetched && (waits || e->list == LIST_LOADING || e->list == LIST_UNREAD)));
	assert(e->list != LIST_MAIN || e->use.main);
}

static void check_list(const struct list *list, enum entry_list which)
{
	uint64_t n = 0, bytes = 0;
	for (const struct entry *e = list->head; e; e = e->next) {
		assert(e->list == which);
		n++;
		bytes += e->charge;
	}
	assert(n == list->n && bytes == list->bytes);
}
#endif

void entry_check_locked(const struct cache *c)
{
#ifndef NDEBUG
	enum { MANY = 4096 }; /* a fraction of a millisecond */
	if (HASH_COUNT(c->table) > MANY)
		return;
	uint64_t bytes = 0, main_bytes = 0, in_flight = 0, parts = 0, prefetched = 0, n = 0,
		 listed = 0;
	for (const struct entry *e = c->table; e; e = e->hh.next, n++) {
		check_entry(e);
		bytes += e->charge;
		main_bytes += e->use.main ? e->charge : 0;
		in_flight += e->list == LIST_LOADING ? e->fill->cost : 0;
		parts += e->list == LIST_LOADING ? e->fill->parts : 0;
		prefetched += e->prefetch_cost;
	}
	for (size_t i = 0; i < LISTS; i++) {
		check_list(&c->lists[i], (enum entry_list)i);
		listed += c->lists[i].n;
	}
	assert(n == listed && bytes == c->stats.bytes && main_bytes == c->main_bytes);
	assert(parts == c->loading_parts);
	assert(in_flight == c->stats.in_flight && prefetched == c->prefetch_bytes);
	assert(c->lists[LIST_FAILED].n <= FAILURES_MAX);
#else
	(void)c;
#endif
}
