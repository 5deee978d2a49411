/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check of each update: reads the whole chunk index of each dataset, compares all records
 * with what the update knows without having read them, and looks for changes chunk by chunk. Takes
 * memory for all records.
 */
#include "update_judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct list {
	struct bytes records; /* of struct chunk_record */
	const struct chunk_record *v;
	size_t n;
};

static int add_record(struct list *l, const struct chunk_record *r, struct err *err)
{
	return bytes_append(&l->records, r, sizeof(*r)) ? err_no_memory(err) : 0;
}

static int finish(struct list *l, struct err *err)
{
	l->v = (const void *)l->records.data;
	l->n = l->records.len / sizeof(*l->v);
	return chunk_records_sort((void *)l->records.data, l->n, err);
}

static int take(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	const struct chunk_record r = chunk_record_of(chunk);
	return add_record(ctx, &r, err);
}

/* Reads all records of a file. */
static int read_all(struct scan *s, uint32_t number, struct list *l, struct err *err)
{
	const struct h5file_dataset *file = h5file_dataset(s->file, number);
	const struct dataset *ds = &tree_object(s->tree, number)->o.dataset;
	int rc = 0;
	if (file->grid.nchunks && ds->raw == RAW_STORED)
		rc = h5file_chunks(s->file, number, 0, file->grid.nchunks, take, l, err);
	return rc ? rc : finish(l, err);
}

/* Lists all chunks of a set. */
static int expand(const struct pair *p, const struct chunk_set *set, const struct grid *grid,
		  struct list *l, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < set->n; i++)
		rc = add_record(l, &set->v[i], err);
	for (size_t i = 0; !rc && i < set->nruns; i++)
		for (uint64_t slot = set->runs[i].first; !rc && slot < set->runs[i].end; slot++) {
			struct chunk_record r = slots_record(&p->slots, slot);
			if (update_renumber(p->slots.grid, grid, r.number, &r.number))
				rc = add_record(l, &r, err);
		}
	return rc ? rc : finish(l, err);
}

static int compare_lists(const struct list *a, const struct list *b, struct err *err)
{
	if (a->n != b->n)
		return err_set(err, -EINVAL, "%zu chunks instead of %zu", a->n, b->n);
	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].number != b->v[i].number || a->v[i].addr != b->v[i].addr ||
		    a->v[i].size != b->v[i].size || a->v[i].mask != b->v[i].mask)
			return err_set(err, -EINVAL, "chunk %" PRIu64 " is elsewhere",
				       b->v[i].number);
	return 0;
}

static int compare_number(const void *a, const void *b)
{
	const struct chunk_record *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Finds the record of the same chunk in the other shape. */
static const struct chunk_record *find(const struct list *l, const struct grid *from,
				       const struct grid *to, uint64_t number)
{
	struct chunk_record key = {.number = number};
	if (!l->n || !update_renumber(from, to, number, &key.number))
		return NULL;
	return bsearch(&key, l->v, l->n, sizeof(*l->v), compare_number);
}

struct verdict {
	const struct pair *p;
	struct list before, now;
	const struct chunk_change *next, *end; /* of the update */
};

static int expect(struct verdict *v, uint64_t number, bool is_gone, bool is_new, struct err *err)
{
	const struct chunk_change *c = v->next;
	if (c == v->end || c->dataset != v->p->now || c->number != number ||
	    c->is_gone != is_gone || c->is_new != is_new)
		return err_set(err, -EINVAL, "the change of chunk %" PRIu64 " was not found",
			       number);
	v->next++;
	return 0;
}

static int compare_changes(struct verdict *v, struct err *err)
{
	const struct pair *p = v->p;
	int rc = 0;
	for (size_t i = 0; !rc && i < v->now.n; i++) {
		const struct chunk_record *r = &v->now.v[i];
		const struct chunk_record *old =
			find(&v->before, p->grid, p->grid_before, r->number);
		rc = chunk_has_changed(p, old, r, err);
		if (rc > 0)
			rc = expect(v, r->number, false, !old, err);
	}
	for (size_t i = 0; !rc && i < v->before.n; i++)
		if (!find(&v->now, p->grid_before, p->grid, v->before.v[i].number))
			rc = expect(v, v->before.v[i].number, true, false, err);
	if (!rc && v->next < v->end && v->next->dataset == p->now)
		rc = err_set(err, -EINVAL, "chunk %" PRIu64 " has not changed", v->next->number);
	return rc;
}

static int judge_pair(struct update *u, struct verdict *v, struct err *err)
{
	const struct pair *p = v->p;
	struct list found = {.n = 0};
	int rc = read_all(u->now, p->now, &v->now, err);
	if (!rc)
		rc = expand(p, p->new, p->grid, &found, err);
	if (!rc)
		rc = compare_lists(&found, &v->now, err);
	if (!rc)
		rc = expand(p, p->old, p->grid_before, &v->before, err);
	bytes_release(&found.records);
	if (rc || !u->base->is_image)
		return rc ? rc : compare_changes(v, err);
	found = (struct list){.n = 0};
	rc = read_all(u->before, p->before, &found, err);
	if (!rc)
		rc = compare_lists(&v->before, &found, err);
	bytes_release(&found.records);
	return rc ? rc : compare_changes(v, err);
}

int update_judge_slots(struct scan *s, uint32_t number, const struct slots *slots, struct err *err)
{
	struct list found = {.n = 0}, expected = {.n = 0};
	int rc = read_all(s, number, &found, err);
	for (uint64_t i = 0; !rc && i < slots->at.slots; i++) {
		const struct chunk_record r = slots_record(slots, i);
		rc = add_record(&expected, &r, err);
	}
	if (!rc)
		rc = finish(&expected, err);
	if (!rc)
		rc = compare_lists(&expected, &found, err);
	bytes_release(&found.records);
	bytes_release(&expected.records);
	return rc;
}

static const struct chunk_change *skip(const struct chunk_change *c, const struct chunk_change *end,
				       uint32_t dataset)
{
	while (c < end && c->dataset == dataset)
		c++;
	return c;
}

static int judge_chunks(struct update *u, struct err *err)
{
	const struct chunk_change *next = (const void *)u->chunks.data;
	const struct chunk_change *end = next + u->chunks.len / sizeof(*next);
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(u->now->tree); i++) {
		const uint32_t now = tree_nth(u->now->tree, i);
		if (tree_object(u->now->tree, now)->o.kind != OBJECT_DATASET ||
		    scan_is_unread(u->now, now))
			continue;
		if (u->same[now] != OBJECT_NONE) {
			const struct pair p = pair_of(u, now);
			struct verdict v = {.p = &p, .next = next, .end = end};
			rc = judge_pair(u, &v, err);
			bytes_release(&v.before.records);
			bytes_release(&v.now.records);
		}
		next = skip(next, end, now);
		if (rc)
			err_wrap(err, rc, "the check of dataset %s", u->now->paths[now]);
	}
	return rc;
}

int update_judge(struct update *u, struct err *err)
{
	const int rc = judge_chunks(u, err);
	return rc ? rc : update_judge_objects(u, err);
}
