/* SPDX-License-Identifier: Apache-2.0 */
/* One state of the file of a domain: objects, ids, and where its chunks are. */
#include "update_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>

enum { SCAN_ARENA = 1 << 30 };

/* ---- the file ---- */

static int read_from(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct scan *s = ctx;
	return source_read(s->from, offset, buf, n, err);
}

static const struct h5file_problem *find_problem(const struct h5file *f,
						 enum h5file_severity severity)
{
	const struct h5file_problem *p;
	for (uint64_t i = 0; (p = h5file_problem(f, i)); i++)
		if (p->severity == severity)
			return p;
	return NULL;
}

/* The first problem of one severity is the error. */
static int check_problems(const struct h5file *f, enum h5file_severity severity, int code,
			  struct err *err)
{
	const uint64_t n = h5file_problems_of(f, severity);
	const struct h5file_problem *p = n ? find_problem(f, severity) : NULL;
	char more[48] = "";
	if (!n)
		return 0;
	if (n > 1)
		snprintf(more, sizeof(more), "; and %" PRIu64 " more", n - 1);
	return err_set(err, code, "%s: %s%s", p && *p->path ? p->path : "the file",
		       p ? p->text : "it is damaged", more);
}

static int make_arrays(struct scan *s, struct err *err)
{
	const size_t n = tree_numbers(s->tree);
	s->paths = arena_array(s->arena, n, sizeof(*s->paths));
	s->version = arena_array(s->arena, n, sizeof(*s->version));
	s->opened = arena_array(s->arena, n, sizeof(*s->opened));
	s->chunks = arena_array(s->arena, n, sizeof(*s->chunks));
	if (!s->paths || !s->version || !s->opened || !s->chunks)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		s->paths[i] = tree_object(s->tree, i)->o.id;
		s->opened[i] = OBJECT_NONE;
	}
	return 0;
}

static int read_file(struct scan *s, const struct env *env, bool is_foreign, struct err *err)
{
	const struct h5file_options how = {.budget = env->budget, .claim_chunks = is_foreign};
	s->source = (struct source){.size = s->from->size, .read_at = read_from, .ctx = s};
	int rc = h5file_open(&s->source, &how, &s->file, err);
	if (rc)
		return rc;
	s->tree = h5file_edit_tree(s->file);
	rc = check_problems(s->file, H5FILE_DAMAGED, -EIO, err);
	if (!rc)
		rc = check_problems(s->file, H5FILE_UNSUPPORTED, -EOPNOTSUPP, err);
	return rc ? rc : make_arrays(s, err);
}

int scan_open(const struct env *env, struct source *from, bool is_foreign, struct scan **out,
	      struct err *err)
{
	struct scan *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->from = from;
	s->charge = (struct budget_charge){.budget = env->budget, .use = BUDGET_TREES};
	s->arena = arena_new(SCAN_ARENA);
	int rc = s->arena ? read_file(s, env, is_foreign, err)
			  : err_set(err, -ENOMEM, "out of memory");
	if (rc)
		scan_free(s);
	else
		*out = s;
	return rc;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->chunks && i < tree_numbers(s->tree); i++)
		free(s->chunks[i].v);
	budget_set(&s->charge, 0, NULL);
	h5file_close(s->file);
	arena_free(s->arena);
	free(s);
}

/* ---- chunks ---- */

struct reading {
	struct scan *s;
	struct chunk_records *out;
	size_t room;
	bool is_sorted;
};

/* Bytes of records that the scan has allocated. */
static int charge(struct reading *r, size_t more, struct err *err)
{
	struct budget_charge *c = &r->s->charge;
	return budget_set(c, c->bytes + more * sizeof(*r->out->v), err);
}

static int grow(struct reading *r, struct err *err)
{
	const size_t more = r->room ? r->room : 16;
	int rc = charge(r, more, err);
	if (rc)
		return rc;
	struct chunk_record *v = reallocarray(r->out->v, r->room + more, sizeof(*v));
	if (!v)
		return err_set(err, -ENOMEM, "out of memory");
	r->out->v = v;
	r->room += more;
	return 0;
}

static uint64_t hash_of(const uint8_t *data, uint64_t n)
{
	const uint32_t low = checksum_lookup3(data, (size_t)n, 0);
	return (uint64_t)checksum_lookup3(data, (size_t)n, low + 1) << 32 | low;
}

static int take(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct reading *r = ctx;
	struct chunk_records *out = r->out;
	int rc = out->n == r->room ? grow(r, err) : 0;
	if (rc)
		return rc;
	if (out->n && chunk->number <= out->v[out->n - 1].number)
		r->is_sorted = false;
	out->v[out->n++] = (struct chunk_record){
		.number = chunk->number,
		.addr = chunk->data ? hash_of(chunk->data, chunk->size) : chunk->addr,
		.size = chunk->size,
		.mask = chunk->filter_mask,
	};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct chunk_record *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int sort(struct chunk_records *r, struct err *err)
{
	qsort(r->v, r->n, sizeof(*r->v), compare);
	for (size_t i = 1; i < r->n; i++)
		if (r->v[i].number == r->v[i - 1].number)
			return err_set(err, -EIO, "its index names chunk %" PRIu64 " twice",
				       r->v[i].number);
	return 0;
}

int scan_chunks(struct scan *s, uint32_t number, struct err *err)
{
	const struct h5file_dataset *file = h5file_dataset(s->file, number);
	const struct dataset *ds = &tree_object(s->tree, number)->o.dataset;
	struct reading r = {.s = s, .out = &s->chunks[number], .is_sorted = true};
	if (r.out->v || !file || !file->grid.nchunks || ds->raw != RAW_STORED)
		return 0;
	int rc = h5file_chunks(s->file, number, 0, file->grid.nchunks, take, &r, err);
	if (!rc && !r.is_sorted)
		rc = sort(r.out, err);
	return rc ? err_wrap(err, rc, "dataset %s", s->paths[number]) : 0;
}

size_t chunk_records_from(const struct chunk_records *r, uint64_t number)
{
	size_t low = 0, high = r->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (r->v[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct chunk_record *chunk_records_find(const struct chunk_records *r, uint64_t number)
{
	const size_t i = chunk_records_from(r, number);
	return i < r->n && r->v[i].number == number ? &r->v[i] : NULL;
}

/* ---- datasets ---- */

static int copy_filters(struct arena *a, struct dataset *to, const struct dataset *from)
{
	struct filter *f = arena_array(a, from->nfilters, sizeof(*f));
	if (!f)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->nfilters; i++) {
		uint32_t *params = arena_array(a, from->filters[i].nparams, sizeof(*params));
		if (!params)
			return -ENOMEM;
		f[i] = from->filters[i];
		if (f[i].nparams)
			memcpy(params, f[i].params, f[i].nparams * sizeof(*params));
		f[i].params = params;
		if (f[i].name)
			f[i].name = arena_strndup(a, f[i].name, strlen(f[i].name));
	}
	to->nfilters = from->nfilters;
	to->filters = f;
	return 0;
}

/* Data without chunks in the file are cut as in the domain. */
static int adopt_grid(struct scan *s, uint32_t number, struct dataset *to,
		      const struct dataset *from, struct err *err)
{
	const struct h5file_dataset *file = h5file_dataset(s->file, number);
	const struct grid old = to->grid;
	uint64_t chunk[DSPACE_MAX_RANK];
	if (!file || !file->grid.nchunks || !from->grid.nchunks)
		return 0;
	for (uint32_t i = 0; i < from->grid.rank; i++)
		chunk[i] = from->grid.chunk[i];
	int rc = 0;
	if (file->layout != LAYOUT_CHUNKED)
		rc = h5file_set_cut(s->file, number, from->grid.chunk, err);
	return rc ? rc : grid_init(&to->grid, old.rank, old.dims, chunk, err);
}

int scan_adopt_dataset(struct scan *s, uint32_t number, const struct schema_ops *schema,
		       const struct dataset *from, struct err *err)
{
	struct dataset *to = &tree_edit(s->tree, number)->dataset;
	to->requested = from->requested;
	to->served = from->served;
	to->requested_chunk = NULL;
	to->initializer = from->initializer;
	to->reference = from->reference;
	to->locator = schema->copy_locator(from->locator, s->arena);
	if (!to->locator || copy_filters(s->arena, to, from))
		return err_set(err, -ENOMEM, "out of memory");
	const int rc = adopt_grid(s, number, to, from, err);
	return rc ? err_wrap(err, rc, "dataset %s", s->paths[number]) : 0;
}
