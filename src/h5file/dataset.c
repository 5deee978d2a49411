/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets: type, dataspace, layout, filters, fill value and external files, each a message of the
 * object header.
 *
 * Data in external files are like those of a contiguous dataset if the caller gives access to these
 * files. A contiguous dataset whose data are not completely in the file stays in the tree, because
 * its metadata are whole; reading its chunks fails.
 */
#include "dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "external.h"
#include "objects.h"
#include "values.h"

struct reader {
	struct h5file *f;
	const struct header *h;
	struct dataset ds;
	struct dataset_info *info;
	uint64_t committed;
	struct err *err;
};

static int read_space(struct reader *r)
{
	struct cursor body;
	int rc = header_find(r->f, r->h, H5_MSG_DATASPACE, &body, r->err);
	if (rc <= 0)
		return rc ? rc : err_set(r->err, -EIO, "the dataset has no dataspace");
	return h5_dspace_decode(&r->f->file, &body, tree_arena(r->f->tree), &r->ds.space, r->err);
}

static int read_layout(struct reader *r)
{
	struct h5_layout *l = &r->info->layout;
	struct cursor body;
	int rc = header_find(r->f, r->h, H5_MSG_LAYOUT, &body, r->err);
	if (rc <= 0)
		return rc ? rc : err_set(r->err, -EIO, "the dataset has no layout");
	rc = h5_layout_decode(&r->f->file, &body, l, r->err);
	if (rc)
		return rc;
	r->ds.requested = l->cls;
	r->ds.raw = l->raw;
	if (h5_ohdr_find(&r->h->h, H5_MSG_EXTERNAL_FILES))
		r->ds.raw = RAW_EXTERNAL;
	if (!l->data)
		return 0;
	/* The message holds the data of a compact dataset. */
	l->data =
		(const uint8_t *)arena_strndup(r->f->arena, (const char *)l->data, (size_t)l->size);
	return l->data ? 0 : err_no_memory(r->err);
}

static bool same_pipeline(const struct pipeline *a, const struct pipeline *b)
{
	bool same = filters_equal(a->f, a->n, b->f, b->n);
	for (uint32_t i = 0; same && i < a->n; i++) {
		const char *x = a->f[i].name, *y = b->f[i].name;
		same = x && y ? strcmp(x, y) == 0 : x == y;
	}
	return same;
}

/* Most datasets of a file have the same filters, and a struct pipeline is large: a dataset shares
 * that of the one before it if they are equal. */
static int read_pipeline(struct reader *r)
{
	struct h5file *f = r->f;
	struct pipeline p = {.n = 0};
	struct cursor body;
	int rc = header_find(f, r->h, H5_MSG_PIPELINE, &body, r->err);
	if (rc > 0)
		rc = h5_pipeline_decode(&body, tree_arena(f->tree), &p, r->err);
	if (rc)
		return rc;
	if (!f->pipeline || !same_pipeline(f->pipeline, &p)) {
		struct pipeline *copy = arena_alloc(f->arena, sizeof(*copy));
		if (!copy)
			return err_no_memory(r->err);
		*copy = p;
		f->pipeline = copy;
	}
	r->info->shown.pipeline = f->pipeline;
	r->ds.nfilters = f->pipeline->n;
	r->ds.filters = f->pipeline->f;
	return 0;
}

static int decode_fill(struct reader *r, const struct h5_fill *fill)
{
	auto_bytes struct bytes in = {0};
	const uint32_t size = h5_dtype_file_size(&r->f->file, r->ds.type);
	if (fill->size != size)
		return err_set(r->err, -EIO,
			       "the fill value has %" PRIu32 " bytes instead of %" PRIu32,
			       fill->size, size);
	if (bytes_append(&in, fill->value, fill->size))
		return err_no_memory(r->err);
	int rc = values_decode(r->f, r->ds.type, &in, 1, &r->ds.fill, r->err);
	r->ds.fill_defined = !rc;
	r->f->value_bytes += r->ds.fill.fixed.cap + r->ds.fill.heap.cap;
	return rc;
}

static int read_fill(struct reader *r)
{
	struct h5_fill fill = {.fill_time = FILL_TIME_IFSET};
	struct cursor body;
	fill.alloc_time = r->ds.requested == LAYOUT_COMPACT   ? ALLOC_TIME_EARLY
			  : r->ds.requested == LAYOUT_CHUNKED ? ALLOC_TIME_INCR
							      : ALLOC_TIME_LATE;
	const enum alloc_time alloc = fill.alloc_time;
	int rc = header_find(r->f, r->h, H5_MSG_FILL, &body, r->err);
	if (rc > 0) {
		rc = h5_fill_decode(&body, &fill, r->err);
	} else if (!rc) {
		rc = header_find(r->f, r->h, H5_MSG_FILL_OLD, &body, r->err);
		if (rc > 0)
			rc = h5_fill_old_decode(&body, &fill, r->err);
	}
	if (rc)
		return rc;
	r->ds.alloc_time = fill.alloc_time ? fill.alloc_time : alloc;
	r->ds.fill_time = fill.fill_time;
	return fill.defined && fill.size ? decode_fill(r, &fill) : 0;
}

static int make_grid(struct reader *r)
{
	const struct dspace *s = &r->ds.space;
	const struct h5_layout *l = &r->info->layout;
	const bool chunked = l->cls == LAYOUT_CHUNKED && r->ds.raw == RAW_STORED;
	uint64_t dims[DSPACE_MAX_RANK] = {s->nelems}, chunk[DSPACE_MAX_RANK] = {1};
	uint32_t rank = 1;
	if (s->cls == DSPACE_SIMPLE) {
		rank = s->rank;
		memcpy(dims, s->dims, rank * sizeof(*dims));
		for (uint32_t i = 0; i < rank; i++)
			chunk[i] = 1;
	}
	if (chunked && l->rank != rank)
		return err_set(r->err, -EIO,
			       "chunks have %" PRIu32 " dimensions, the dataspace has %" PRIu32,
			       l->rank, rank);
	if (chunked)
		for (uint32_t i = 0; i < rank; i++)
			chunk[i] = l->chunk[i];
	else if (s->nelems)
		grid_cut(rank, dims, r->info->elem_size, H5FILE_CUT, chunk);
	int rc = grid_init(tree_arena(r->f->tree), &r->ds.grid, rank, dims, chunk, r->err);
	if (rc)
		return err_set(r->err,
			       rc == -ENOMEM  ? -ENOMEM
			       : rc == -E2BIG ? -EOPNOTSUPP
					      : -EIO,
			       "the chunks are too large or too many");
	if (chunked && l->elem_size != r->info->elem_size)
		return err_set(r->err, -EIO,
			       "chunks have elements of %" PRIu32 " bytes, the type has %" PRIu32,
			       l->elem_size, r->info->elem_size);
	return 0;
}

/* Opens the external files of a dataset, if there are any and the caller permits it. */
static int read_external(struct reader *r)
{
	struct h5_layout *l = &r->info->layout;
	struct cursor body;
	if (r->ds.raw != RAW_EXTERNAL || l->cls != LAYOUT_CONTIGUOUS || !r->f->external)
		return 0;
	if (!mul_u64(r->ds.space.nelems, r->info->elem_size, &l->size))
		return err_set(r->err, -EIO, "the dataset has more than 2^64 bytes");
	int rc = header_find(r->f, r->h, H5_MSG_EXTERNAL_FILES, &body, r->err);
	if (rc > 0)
		rc = external_open(r->f, &body, l->size, &r->info->shown.pieces, r->err);
	if (rc)
		return rc;
	r->ds.raw = RAW_STORED;
	r->info->shown.stored_bytes = l->size;
	return 0;
}

/* Checks that the data of a dataset without chunks are there. */
static void check_data(struct reader *r)
{
	struct h5_layout *l = &r->info->layout;
	struct err why = ERR_INIT;
	uint64_t need, end;
	if (r->ds.raw != RAW_STORED || l->cls == LAYOUT_CHUNKED || r->info->shown.pieces)
		return;
	if (!mul_u64(r->ds.space.nelems, r->info->elem_size, &need))
		need = UINT64_MAX;
	if (l->size == UINT64_MAX)
		l->size = need;
	const bool stored = l->cls == LAYOUT_COMPACT ? l->size > 0 : l->addr != H5_UNDEF;
	r->info->shown.stored_bytes = stored ? l->size : 0;
	if (!stored)
		return;
	if (l->size < need)
		err_set(&why, -EIO, "%" PRIu64 " bytes of data are stored instead of %" PRIu64,
			l->size, need);
	else if (l->cls == LAYOUT_CONTIGUOUS &&
		 (!add_u64(l->addr, l->size, &end) || end > h5_file_size(&r->f->file)))
		err_set(&why, -EIO,
			"%" PRIu64 " bytes of data at %" PRIu64 " are outside of the file", l->size,
			l->addr);
	if (why.code)
		h5file_report(r->f, r->h->number, &why);
}

static int read_all(struct reader *r)
{
	int rc = header_type(r->f, r->h, &r->ds.type, &r->committed, r->err);
	if (!rc)
		rc = read_space(r);
	if (!rc)
		rc = read_layout(r);
	if (rc)
		return rc;
	r->info->elem_size = h5_dtype_file_size(&r->f->file, r->ds.type);
	rc = make_grid(r);
	if (!rc)
		rc = read_pipeline(r);
	if (!rc)
		rc = read_fill(r);
	if (!rc)
		rc = read_external(r);
	if (!rc && r->committed != H5_UNDEF)
		rc = objects_share(r->f, r->h->number, OBJECT_NONE, r->committed, r->err);
	return rc;
}

static void finish(struct reader *r)
{
	struct object *o = tree_edit(r->f->tree, r->h->number);
	struct dataset_info *info = r->info;
	check_data(r);
	o->kind = OBJECT_DATASET;
	o->dataset = r->ds;
	info->raw = r->ds.raw;
	info->type = r->ds.type;
	info->shown.grid = r->ds.grid;
	info->shown.elem_size = info->elem_size;
	info->shown.layout = info->layout.cls;
	info->shown.whole_edges = info->layout.whole_edges;
	info->shown.header = h5file_address(r->f, r->h->number);
}

int dataset_read(struct h5file *f, const struct header *h, struct dataset_info **info,
		 struct err *err)
{
	struct reader r = {.f = f, .h = h, .committed = H5_UNDEF, .err = err};
	r.ds.committed = OBJECT_NONE;
	r.info = arena_alloc(f->arena, sizeof(*r.info));
	if (!r.info)
		return err_no_memory(err);
	int rc = read_all(&r);
	if (rc) {
		elems_release(&r.ds.fill);
		return rc;
	}
	finish(&r);
	*info = r.info;
	return 0;
}
