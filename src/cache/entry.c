/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entries: see entry.h for states and invariants. The lock is the caller's. */
#include "entry.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

_Static_assert(sizeof(struct entry_key) == sizeof(void *) + 16, "no padding is hashed");

struct entry *entry_find_locked(struct cache *c, struct cache_owner *o, uint64_t dataset,
				uint64_t chunk)
{
	const struct entry_key key = {.owner = o, .chunk = chunk, .dataset = dataset};
	struct entry *e = NULL;
	HASH_FIND(hh, c->table, &key, sizeof(key), e);
	return e;
}

static struct cache_fill *fill_new(struct entry *e, uint64_t cost)
{
	struct cache_fill *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	if (pthread_cond_init(&f->done, NULL)) {
		free(f);
		return NULL;
	}
	f->entry = e;
	f->cost = cost;
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

struct entry *entry_new_locked(struct cache_owner *o, uint64_t dataset, uint64_t chunk,
			       uint64_t cost)
{
	struct cache *c = o->cache;
	struct entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->key = (struct entry_key){.owner = o, .chunk = chunk, .dataset = dataset};
	e->fill = fill_new(e, cost);
	if (e->fill)
		HASH_ADD(hh, c->table, key, sizeof(e->key), e);
	if (!e->fill || e->hash_failed) {
		if (e->fill)
			fill_unref_locked(e->fill);
		free(e);
		return NULL;
	}
	DL_APPEND2(o->entries, e, own_prev, own_next);
	o->loading++;
	c->in_flight += cost;
	return e;
}

void entry_hold_locked(struct cache *c, struct entry *e)
{
	if (e->holds++ == 0 && !e->fill) {
		DL_DELETE2(c->lru, e, lru_prev, lru_next);
		c->held += e->charge;
	}
	if (e->ahead) {
		e->ahead = false;
		c->stats.prefetch_used++;
	}
}

void entry_unhold_locked(struct cache *c, struct entry *e)
{
	assert(e->holds > 0 && !e->fill);
	if (--e->holds > 0)
		return;
	DL_PREPEND2(c->lru, e, lru_prev, lru_next);
	c->held -= e->charge;
}

void entry_leave_locked(struct entry *e)
{
	assert(e->holds > 0 && e->fill && !e->fill->complete);
	e->holds--;
}

/* The load of e is over, one way or the other. */
static void end_load_locked(struct cache *c, struct entry *e)
{
	struct cache_owner *o = e->key.owner;
	assert(e->fill && c->in_flight >= e->fill->cost && o->loading > 0);
	c->in_flight -= e->fill->cost;
	e->fill->entry = NULL;
	e->fill = NULL;
	if (--o->loading == 0)
		pthread_cond_broadcast(&o->idle);
}

void entry_loaded_locked(struct cache *c, struct entry *e, struct cache_chunk *chunk)
{
	end_load_locked(c, e);
	e->chunk = *chunk;
	*chunk = (struct cache_chunk){0};
	e->charge = e->chunk.slot.len + e->chunk.heap.len + sizeof(*e);
	c->stats.bytes += e->charge;
	if (e->holds > 0)
		c->held += e->charge;
	else
		DL_PREPEND2(c->lru, e, lru_prev, lru_next);
}

bool entry_is_failed(const struct entry *e)
{
	return e->fill && e->fill->complete;
}

void entry_failed_locked(struct cache *c, struct entry *e, uint64_t now, struct entry **victims)
{
	struct cache_fill *fill = e->fill;
	end_load_locked(c, e);
	fill->complete = true;
	e->fill = fill;
	e->failed_until = now + FAILURE_KEPT_NS;
	e->holds = 0; /* who waits has the fill */
	c->stats.prefetch_wasted += e->ahead;
	e->ahead = false;
	DL_APPEND2(c->failed, e, lru_prev, lru_next);
	c->nfailed++;
	while (c->nfailed > FAILURES_MAX || c->failed->failed_until <= now)
		entry_drop_locked(c, c->failed, victims);
}

void entry_drop_locked(struct cache *c, struct entry *e, struct entry **victims)
{
	struct cache_owner *o = e->key.owner;
	if (entry_is_failed(e)) {
		DL_DELETE2(c->failed, e, lru_prev, lru_next);
		c->nfailed--;
		fill_unref_locked(e->fill);
		e->fill = NULL;
	} else if (e->fill) {
		end_load_locked(c, e);
	} else {
		assert(e->holds == 0);
		DL_DELETE2(c->lru, e, lru_prev, lru_next);
	}
	HASH_DELETE(hh, c->table, e);
	DL_DELETE2(o->entries, e, own_prev, own_next);
	c->stats.bytes -= e->charge;
	c->stats.prefetch_wasted += e->ahead;
	e->lru_next = *victims;
	*victims = e;
}

void entry_evict_locked(struct cache *c, struct entry **victims)
{
	while (c->stats.bytes > c->stats.budget && c->lru) {
		entry_drop_locked(c, c->lru->lru_prev, victims); /* the head's prev is the tail */
		c->stats.evictions++;
	}
}

void entry_free_all(struct entry *victims)
{
	while (victims) {
		struct entry *next = victims->lru_next;
		bytes_release(&victims->chunk.slot);
		bytes_release(&victims->chunk.heap);
		free(victims);
		victims = next;
	}
}

void entry_check_locked(const struct cache *c)
{
#ifndef NDEBUG
	uint64_t bytes = 0, held = 0, in_flight = 0, idle = 0, failed = 0, listed = 0;
	for (const struct entry *e = c->table; e; e = e->hh.next) {
		bool is_failed = entry_is_failed(e);
		bytes += e->charge;
		held += e->holds ? e->charge : 0;
		in_flight += e->fill && !is_failed ? e->fill->cost : 0;
		idle += !e->fill && e->holds == 0;
		failed += is_failed;
		assert(!e->fill || (e->charge == 0 && e->fill->entry == (is_failed ? NULL : e)));
		assert(!is_failed || (e->holds == 0 && !e->ahead && e->fill->err.code != 0));
	}
	for (const struct entry *e = c->lru; e; e = e->lru_next)
		listed++;
	assert(bytes == c->stats.bytes && held == c->held);
	assert(in_flight == c->in_flight && idle == listed);
	assert(bytes <= c->stats.budget || idle == 0);
	for (const struct entry *e = c->failed; e; e = e->lru_next)
		failed -= entry_is_failed(e);
	assert(failed == 0 && c->nfailed <= FAILURES_MAX);
#else
	(void)c;
#endif
}
