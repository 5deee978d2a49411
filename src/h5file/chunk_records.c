/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of a dataset: those of its index, or those that its grid cuts from contiguous or
 * compact data. Reading and decoding them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <codec/chunk.h>
#include <h5/btree1.h>
#include <h5/claims.h>
#include <h5/index.h>

#include "external.h"
#include "heaps.h"
#include "values.h"

static const struct dataset_info *info_of(const struct h5file *f, uint32_t number)
{
	return number < f->ndatasets ? f->datasets[number] : NULL;
}

const struct h5file_dataset *h5file_dataset(const struct h5file *f, uint32_t number)
{
	const struct dataset_info *d = info_of(f, number);
	return d ? &d->shown : NULL;
}

static int check(const struct h5file *f, uint32_t number, const struct dataset_info **out,
		 struct err *err)
{
	*out = info_of(f, number);
	if (!*out)
		return err_set(err, -EINVAL, "object %" PRIu32 " is not a dataset", number);
	if ((*out)->raw == RAW_STORED)
		return 0;
	return err_set(err, -EOPNOTSUPP, "the data are %s",
		       (*out)->raw == RAW_EXTERNAL  ? "in external files"
		       : (*out)->raw == RAW_VIRTUAL ? "in other datasets (a virtual dataset)"
						    : "in structured chunks");
}

/* ---- contiguous and compact ---- */

/* The addresses of runs ascend, so a run outside of the file ends the walk: no work is done for the
 * others, however many the file promises. */
static int cut(const struct h5file *f, const struct dataset_info *d, uint64_t first, uint64_t end,
	       h5file_chunk_fn fn, void *ctx, struct err *err)
{
	const struct h5_layout *l = &d->layout;
	const struct grid *g = &d->shown.grid;
	int rc = 0;
	if (!d->shown.stored_bytes)
		return 0;
	for (uint64_t i = first; !rc && i < min_u64(end, g->nchunks); i++) {
		uint64_t at, n, last;
		grid_run(g, i, &at, &n);
		struct h5file_chunk c = {.number = i, .size = n * d->elem_size};
		at *= d->elem_size;
		if (c.size > l->size || at > l->size - c.size)
			return err_set(err, -EIO,
				       "chunk %" PRIu64 " is behind the %" PRIu64
				       " bytes of data that are stored",
				       i, l->size);
		if (d->shown.pieces) {
			c.pieces = d->shown.pieces;
			c.addr = at;
		} else if (l->cls == LAYOUT_COMPACT)
			c.data = l->data + at;
		else if (!add_u64(l->addr, at, &c.addr) || !add_u64(c.addr, c.size, &last) ||
			 last > h5_file_size(&f->file))
			return err_set(err, -EIO, "chunk %" PRIu64 " is outside of the file", i);
		rc = fn(ctx, &c, err);
	}
	return rc;
}

int h5file_set_cut(struct h5file *f, uint32_t number, const uint32_t *chunk, struct err *err)
{
	struct dataset_info *d = number < f->ndatasets ? f->datasets[number] : NULL;
	uint64_t shape[DSPACE_MAX_RANK];
	struct grid g;
	if (!d || d->layout.cls == LAYOUT_CHUNKED)
		return err_set(err, -EINVAL, "object %" PRIu32 " is not a dataset without chunks",
			       number);
	if (!d->shown.grid.nchunks)
		return 0;
	for (uint32_t i = 0; i < d->shown.grid.rank; i++)
		shape[i] = chunk[i];
	int rc = grid_init(tree_arena(f->tree), &g, d->shown.grid.rank, d->shown.grid.dims, shape,
			   err);
	if (rc == -ENOMEM)
		return rc;
	if (rc || !grid_is_linear(&g))
		return err_set(err, -EINVAL,
			       "object %" PRIu32 " cannot be cut into chunks of this shape",
			       number);
	d->shown.grid = g;
	tree_edit(f->tree, number)->dataset.grid = g;
	return 0;
}

/* ---- chunked ---- */

/* Returns whether a chunk extends beyond the dataset. */
static bool is_partial(const struct grid *g, uint64_t number)
{
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(g, number, coords);
	for (uint32_t i = 0; i < g->rank; i++)
		if (g->dims[i] - coords[i] * g->chunk[i] < g->chunk[i])
			return true;
	return false;
}

struct show {
	const struct dataset_info *d;
	h5file_chunk_fn fn;
	void *ctx;
};

static int show(void *ctx, const struct h5_chunk *chunk, struct err *err)
{
	const struct show *s = ctx;
	const struct h5file_dataset *d = &s->d->shown;
	struct h5file_chunk c = {.number = chunk->number,
				 .addr = chunk->addr,
				 .size = chunk->size,
				 .filter_mask = chunk->filter_mask};
	c.is_filtered = d->pipeline->n && !(d->whole_edges && is_partial(&d->grid, c.number));
	return s->fn(s->ctx, &c, err);
}

int h5file_chunks(struct h5file *f, uint32_t number, uint64_t first, uint64_t end,
		  h5file_chunk_fn fn, void *ctx, struct err *err)
{
	const struct dataset_info *d;
	int rc = check(f, number, &d, err);
	if (rc)
		return rc;
	if (d->layout.cls != LAYOUT_CHUNKED)
		return cut(f, d, first, end, fn, ctx, err);
	if (d->layout.addr == H5_UNDEF || first >= min_u64(end, d->shown.grid.nchunks))
		return 0;
	struct show s = {.d = d, .fn = fn, .ctx = ctx};
	return h5_index_walk(&f->file, &d->layout, &tree_object(f->tree, number)->o.dataset.space,
			     &d->shown.grid, d->shown.pipeline->n > 0, first, end, show, &s, err);
}

struct claiming {
	struct h5file *f;
	h5file_chunk_fn fn;
	void *ctx;
};

static int claim(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	const struct claiming *c = ctx;
	const int rc = h5_claim(c->f->kept, chunk->addr, chunk->size, "chunk", err);
	return rc ? rc : c->fn(c->ctx, chunk, err);
}

int h5file_claim_chunks(struct h5file *f, uint32_t number, const struct h5file_index *known,
			h5file_chunk_fn fn, void *ctx, struct err *err)
{
	const struct dataset_info *d;
	struct claiming c = {.f = f, .fn = fn, .ctx = ctx};
	int rc = check(f, number, &d, err);
	if (rc)
		return rc;
	if (d->layout.cls != LAYOUT_CHUNKED) /* the open has claimed the data */
		return cut(f, d, 0, UINT64_MAX, fn, ctx, err);
	struct show s = {.d = d, .fn = claim, .ctx = &c};
	struct h5_bt1_known bt1;
	struct h5_file file = f->file;
	file.claims = f->kept;
	file.work = &f->work;
	if (known)
		bt1 = (struct h5_bt1_known){.addr = known->addr,
					    .n = known->n,
					    .is_changed = known->is_changed,
					    .offset = known->offset,
					    .run = known->run,
					    .ctx = known->ctx};
	return h5_index_walk_known(&file, &d->layout,
				   &tree_object(f->tree, number)->o.dataset.space, &d->shown.grid,
				   d->shown.pipeline->n > 0, known ? &bt1 : NULL, show, &s, err);
}

/* ---- bytes ---- */

int h5file_chunk_read(struct h5file *f, const struct h5file_chunk *chunk, struct bytes *out,
		      struct err *err)
{
	if (!chunk->pieces && chunk->size > h5_file_size(&f->file))
		return err_set(err, -EIO, "a chunk of %" PRIu64 " bytes is larger than the file",
			       chunk->size);
	if (bytes_reserve(out, (size_t)chunk->size))
		return err_set(err, -ENOMEM, "out of memory: chunk of %" PRIu64 " bytes",
			       chunk->size);
	int rc = 0;
	if (chunk->data)
		memcpy(out->data, chunk->data, (size_t)chunk->size);
	else if (chunk->pieces)
		rc = external_read(chunk->pieces, chunk->addr, out->data, (size_t)chunk->size, err);
	else
		rc = h5_file_read(&f->file, chunk->addr, out->data, (size_t)chunk->size, err);
	if (!rc)
		out->len = (size_t)chunk->size;
	return rc;
}

int h5file_chunk_prepare(const struct h5file *f, const struct h5file_chunk *chunk,
			 struct source_part *part, struct err *err)
{
	return chunk->data || chunk->pieces
		       ? -ENOTSUP
		       : h5_file_prepare(&f->file, chunk->addr, chunk->size, part, err);
}

void h5file_chunk_advise(const struct h5file *f, const struct h5file_chunk *chunk)
{
	if (!chunk->pieces)
		h5_file_advise(&f->file, chunk->addr, chunk->size);
}

/* Undoes the filters. *out gets exactly the bytes of the whole chunk. Elements beyond the extent
 * that are not stored, such as those of a cut, are zeros. */
static int undo_filters(const struct dataset_info *d, const struct h5file_chunk *chunk,
			struct bytes *stored, struct bytes *out, struct err *err)
{
	const struct h5file_dataset *shown = &d->shown;
	const uint64_t whole = shown->grid.chunk_elems * d->elem_size;
	const uint64_t want = d->layout.cls == LAYOUT_CHUNKED ? whole : chunk->size;
	int rc = 0;
	if (whole > SIZE_MAX / 2)
		return err_set(err, -ENOMEM, "out of memory: chunk of %" PRIu64 " bytes", whole);
	if (chunk->is_filtered) {
		rc = codec_hdf5_decode(shown->pipeline, chunk->filter_mask, d->elem_size,
				       stored->data, stored->len, (size_t)codec_hdf5_limit(want),
				       out, err);
	} else {
		*out = *stored;
		*stored = (struct bytes){0};
	}
	/* A writer may have left out the elements of a chunk outside of the extent. */
	if (!rc && out->len != want &&
	    (d->layout.cls != LAYOUT_CHUNKED ||
	     out->len < grid_covered(&shown->grid, chunk->number) * d->elem_size))
		rc = err_set(err, -EIO, "the chunk has %zu bytes instead of %" PRIu64, out->len,
			     want);
	out->len = min_u64(out->len, whole);
	if (!rc && bytes_append_zero(out, (size_t)(whole - out->len)))
		rc = err_no_memory(err);
	return rc;
}

/* Records the first dangling reference in the chunks of a dataset. */
static void note_dangling(struct h5file *f, uint32_t number, uint64_t addr)
{
	struct err why = ERR_INIT;
	pthread_mutex_lock(&f->lock);
	const bool first = !f->datasets[number]->dangling;
	f->datasets[number]->dangling = true;
	pthread_mutex_unlock(&f->lock);
	if (!first)
		return;
	err_set(&why, -EIO, "a reference leads to no object: there is none at %" PRIu64, addr);
	h5file_note(f, H5FILE_WARNING, number, &why);
}

static int decode(struct h5file *f, uint32_t number, const struct dataset_info *d,
		  struct bytes *plain, struct elems *out, struct err *err)
{
	const uint64_t n = d->shown.grid.chunk_elems;
	uint64_t dangling, addr;
	int rc = values_decode(f, d->type, plain, n, out, err);
	if (!rc)
		rc = values_resolve(f, d->type, out, n, &dangling, &addr, err);
	if (!rc && dangling)
		note_dangling(f, number, addr);
	if (rc)
		elems_release(out);
	return rc;
}

int h5file_chunk_decode(struct h5file *f, uint32_t number, const struct h5file_chunk *chunk,
			struct bytes *stored, struct elems *out, struct err *err)
{
	const struct dataset_info *d;
	auto_bytes struct bytes plain = {0};
	int rc = check(f, number, &d, err);
	if (!rc)
		rc = undo_filters(d, chunk, stored, &plain, err);
	if (!rc)
		rc = decode(f, number, d, &plain, out, err);
	return rc ? err_wrap(err, rc, "chunk %" PRIu64, chunk->number) : 0;
}

int h5file_chunk_heaps(struct h5file *f, uint32_t number, const struct h5file_chunk *chunk,
		       const struct bytes *stored,
		       int (*fn)(void *ctx, uint64_t addr, uint64_t size), void *ctx,
		       struct err *err)
{
	const struct dataset_info *d;
	auto_bytes struct bytes plain = {0}, copy = {0};
	int rc = check(f, number, &d, err);
	if (!rc && dtype_is_plain(d->type))
		return 0;
	if (!rc && bytes_append(&copy, stored->data, stored->len))
		rc = err_no_memory(err);
	if (!rc)
		rc = undo_filters(d, chunk, &copy, &plain, err);
	if (!rc)
		rc = heaps_visit(f, d->type, &plain, d->shown.grid.chunk_elems, fn, ctx, err);
	return rc ? err_wrap(err, rc, "chunk %" PRIu64, chunk->number) : 0;
}
