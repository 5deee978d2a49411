/* SPDX-License-Identifier: Apache-2.0 */
/* One state of the file of a domain: objects, ids, and where its chunks are. */
#include "update_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chain.h>

enum { SCAN_ARENA = 1 << 30 };

/* ---- the file ---- */

static int read_from(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct scan *s = ctx;
	return source_read(s->from, offset, buf, n, err);
}

/* The first problem of one severity is the error. */
static int check_problems(const struct h5file *f, enum h5file_severity severity, int code,
			  struct err *err)
{
	const uint64_t n = h5file_problems_of(f, severity);
	const struct h5file_problem *p = n ? h5file_first_problem(f, severity) : NULL;
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
		return err_no_memory(err);
	for (uint32_t i = 0; i < n; i++) {
		s->paths[i] = tree_object(s->tree, i)->o.id;
		s->opened[i] = OBJECT_NONE;
	}
	return 0;
}

static int read_file(struct scan *s, const struct env *env, bool is_foreign,
		     const struct h5file_known *known, struct err *err)
{
	const struct h5file_options how = {.budget = env->budget,
					   .claim_orders = is_foreign,
					   .keep_claims = is_foreign,
					   .known = known};
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

int scan_open(const struct env *env, struct source *from, bool is_foreign,
	      const struct h5file_known *known, struct scan **out, struct err *err)
{
	struct scan *s = calloc(1, sizeof(*s));
	if (!s)
		return err_no_memory(err);
	s->from = from;
	s->charge = (struct budget_charge){.budget = env->budget, .use = BUDGET_TREES};
	s->arena = arena_new(SCAN_ARENA);
	int rc = s->arena ? read_file(s, env, is_foreign, known, err) : err_no_memory(err);
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
		chunk_set_release(&s->chunks[i]);
	budget_set(&s->charge, 0, NULL);
	h5file_close(s->file);
	arena_free(s->arena);
	scan_free(s->whole);
	free(s);
}

/* ---- datasets ---- */

bool scan_is_unread(const struct scan *s, uint32_t number)
{
	return tree_object(s->tree, number)->unread;
}

uint32_t scan_count_read(const struct scan *s)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < tree_count(s->tree); i++)
		n += !scan_is_unread(s, tree_nth(s->tree, i));
	return n;
}

int scan_read(struct scan *s, uint32_t number, struct err *err)
{
	const int rc = h5file_read(s->file, number, err);
	return rc ? err_wrap(err, rc, "dataset %s", s->paths[number]) : 0;
}

void scan_adopt_unread(struct scan *s, uint32_t number, const struct dataset *from)
{
	struct dataset *to = &tree_edit(s->tree, number)->dataset;
	to->reference = from->reference;
	to->initializer = from->initializer;
	to->locator = from->locator;
}

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
	return rc ? rc : grid_init(tree_arena(s->tree), &to->grid, old.rank, old.dims, chunk, err);
}

/* Chunks are encoded as the service encodes those of the domain. */
static int adopt_chain(struct scan *s, struct dataset *to, const struct dataset *from,
		       struct err *err)
{
	const struct service_filters *served = codec_chain_served(from->chain);
	struct codec_plan plan;
	struct pipeline p;
	if (!served)
		return 0;
	dataset_pipeline(to, &p);
	codec_plan_object(&plan, to->type, to->grid.chunk_elems, &p, OBJECT_SHUFFLED, served);
	to->chain = codec_chain_copy(&plan.chain, s->arena);
	return to->chain ? 0 : err_no_memory(err);
}

int scan_adopt_dataset(struct scan *s, uint32_t number, const struct schema_ops *schema,
		       const struct dataset *from, struct err *err)
{
	struct dataset *to = &tree_edit(s->tree, number)->dataset;
	to->requested = from->requested;
	to->requested_chunk = NULL;
	to->initializer = from->initializer;
	to->reference = from->reference;
	to->locator = schema->editor->copy_locator(from->locator, s->arena);
	if (!to->locator || copy_filters(s->arena, to, from))
		return err_no_memory(err);
	const int rc = adopt_grid(s, number, to, from, err);
	return rc ? err_wrap(err, rc, "dataset %s", s->paths[number])
		  : adopt_chain(s, to, from, err);
}
