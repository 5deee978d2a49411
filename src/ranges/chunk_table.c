/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of chunk tables. A chunk of a table is read like that of any other dataset and kept in
 * memory, because neighbouring records are usually needed soon. All reads of records of one chunk
 * wait for one read of that chunk. When the chunks of a domain's tables take more than TABLES_MAX,
 * the least recently used ones are dropped. Each chunk is charged to the budget; if it does not
 * fit, it is used, but not kept.
 *
 * See references.h for threading.
 */
#include <ranges/references.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/env.h>
#include <data/tree.h>

#include <uthash.h>
#include <utlist.h>

enum { TABLES_MAX = 16 << 20 /* bytes of the decoded chunks of tables that a domain keeps */ };

struct table_key {
	uint64_t table, chunk;
};

struct table_chunk {
	struct table_key key;
	struct ranges *all;
	bool complete;		    /* otherwise it is being read */
	bool absent;		    /* not stored */
	struct chunk_data data;	    /* of the whole chunk */
	struct table_read *waiting; /* until it is complete */
	struct budget_charge charge;
	struct table_chunk *prev, *next;
	UT_hash_handle hh;
};

static const struct dataset *table_of(const struct ranges *all, uint32_t table)
{
	return &tree_object(all->tree, table)->o.dataset;
}

static void free_chunk(struct table_chunk *c)
{
	budget_set(&c->charge, 0, NULL);
	chunk_data_release(&c->data);
	free(c);
}

/* ---- one record of a chunk ---- */

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

/* Returns the index of a record in its chunk, and sets *chunk to the number of the chunk. */
static uint64_t split_record(const struct dataset *table, uint64_t record, uint64_t *chunk)
{
	const struct grid *g = &table->grid;
	uint64_t coords[DSPACE_MAX_RANK], at[DSPACE_MAX_RANK], index = 0;
	for (uint32_t d = g->rank; d-- > 0;) {
		at[d] = record % g->dims[d];
		record /= g->dims[d];
	}
	for (uint32_t d = 0; d < g->rank; d++) {
		coords[d] = at[d] / g->chunk[d];
		index = index * g->chunk[d] + at[d] % g->chunk[d];
	}
	*chunk = grid_number(g, coords);
	return index;
}

static int copy_record(const struct dataset *table, const struct elems *from, uint64_t record,
		       struct elems *out, struct err *err)
{
	const struct elems_visitor copy = {.vlen = copy_items, .ctx = out};
	const size_t size = table->type->size;
	uint64_t chunk;
	const uint64_t index = split_record(table, record, &chunk);
	if ((index + 1) * size > from->fixed.len)
		return err_set(err, -EIO, "its chunk has no such record");
	if (bytes_append(&out->fixed, from->fixed.data + index * size, size))
		return err_no_memory(err);
	return elems_visit(table->type, out->fixed.data, 1, from->heap.data, from->heap.len, &copy,
			   err);
}

static void take_record(struct table_read *r, const struct table_chunk *c)
{
	struct err ignored = ERR_INIT;
	r->absent = c->absent;
	r->code = c->absent ? 0
			    : copy_record(table_of(c->all, r->table), &c->data.elems, r->record,
					  &r->value, &ignored);
}

static void finish(struct table_read *r, struct ref_batch *batch, const struct err *err)
{
	struct elems value = r->value;
	struct err why = ERR_INIT;
	r->value = (struct elems){0};
	if (r->code && err && err->code)
		err_copy(&why, err);
	else if (r->code)
		err_set(&why, r->code, "record %" PRIu64 " of the chunk table cannot be read",
			r->record);
	r->done(r, r->code, r->code || r->absent ? NULL : &value, batch, &why);
	elems_release(&value);
}

/* ---- chunks ---- */

static struct table_chunk *find_locked(struct ranges *all, const struct table_key *key)
{
	struct table_chunk *c = NULL;
	HASH_FIND(hh, all->tables, key, sizeof(*key), c);
	return c;
}

static uint64_t memory_of(const struct table_chunk *c)
{
	return sizeof(*c) + chunk_data_memory(&c->data);
}

static void remove_locked(struct table_chunk *c)
{
	struct ranges *all = c->all;
	HASH_DEL(all->tables, c);
	if (c->complete) {
		DL_DELETE(all->oldest, c);
		all->table_bytes -= memory_of(c);
	}
}

/* Drops chunks until the rest has at most `most` bytes. Returns the list of those to free. */
static struct table_chunk *trim_locked(struct ranges *all, uint64_t most)
{
	struct table_chunk *dropped = NULL;
	while (all->table_bytes > most) {
		struct table_chunk *c = all->oldest;
		remove_locked(c);
		c->next = dropped;
		dropped = c;
	}
	return dropped;
}

static void free_all(struct table_chunk *list)
{
	while (list) {
		struct table_chunk *c = list;
		list = c->next;
		free_chunk(c);
	}
}

void ranges_forget_tables(struct ranges *all)
{
	struct table_chunk *dropped;
	pthread_mutex_lock(&all->lock);
	dropped = trim_locked(all, 0);
	pthread_mutex_unlock(&all->lock);
	free_all(dropped);
}

/* Called when the chunk has arrived. Every reader gets its record, and then the chunk is kept or
 * dropped. */
static void loaded(void *arg, struct chunk_result *result)
{
	struct table_chunk *c = arg, *dropped = NULL;
	struct ranges *all = c->all;
	c->data = result->data;
	result->data = (struct chunk_data){0};
	c->absent = result->absent;
	const bool keep = !result->code && budget_set(&c->charge, memory_of(c), NULL) == 0;
	pthread_mutex_lock(&all->lock);
	struct table_read *waiting = c->waiting;
	c->waiting = NULL;
	for (struct table_read *r = waiting; r; r = r->next) {
		if (result->code)
			r->code = result->code;
		else
			take_record(r, c);
	}
	if (keep) {
		c->complete = true;
		all->table_bytes += memory_of(c);
		DL_APPEND(all->oldest, c);
		dropped = trim_locked(all, TABLES_MAX);
	} else {
		remove_locked(c);
		c->next = NULL;
		dropped = c;
	}
	pthread_mutex_unlock(&all->lock);
	free_all(dropped);
	struct ref_batch *batch = ref_batch_begin(all);
	while (waiting) {
		struct table_read *r = waiting;
		waiting = r->next;
		finish(r, batch, &result->err);
	}
	ref_batch_end(batch);
}

static struct table_chunk *add_locked(struct ranges *all, const struct table_key *key)
{
	struct table_chunk *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->key = *key;
	c->all = all;
	c->charge = (struct budget_charge){.budget = all->env->budget, .use = BUDGET_TREES};
	HASH_ADD(hh, all->tables, key, sizeof(c->key), c);
	if (c->hh.tbl)
		return c;
	free(c);
	return NULL;
}

void table_read(struct table_read *r)
{
	struct ranges *all = r->ranges;
	struct table_key key = {.table = r->table};
	struct err err = ERR_INIT;
	bool waits = false, first = false;
	r->code = 0;
	split_record(table_of(all, r->table), r->record, &key.chunk);
	pthread_mutex_lock(&all->lock);
	struct table_chunk *c = find_locked(all, &key);
	if (c && c->complete) {
		DL_DELETE(all->oldest, c);
		DL_APPEND(all->oldest, c);
		take_record(r, c);
	} else if (c || (c = add_locked(all, &key))) {
		first = !c->waiting;
		r->next = c->waiting;
		c->waiting = r;
		waits = true;
	} else {
		r->code = err_no_memory(&err);
	}
	pthread_mutex_unlock(&all->lock);
	if (first) {
		const struct chunk_request request = {
			.dataset = r->table, .number = key.chunk, .prefetch = r->prefetch};
		r->load(r->ctx, &request, loaded, c);
	} else if (!waits) {
		finish(r, r->batch, &err);
	}
}
