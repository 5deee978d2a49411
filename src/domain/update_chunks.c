/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks of a file have changed.
 *
 * A chunk is unchanged if the index has the same record for it as before, and if no program has
 * written to its bytes. If its elements have variable length, no program may have written to the
 * heap collections that have its items either. A chunk that was written counts as changed, even if
 * its bytes are the same: to compare them, the old bytes would have to be read. A chunk that the
 * index does not name any more has been removed.
 *
 * Chunks are compared by their coordinates, because their numbers depend on the shape.
 */
#include "update_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A dataset that both states have. */
struct pair {
	struct update *u;
	uint32_t before, now; /* numbers */
	const struct grid *grid_before, *grid;
	const struct h5file_dataset *file;
	bool has_items; /* its elements have variable length */
};

static bool is_written(const struct update *u, uint64_t addr, uint64_t size)
{
	const uint64_t start = h5file_base(u->now->file) + addr;
	return size && u->opt->is_written(u->opt->ctx, start, start + size);
}

/* ---- items of variable length ---- */

static int find_written(void *ctx, uint64_t addr, uint64_t size)
{
	const struct update *u = ctx;
	return is_written(u, addr, size);
}

static int read_heaps(const struct pair *p, const struct chunk_record *r, struct err *err)
{
	const struct update *u = p->u;
	auto_bytes struct bytes stored = {0};
	const struct h5file_chunk chunk = {.number = r->number,
					   .addr = r->addr,
					   .size = r->size,
					   .filter_mask = r->mask,
					   .is_filtered = p->file->pipeline->n > 0};
	int rc = h5file_chunk_read(u->now->file, &chunk, &stored, err);
	if (!rc)
		rc = h5file_chunk_heaps(u->now->file, p->now, &chunk, &stored, find_written, p->u,
					err);
	return rc;
}

/* Whether an item of a chunk was written whose record has not changed: 1, 0 or a negative errno.
 * The image tells where the items of its own chunks are. */
static int has_new_items(const struct pair *p, const struct chunk_record *r, struct err *err)
{
	const struct update *u = p->u;
	const struct update_base *b = u->base;
	const uint32_t opened = u->before->opened[p->before];
	uint64_t start, end;
	if (!p->has_items)
		return 0;
	if (!b->is_image || opened == OBJECT_NONE)
		return read_heaps(p, r, err);
	return b->image.items(b->image.ctx, opened, r->number, &start, &end) &&
	       u->opt->is_written(u->opt->ctx, start, end);
}

/* ---- one chunk ---- */

static int add(struct update *u, const struct chunk_change *change, struct err *err)
{
	return bytes_append(&u->chunks, change, sizeof(*change))
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

bool update_renumber(const struct grid *from, const struct grid *to, uint64_t number, uint64_t *out)
{
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(from, number, coords);
	for (uint32_t i = 0; i < to->rank; i++)
		if (coords[i] >= to->count[i])
			return false;
	*out = grid_number(to, coords);
	return true;
}

static const struct chunk_record *find_before(const struct pair *p, uint64_t number)
{
	uint64_t old;
	if (!p->grid_before->nchunks || !update_renumber(p->grid, p->grid_before, number, &old))
		return NULL;
	return chunk_records_find(&p->u->before->chunks[p->before], old);
}

static bool same_record(const struct chunk_record *a, const struct chunk_record *b)
{
	return a->addr == b->addr && a->size == b->size && a->mask == b->mask;
}

/* 1: the chunk has changed; 0; or a negative errno. */
static int has_changed(const struct pair *p, const struct chunk_record *old,
		       const struct chunk_record *r, struct err *err)
{
	if (!old || !same_record(old, r))
		return 1;
	if (p->file->layout != LAYOUT_COMPACT && is_written(p->u, r->addr, r->size))
		return 1;
	return has_new_items(p, r, err);
}

/* The version that is known of a chunk; the old state of the file ends before the new one. */
static int keep_version(const struct pair *p, const struct chunk_record *old,
			struct chunk_record *r, struct err *err)
{
	if (!old || !old->version)
		return 0;
	r->version = arena_strndup(p->u->now->arena, old->version, strlen(old->version));
	return r->version ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static int compare_chunk(const struct pair *p, struct chunk_record *r, struct err *err)
{
	const struct chunk_record *old = find_before(p, r->number);
	const int changed = has_changed(p, old, r, err);
	if (changed < 0)
		return err_wrap(err, changed, "dataset %s", p->u->now->paths[p->now]);
	const int rc = keep_version(p, old, r, err);
	if (rc || !changed)
		return rc;
	const struct chunk_change c = {
		.dataset = p->now, .number = r->number, .is_new = !old, .version = r->version};
	return add(p->u, &c, err);
}

/* Chunks of the base that the file does not name any more. */
static int find_gone(const struct pair *p, struct err *err)
{
	const struct chunk_records *before = &p->u->before->chunks[p->before];
	int rc = 0;
	for (size_t i = 0; !rc && i < before->n; i++) {
		uint64_t number;
		if (update_renumber(p->grid_before, p->grid, before->v[i].number, &number) &&
		    chunk_records_find(&p->u->now->chunks[p->now], number))
			continue;
		const struct chunk_change c = {.dataset = p->now,
					       .number = before->v[i].number,
					       .is_gone = true,
					       .version = before->v[i].version};
		rc = add(p->u, &c, err);
	}
	return rc;
}

/* ---- datasets ---- */

static const struct dataset *dataset_of(const struct scan *s, uint32_t number)
{
	return &tree_object(s->tree, number)->o.dataset;
}

static int compare(struct update *u, uint32_t now, struct err *err)
{
	const uint32_t before = u->same[now];
	const struct dataset *ds = dataset_of(u->now, now);
	const struct pair p = {.u = u,
			       .before = before,
			       .now = now,
			       .grid_before = &dataset_of(u->before, before)->grid,
			       .grid = &ds->grid,
			       .file = h5file_dataset(u->now->file, now),
			       .has_items = ds->type->has_vlen};
	struct chunk_records *r = &u->now->chunks[now];
	int rc = scan_chunks(u->before, before, err);
	for (size_t i = 0; !rc && i < r->n; i++)
		rc = compare_chunk(&p, &r->v[i], err);
	return rc ? rc : find_gone(&p, err);
}

static int add_all(struct update *u, uint32_t now, struct err *err)
{
	const struct chunk_records *r = &u->now->chunks[now];
	int rc = 0;
	for (size_t i = 0; !rc && i < r->n; i++) {
		const struct chunk_change c = {
			.dataset = now, .number = r->v[i].number, .is_new = true};
		rc = add(u, &c, err);
	}
	return rc;
}

/* The data of such a dataset are elsewhere than in the domain. */
static int check_place(const struct update *u, uint32_t now, size_t changes_before, struct err *err)
{
	const struct dataset *ds = dataset_of(u->now, now);
	const bool is_elsewhere = ds->reference || ds->initializer != INITIALIZER_NONE;
	if (!is_elsewhere || u->chunks.len == changes_before)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "dataset %s: its data cannot be changed, because the domain refers to them "
		       "in another file or computes them",
		       u->now->paths[now]);
}

static int find_in(struct update *u, uint32_t now, struct err *err)
{
	const size_t changes = u->chunks.len;
	int rc = scan_chunks(u->now, now, err);
	if (rc)
		return rc;
	if (u->same[now] == OBJECT_NONE)
		return add_all(u, now, err);
	rc = compare(u, now, err);
	return rc ? rc : check_place(u, now, changes, err);
}

int update_find_chunks(struct update *u, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(u->now->tree); i++) {
		const uint32_t now = tree_nth(u->now->tree, i);
		if (tree_object(u->now->tree, now)->o.kind == OBJECT_DATASET)
			rc = find_in(u, now, err);
	}
	return rc;
}
