/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of indexes of places. A part of an index is kept in memory, because neighbouring records
 * are usually needed soon. All reads of records of one part wait for one load of it. When the parts
 * of a domain take more than PLACES_MAX, the least recently used ones are dropped. Each part is
 * charged to the budget; if it does not fit, it is used, but not kept.
 *
 * See ranges/ranges.h for threading.
 */
#include <ranges/place_index.h>

#include <errno.h>
#include <stdlib.h>

#include <base/env.h>

#include <uthash.h>
#include <utlist.h>

enum { PLACES_MAX = 16 << 20 /* bytes of the parts that a domain keeps */ };

struct part_key {
	uint64_t dataset, number;
};

struct index_part {
	struct part_key key;
	struct ranges *all;
	bool complete;		    /* otherwise it is being read */
	bool absent;		    /* not stored */
	struct chunk_data data;	    /* of the whole part */
	struct place_read *waiting; /* until it is complete */
	struct budget_charge charge;
	struct index_part *prev, *next;
	UT_hash_handle hh;
};

/* ---- one record of a part ---- */

static int copy_items(void *ctx, const struct dtype *t, uint8_t *elem, uint8_t *items,
		      size_t items_len, struct err *err)
{
	const struct elems_vlen v = elems_get_vlen(elem);
	uint64_t at = 0;
	if (!v.is_set)
		return 0;
	if (items_len && elems_heap_add(ctx, items, items_len, &at))
		return err_no_memory(err);
	elems_put_vlen(elem, v.count, at);
	return 0;
}

static int copy_record(const struct place_read *r, const struct elems *from, struct elems *out)
{
	const struct elems_visitor copy = {.vlen = copy_items, .ctx = out};
	const size_t size = r->type->size;
	if ((r->record + 1) * size > from->fixed.len)
		return -EIO;
	if (bytes_append(&out->fixed, from->fixed.data + r->record * size, size))
		return -ENOMEM;
	return elems_visit(r->type, out->fixed.data, 1, from->heap.data, from->heap.len, &copy,
			   NULL);
}

static void take_record(struct place_read *r, const struct index_part *p)
{
	r->absent = p->absent;
	r->code = p->absent ? 0 : copy_record(r, &p->data.elems, &r->value);
}

static void finish(struct place_read *r, struct range_batch *batch, const struct err *err)
{
	struct elems value = r->value;
	struct err why = ERR_INIT;
	r->value = (struct elems){0};
	if (err && err->code)
		err_copy(&why, err);
	else if (r->code)
		err_set(&why, r->code, "the record cannot be read");
	r->done(r, r->code, r->code || r->absent ? NULL : &value, batch, &why);
	elems_release(&value);
}

/* ---- parts ---- */

static struct index_part *find_locked(struct ranges *all, const struct part_key *key)
{
	struct index_part *p = NULL;
	HASH_FIND(hh, all->places, key, sizeof(*key), p);
	return p;
}

static uint64_t memory_of(const struct index_part *p)
{
	return sizeof(*p) + chunk_data_memory(&p->data);
}

static void remove_locked(struct index_part *p)
{
	struct ranges *all = p->all;
	HASH_DEL(all->places, p);
	if (p->complete) {
		DL_DELETE(all->oldest, p);
		all->place_bytes -= memory_of(p);
	}
}

/* Drops parts until the rest has at most `most` bytes. Returns the list of those to free. */
static struct index_part *trim_locked(struct ranges *all, uint64_t most)
{
	struct index_part *dropped = NULL;
	while (all->place_bytes > most) {
		struct index_part *p = all->oldest;
		remove_locked(p);
		p->next = dropped;
		dropped = p;
	}
	return dropped;
}

static void free_all(struct index_part *list)
{
	while (list) {
		struct index_part *p = list;
		list = p->next;
		budget_set(&p->charge, 0, NULL);
		chunk_data_release(&p->data);
		free(p);
	}
}

void places_forget(struct ranges *all)
{
	struct index_part *dropped;
	pthread_mutex_lock(&all->lock);
	dropped = trim_locked(all, 0);
	pthread_mutex_unlock(&all->lock);
	free_all(dropped);
}

/* Called when the part has arrived. Every reader gets its record, and then the part is kept or
 * dropped. */
static void loaded(void *arg, struct chunk_result *result)
{
	struct index_part *p = arg, *dropped = NULL;
	struct ranges *all = p->all;
	p->data = result->data;
	result->data = (struct chunk_data){0};
	p->absent = result->absent;
	const bool keep = !result->code && budget_set(&p->charge, memory_of(p), NULL) == 0;
	pthread_mutex_lock(&all->lock);
	struct place_read *waiting = p->waiting;
	p->waiting = NULL;
	for (struct place_read *r = waiting; r; r = r->next) {
		if (result->code)
			r->code = result->code;
		else
			take_record(r, p);
	}
	if (keep) {
		p->complete = true;
		all->place_bytes += memory_of(p);
		DL_APPEND(all->oldest, p);
		dropped = trim_locked(all, PLACES_MAX);
	} else {
		remove_locked(p);
		p->next = NULL;
		dropped = p;
	}
	pthread_mutex_unlock(&all->lock);
	free_all(dropped);
	struct range_batch *batch = range_batch_begin(all);
	while (waiting) {
		struct place_read *r = waiting;
		waiting = r->next;
		finish(r, batch, &result->err);
	}
	range_batch_end(batch);
}

static struct index_part *add_locked(struct ranges *all, const struct part_key *key)
{
	struct index_part *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->key = *key;
	p->all = all;
	p->charge = (struct budget_charge){.budget = all->env->budget, .use = BUDGET_TREES};
	HASH_ADD(hh, all->places, key, sizeof(p->key), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

void place_read(struct place_read *r)
{
	struct ranges *all = r->ranges;
	const struct part_key key = {.dataset = r->part.dataset, .number = r->part.number};
	struct err err = ERR_INIT;
	bool waits = false, first = false;
	r->code = 0;
	pthread_mutex_lock(&all->lock);
	struct index_part *p = find_locked(all, &key);
	if (p && p->complete) {
		DL_DELETE(all->oldest, p);
		DL_APPEND(all->oldest, p);
		take_record(r, p);
	} else if (p || (p = add_locked(all, &key))) {
		first = !p->waiting;
		r->next = p->waiting;
		p->waiting = r;
		waits = true;
	} else {
		r->code = err_no_memory(&err);
	}
	pthread_mutex_unlock(&all->lock);
	if (first)
		r->load(r->ctx, &r->part, loaded, p);
	else if (!waits)
		finish(r, r->batch, &err);
}
