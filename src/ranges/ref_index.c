/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches in the chunk indexes of referenced files, through ranges of the files. It is needed if a
 * chunk table has not been filled, and if a chunk does not decode with the filters that the domain
 * records: then the file's own pipeline and filter mask decide.
 *
 * The decoder (h5file/one.h) reads from pages in memory. When pages are missing, it fails with
 * -EAGAIN; the ranges that it has asked for are then fetched in parallel, together with those that
 * it has announced, and it starts again when all have arrived. The pages are kept for later
 * searches, until they take more than KEPT_MAX.
 *
 * Threads: one search of a file runs at a time. The thread that brings the last missing range
 * continues it. See ranges/ranges.h for the rest.
 */
#include <ranges/references.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/source_paged.h>
#include <base/str.h>
#include <data/chunk_source.h>
#include <data/describe.h>
#include <h5file/one.h>

#include "ref_internal.h"

enum {
	KEPT_MAX = 16 << 20,   /* bytes of pages of one file that are kept after a search */
	PAGES_MAX = 1024,      /* of one file during a search */
	OPEN_MAX = 64,	       /* datasets of one file that are kept open */
	ADVISED_MAX = 4 << 20, /* bytes of one round that the decoder has only announced */
	READS_MAX = 33,	       /* of one round */
};

/* A dataset of the domain in the file. It lives as long as the domain. */
struct ref_dataset {
	uint32_t number;
	char *path;		/* in the file */
	struct h5file_one *one; /* or NULL */
	/* A copy of the file's pipeline with its parameters. Written once, under the lock, and then
	 * `known` is set. */
	bool known;
	struct pipeline pipeline;
	uint32_t *params;
	UT_hash_handle hh;
};

struct index_read {
	struct range_read read;
	uint64_t offset, n; /* whole pages */
	struct bytes body;
	int code;
	struct err err;
	struct ref_file *file;
};

/* ---- life ---- */

static void drop_pages(struct ref_file *f)
{
	struct ref_dataset *ds, *next;
	HASH_ITER (hh, f->datasets, ds, next) {
		h5file_one_close(ds->one);
		ds->one = NULL;
	}
	source_paged_free(f->index.pages);
	f->index.pages = NULL;
	f->index.kept = 0;
	f->index.open = 0;
	budget_set(&f->index.charge, 0, NULL);
}

static void release(struct ref_file *f)
{
	struct ref_dataset *ds, *next;
	drop_pages(f);
	HASH_ITER (hh, f->datasets, ds, next) {
		HASH_DEL(f->datasets, ds);
		free(ds->path);
		free(ds->params);
		free(ds);
	}
}

/* ---- datasets ---- */

static struct ref_dataset *find_dataset(struct ref_file *f, uint32_t number)
{
	struct ref_dataset *ds = NULL;
	HASH_FIND(hh, f->datasets, &number, sizeof(number), ds);
	return ds;
}

/* Returns the path of the dataset in the domain, or NULL if out of memory. */
static char *own_path(const struct ranges *all, uint32_t number)
{
	auto_str struct str path = {0};
	struct object_paths *paths = object_paths_new(all->tree);
	if (!paths)
		return NULL;
	describe_path(&path, paths, number);
	object_paths_free(paths);
	return str_ok(&path) ? str_take(&path) : NULL;
}

/* Only the thread that runs the searches of the file adds datasets. */
static struct ref_dataset *add_dataset(struct ref_file *f, const struct ref_search *s)
{
	struct ref_dataset *ds = find_dataset(f, s->dataset);
	if (ds)
		return ds;
	ds = calloc(1, sizeof(*ds));
	if (!ds)
		return NULL;
	ds->number = s->dataset;
	ds->path = s->h5path ? strdup(s->h5path) : own_path(f->object.all, s->dataset);
	if (ds->path && ref_file_charge(f, sizeof(*ds) + strlen(ds->path) + 1, NULL) == 0) {
		pthread_mutex_lock(&f->object.all->lock);
		HASH_ADD(hh, f->datasets, number, sizeof(ds->number), ds);
		pthread_mutex_unlock(&f->object.all->lock);
		if (ds->hh.tbl)
			return ds;
	}
	free(ds->path);
	free(ds);
	return NULL;
}

/* Copies the pipeline of the open dataset, which ends with the decoder. The names of filters are
 * not copied: the id names a filter that has no decoder. */
static int keep_pipeline(struct ref_file *f, struct ref_dataset *ds, const struct pipeline *p,
			 struct err *err)
{
	size_t n = 0;
	if (ds->known)
		return 0;
	for (uint32_t i = 0; i < p->n; i++)
		n += p->f[i].nparams;
	ds->params = calloc(n + 1, sizeof(*ds->params));
	if (!ds->params)
		return err_no_memory(err);
	ds->pipeline = *p;
	n = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		struct filter *filter = &ds->pipeline.f[i];
		if (filter->nparams)
			memcpy(ds->params + n, filter->params,
			       filter->nparams * sizeof(*ds->params));
		filter->params = ds->params + n;
		filter->name = NULL;
		n += filter->nparams;
	}
	pthread_mutex_lock(&f->object.all->lock);
	ds->known = true;
	pthread_mutex_unlock(&f->object.all->lock);
	return 0;
}

const struct pipeline *ref_index_pipeline(struct ref_file *f, uint32_t dataset)
{
	pthread_mutex_lock(&f->object.all->lock);
	const struct ref_dataset *ds = find_dataset(f, dataset);
	const bool known = ds && ds->known;
	pthread_mutex_unlock(&f->object.all->lock);
	return known ? &ds->pipeline : NULL;
}

/* ---- the source of the decoder ---- */

static int read_pages(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct ref_file *f = ctx;
	const int rc = source_read(source_paged_source(f->index.pages), offset, buf, n, err);
	if (rc == -EAGAIN)
		*err = (struct err)ERR_INIT;
	return rc;
}

static void advise(void *ctx, uint64_t offset, uint64_t n)
{
	struct ref_index *x = &((struct ref_file *)ctx)->index;
	if (x->nadvised < sizeof(x->advised) / sizeof(x->advised[0])) {
		x->advised[x->nadvised].offset = offset;
		x->advised[x->nadvised++].n = n;
	}
}

static int no_page(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	return -EAGAIN;
}

static int make_pages(struct ref_file *f, struct err *err)
{
	const uint64_t size = range_object_size(&f->object);
	f->index.pages = source_paged_new(size, PAGES_MAX, no_page, NULL);
	f->index.source =
		(struct source){.size = size, .read_at = read_pages, .advise = advise, .ctx = f};
	return f->index.pages ? 0 : err_no_memory(err);
}

/* ---- rounds of reads ---- */

static bool has_page(struct ref_file *f, uint64_t offset)
{
	struct err ignored = ERR_INIT;
	uint8_t byte;
	return source_read(source_paged_source(f->index.pages), offset, &byte, 1, &ignored) == 0;
}

/* Adds a read of the pages of a range, without those that are in memory at its ends and those that
 * are requested already. */
static void add_read(struct ref_file *f, uint64_t offset, uint64_t n)
{
	struct ref_index *x = &f->index;
	source_paged_round(x->pages, &offset, &n);
	while (n && has_page(f, offset)) {
		const uint64_t page = min_u64(n, SOURCE_PAGE);
		offset += page;
		n -= page;
	}
	for (uint32_t i = 0; n && i < x->nreads; i++) {
		const uint64_t end = x->reads[i].offset + x->reads[i].n;
		if (offset >= x->reads[i].offset && offset < end) {
			const uint64_t skip = min_u64(n, end - offset);
			offset += skip;
			n -= skip;
		}
	}
	if (n && x->nreads < READS_MAX)
		x->reads[x->nreads++] = (struct index_read){.file = f, .offset = offset, .n = n};
}

static void run(struct ref_file *f);

static void read_done(struct range_read *r, int code, struct bytes *body, const struct err *err)
{
	struct index_read *read = r->arg;
	struct ref_file *f = read->file;
	read->code = code;
	if (code)
		err_copy(&read->err, err);
	read->body = *body;
	*body = (struct bytes){0};
	if (atomic_fetch_sub(&f->index.pending, 1) == 1)
		run(f);
}

/* Submits the reads. Returns true if all have arrived, so that this thread continues. Otherwise the
 * thread of the last answer continues, and this one must not touch the file any more. */
static bool submit_reads(struct ref_file *f, bool prefetch)
{
	struct ref_index *x = &f->index;
	const uint32_t n = x->nreads;
	atomic_store(&x->pending, n + 1);
	for (uint32_t i = 0; i < n; i++) {
		struct index_read *read = &x->reads[i];
		read->read = (struct range_read){
			.object = &f->object,
			.offset = read->offset,
			.length = read->n,
			.short_ok = !x->pages,
			.prefetch = prefetch,
			.done = read_done,
			.arg = read,
		};
		range_read(&read->read);
	}
	return atomic_fetch_sub(&x->pending, 1) == 1;
}

/* Prepares the next round: the first page, which also shows the size of the file, or what the
 * decoder needs. */
static int prepare_reads(struct ref_file *f, struct err *err)
{
	struct ref_index *x = &f->index;
	uint64_t advised = 0;
	x->reads = calloc(READS_MAX, sizeof(*x->reads));
	x->nreads = 0;
	if (!x->reads)
		return err_no_memory(err);
	if (!x->pages) {
		x->reads[x->nreads++] = (struct index_read){.file = f, .n = SOURCE_PAGE};
		return 0;
	}
	add_read(f, x->source.missing_offset, x->source.missing_length);
	for (uint32_t i = 0; i < x->nadvised; i++) {
		advised += x->advised[i].n;
		if (advised <= ADVISED_MAX)
			add_read(f, x->advised[i].offset, x->advised[i].n);
	}
	return x->nreads ? 0 : err_set(err, -EIO, "pages of the file cannot be kept");
}

static int keep_read(struct ref_file *f, struct index_read *read, struct err *err)
{
	struct ref_index *x = &f->index;
	int rc = 0;
	if (read->code) {
		err_copy(err, &read->err);
		return read->code;
	}
	if (!x->pages)
		rc = make_pages(f, err);
	if (!rc)
		rc = budget_set(&x->charge, x->kept + read->body.len, err);
	if (rc)
		return rc;
	x->kept += read->body.len;
	return source_paged_put(x->pages, read->offset, read->body.data, read->body.len, err);
}

static int take_reads(struct ref_file *f, struct err *err)
{
	struct ref_index *x = &f->index;
	int rc = 0;
	for (uint32_t i = 0; i < x->nreads; i++) {
		if (!rc)
			rc = keep_read(f, &x->reads[i], err);
		bytes_release(&x->reads[i].body);
	}
	free(x->reads);
	x->reads = NULL;
	x->nreads = 0;
	x->nadvised = 0;
	return rc;
}

/* ---- searches ---- */

/* Checks that both grids have the same chunks. */
static int check_grid(const struct grid *own, const struct h5file_dataset *file, struct err *err)
{
	const struct grid *g = &file->grid;
	if (file->layout != LAYOUT_CHUNKED)
		return err_set(err, -EIO, "the dataset of the file has no chunks");
	if (!grid_same_chunks(g, own))
		return err_set(
			err, -EIO,
			"the dataset of the file has chunks of another shape than the domain");
	return 0;
}

static int find_chunk(struct ref_search *s, struct ref_dataset *ds, struct ref_place *out,
		      struct err *err)
{
	static const struct pipeline none;
	const struct grid *own =
		&tree_object(s->file->object.all->tree, s->dataset)->o.dataset.grid;
	const struct h5file_dataset *file = h5file_one_dataset(ds->one);
	uint64_t coords[DSPACE_MAX_RANK];
	struct h5file_chunk chunk;
	int rc = check_grid(own, file, err);
	if (!rc)
		rc = keep_pipeline(s->file, ds, file->pipeline, err);
	if (rc)
		return rc;
	grid_coords(own, s->number, coords);
	for (uint32_t d = 0; d < own->rank; d++)
		if (coords[d] >= file->grid.count[d])
			return 0;
	rc = h5file_one_chunk(ds->one, grid_number(&file->grid, coords), &out->stored, &chunk, err);
	if (rc || !out->stored)
		return rc;
	out->size = chunk.size;
	out->filter_mask = chunk.filter_mask;
	out->pipeline = chunk.is_filtered ? &ds->pipeline : &none;
	if (chunk.size > CHUNK_BYTES_MAX ||
	    !add_u64(chunk.addr, h5file_one_base(ds->one), &out->offset))
		return err_set(err, -EIO, "the chunk has %" PRIu64 " bytes, the limit is %d",
			       chunk.size, CHUNK_BYTES_MAX);
	return 0;
}

/* Makes the search. Returns -EAGAIN if the source needs more pages. */
static int search(struct ref_search *s, struct ref_place *out, struct err *err)
{
	struct ref_file *f = s->file;
	struct ref_dataset *ds = add_dataset(f, s);
	int rc = 0;
	*out = (struct ref_place){0};
	if (!ds)
		return err_no_memory(err);
	if (!f->index.pages)
		return -EAGAIN;
	if (!ds->one) {
		rc = h5file_one_open(&f->index.source, ds->path, &ds->one, err);
		f->index.open += rc == 0;
	}
	if (!rc)
		rc = find_chunk(s, ds, out, err);
	if (rc && rc != -EAGAIN) {
		if (rc == -ENOENT || rc == -EINVAL)
			rc = -EIO;
		err_wrap(err, rc, "%s, dataset %s", f->uri, ds->path);
	}
	return rc;
}

/* Removes the first search. Returns whether another one waits; if not, the next search runs in the
 * thread that adds it. */
static bool next_search(struct ref_file *f, struct ref_search **first)
{
	struct ref_index *x = &f->index;
	pthread_mutex_lock(&f->object.all->lock);
	*first = x->first;
	x->first = (*first)->next;
	const bool more = x->first != NULL;
	x->running = more;
	pthread_mutex_unlock(&f->object.all->lock);
	return more;
}

/* Runs the first search until it needs pages, and those behind it. */
static void run(struct ref_file *f)
{
	struct ref_index *x = &f->index;
	bool more = true;
	while (more) {
		struct ref_search *s = x->first;
		struct ref_place place = {0};
		struct err err = ERR_INIT;
		int rc = take_reads(f, &err);
		if (!rc)
			rc = search(s, &place, &err);
		if (rc == -EAGAIN) {
			err = (struct err)ERR_INIT;
			rc = prepare_reads(f, &err);
			if (!rc && submit_reads(f, s->prefetch))
				continue;
			if (!rc)
				return;
		}
		if (rc == -ENOMEM || x->kept > KEPT_MAX || x->open > OPEN_MAX)
			drop_pages(f);
		more = next_search(f, &s);
		s->done(s, rc, &place, &err);
	}
}

void ref_index_find(struct ref_search *s)
{
	struct ref_file *f = s->file;
	struct ref_index *x = &f->index;
	s->next = NULL;
	pthread_mutex_lock(&f->object.all->lock);
	if (x->first)
		x->last->next = s;
	else
		x->first = s;
	x->last = s;
	const bool first = !x->running;
	x->running = true;
	if (!f->release_index) {
		x->charge.budget = f->object.all->env->budget;
		x->charge.use = BUDGET_TREES;
		f->release_index = release;
	}
	pthread_mutex_unlock(&f->object.all->lock);
	if (first)
		run(f);
}
