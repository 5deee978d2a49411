/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct dataset -> "type", "shape", "creationProperties", "layout": the reverse of
 * parse_dataset.c.
 *
 * "layout" has the shape of the chunk objects, and so has the "layout" of "creationProperties",
 * which is the only one that HSDS 1.0 reads. The rest of "creationProperties" is what the creator
 * requested. Its member "hsmount" has what the service would refuse there, or would read in another
 * way:
 *
 *   filters    [{id, name, parameters}]: the recorded filters, if the list "filters" differs. That
 *              list has the filters of the chunk objects (pipeline_of_object())
 *   layout     the requested class, if it is H5D_COMPACT, which the service takes as
 *              H5D_CONTIGUOUS, or if the dataset is not chunked, but is stored in chunks
 *   chunk      the requested chunk shape, if it is not that of the chunk objects
 *   fillValue  null, if the defined fill value is a string that has never been set; or all bytes
 *              of the fill value in base64, if it has a NaN that JSON cannot hold (emit_value.c)
 *   unset      the strings of a fill value in base64 that have no value (stored_form.c)
 *
 * If the data stay in an HDF5 file, the "layout" of "creationProperties" refers to that file:
 *
 *   H5D_CONTIGUOUS_REF         file_uri, offset, size
 *   H5D_CHUNKED_REF            file_uri, dims, chunks {"i_j": [offset, size]}, with the filter mask
 *                              as a third number if it is not 0
 *   H5D_CHUNKED_REF_INDIRECT   file_uri, dims, chunk_table (the id of a dataset)
 *
 * This layout has a member "hsmount" {etag, size, h5path, exact}. The first two are the version of
 * the file, and h5path is the path of the dataset in the file. `exact` says that "filters" of
 * "hsmount" has all filters of the file.
 *
 * If a maximum dimension is 0, "shape" has a member "hsmount" with "maxdims", because the service
 * takes 0 as no limit. Pure.
 */
#include "emit_document.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parse.h"

/* ---- shape ---- */

/* Writes the maximum dimensions. The word `unlimited` stands for no limit; if it is NULL, 0 stands
 * for it. */
static void put_max(struct writer *w, const struct dspace *s, const char *unlimited)
{
	write_member_open(w, "maxdims", '[');
	for (uint32_t d = 0; d < s->rank; d++) {
		if (s->max[d] != DSPACE_UNLIMITED)
			write_uint(w, s->max[d]);
		else if (unlimited)
			write_word(w, unlimited);
		else
			write_uint(w, 0);
	}
	write_close(w, ']');
}

void schema_emit_space(struct schema_emit *e, const struct dspace *s)
{
	static const char *const classes[] = {
		[DSPACE_SCALAR] = "H5S_SCALAR",
		[DSPACE_SIMPLE] = "H5S_SIMPLE",
		[DSPACE_NULL] = "H5S_NULL",
	};
	struct writer *w = &e->w;
	bool zero = false;
	write_member_open(w, "shape", '{');
	write_member_word(w, "class", classes[s->cls]);
	if (s->cls == DSPACE_SIMPLE) {
		write_member_open(w, "dims", '[');
		for (uint32_t i = 0; i < s->rank; i++)
			write_uint(w, s->dims[i]);
		write_close(w, ']');
	}
	if (dspace_extendible(s)) {
		put_max(w, s, NULL);
		for (uint32_t d = 0; d < s->rank; d++)
			zero = zero || s->max[d] == 0;
	}
	if (zero) {
		write_member_open(w, "hsmount", '{');
		put_max(w, s, "H5S_UNLIMITED");
		write_close(w, '}');
	}
	write_close(w, '}');
}

/* ---- layout ---- */

static void put_layout(struct writer *w, const char *cls, const struct grid *grid)
{
	write_member_open(w, "layout", '{');
	write_member_word(w, "class", cls);
	if (grid)
		write_member_list(w, "dims", grid->rank, grid->chunk);
	write_close(w, '}');
}

/* Returns whether a dataset has one chunk, of its own shape. HSDS 1.0 takes each dataset without a
 * chunk shape in "creationProperties" as such. */
static bool is_one_chunk(const struct dataset *ds)
{
	if (ds->space.cls != DSPACE_SIMPLE)
		return true;
	for (uint32_t d = 0; d < ds->grid.rank; d++)
		if (ds->grid.chunk[d] != max_u64(ds->space.dims[d], 1))
			return false;
	return true;
}

/* Returns whether the layout that is written has dimensions. */
static bool is_in_chunks(const struct dataset *ds)
{
	return ds->space.cls == DSPACE_SIMPLE &&
	       (ds->requested == LAYOUT_CHUNKED || !is_one_chunk(ds));
}

/* ---- references to an HDF5 file ---- */

static void put_ranges(struct writer *w, const struct reference *r, const struct grid *g)
{
	write_member_open(w, "chunks", '{');
	for (uint64_t i = 0; i < r->nchunks; i++) {
		const struct reference_chunk *c = &r->chunks[i];
		uint64_t coords[DSPACE_MAX_RANK];
		char text[DSPACE_MAX_RANK * 21 + 1];
		size_t n = 0;
		grid_coords(g, c->number, coords);
		for (uint32_t d = 0; d < g->rank; d++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" PRIu64,
					      d ? "_" : "", coords[d]);
		write_key_text(w, text, n);
		write_open(w, '[');
		write_uint(w, c->offset);
		write_uint(w, c->size);
		if (c->filter_mask)
			write_uint(w, c->filter_mask);
		write_close(w, ']');
	}
	write_close(w, '}');
}

/* Writes the version of the file, the path of the dataset in it, and `exact`. */
static void put_version(struct writer *w, const struct reference *r)
{
	const struct reference_file *f = &r->file;
	write_member_open(w, "hsmount", '{');
	if (f->etag)
		write_member_word(w, "etag", f->etag);
	if (f->size != UINT64_MAX)
		write_member_uint(w, "size", f->size);
	if (f->h5path)
		write_member_word(w, "h5path", f->h5path);
	if (r->exact) {
		write_key(w, "exact");
		write_bool(w, true);
	}
	write_close(w, '}');
}

static int put_reference(struct schema_emit *e, const struct dataset *ds)
{
	static const char *const classes[] = {
		[REFERENCE_CONTIGUOUS] = "H5D_CONTIGUOUS_REF",
		[REFERENCE_CHUNKED] = "H5D_CHUNKED_REF",
		[REFERENCE_TABLE] = "H5D_CHUNKED_REF_INDIRECT",
	};
	const struct reference *r = ds->reference;
	struct writer *w = &e->w;
	const struct object *table = NULL;
	if (r->layout == REFERENCE_TABLE) {
		table = r->table < tree_numbers(e->tree) ? &tree_object(e->tree, r->table)->o
							 : NULL;
		if (!table || !table->id)
			return err_set(e->err, -EINVAL, "the chunk table has no id");
	}
	write_member_open(w, "layout", '{');
	write_member_word(w, "class", classes[r->layout]);
	write_member_word(w, "file_uri", r->file.uri);
	if (r->layout == REFERENCE_CONTIGUOUS) {
		write_member_uint(w, "offset", r->offset);
		write_member_uint(w, "size", r->size);
	}
	if (r->layout != REFERENCE_CONTIGUOUS)
		write_member_list(w, "dims", ds->grid.rank, ds->grid.chunk);
	if (r->layout == REFERENCE_CHUNKED)
		put_ranges(w, r, &ds->grid);
	if (table)
		write_member_word(w, "chunk_table", table->id);
	put_version(w, r);
	write_close(w, '}');
	return 0;
}

/* ---- filters ---- */

static void put_served(struct writer *w, const struct filter *f)
{
	write_open(w, '{');
	if (f->id == FILTER_DEFLATE) {
		write_member_word(w, "class", "H5Z_FILTER_DEFLATE");
		write_member_uint(w, "id", f->id);
		write_member_uint(w, "level", f->params[0]);
		write_member_word(w, "name", "gzip");
	} else {
		write_member_word(w, "class", "H5Z_FILTER_SHUFFLE");
		write_member_uint(w, "id", f->id);
		write_member_word(w, "name", "shuffle");
		if (f->nparams)
			write_member_list(w, "parameters", f->nparams, f->params);
	}
	write_close(w, '}');
}

/* ---- creation properties ---- */

static void put_argument(struct writer *w, const char *name, const char *value, size_t n)
{
	auto_bytes struct bytes text = {0};
	if (bytes_append(&text, name, strlen(name)) || bytes_append(&text, value, n))
		w->bad = true;
	else
		write_text(w, (const char *)text.data, text.len);
}

/* Writes the initializer of a chunk table whose records are in the chunk index of the file. The URI
 * is "bucket/key". */
static void put_locator(struct writer *w, const struct reference_file *f)
{
	const char *slash = strchr(f->uri, '/');
	const size_t bucket = slash ? (size_t)(slash - f->uri) : 0;
	const char *key = slash ? slash + 1 : f->uri;
	write_member_open(w, "initializer", '[');
	write_word(w, "chunklocator");
	put_argument(w, "--h5path=", f->h5path, strlen(f->h5path));
	put_argument(w, "--filepath=", key, strlen(key));
	put_argument(w, "--bucket=", f->uri, bucket);
	write_close(w, ']');
}

static void put_initializer(struct writer *w, const struct dataset *ds)
{
	char start[40], step[40];
	if (ds->initializer == INITIALIZER_CHUNK_LOCATOR)
		put_locator(w, ds->indexed);
	if (ds->initializer != INITIALIZER_ARANGE)
		return;
	snprintf(start, sizeof(start), "--start=%.17g", ds->arange_start);
	snprintf(step, sizeof(step), "--step=%.17g", ds->arange_step);
	write_member_open(w, "initializer", '[');
	write_word(w, "arange");
	write_word(w, start);
	write_word(w, step);
	write_close(w, ']');
}

/* Writes the member "hsmount", which has what the service does not know. */
static void put_hsmount(struct writer *w, const struct dataset *ds, bool filters, bool fill,
			const struct schema_beside *value)
{
	const bool compact = ds->requested == LAYOUT_COMPACT;
	const bool contiguous =
		ds->requested == LAYOUT_CONTIGUOUS && !ds->reference && is_in_chunks(ds);
	const bool chunk = ds->requested_chunk && ds->requested == LAYOUT_CHUNKED &&
			   ds->space.cls == DSPACE_SIMPLE;
	if (!filters && !fill && !compact && !contiguous && !chunk && value->unset.n == 0 &&
	    value->exact.len == 0)
		return;
	write_member_open(w, "hsmount", '{');
	if (compact || contiguous)
		write_member_word(w, "layout", compact ? "H5D_COMPACT" : "H5D_CONTIGUOUS");
	if (chunk)
		write_member_list(w, "chunk", ds->grid.rank, ds->requested_chunk);
	if (fill) {
		write_key(w, "fillValue");
		write_null(w);
	}
	schema_emit_beside(w, "fillValue", value);
	if (filters) {
		write_member_open(w, "filters", '[');
		for (uint32_t i = 0; i < ds->nfilters; i++) {
			const struct filter *f = &ds->filters[i];
			write_open(w, '{');
			write_member_uint(w, "id", f->id);
			if (f->name)
				write_member_word(w, "name", f->name);
			write_member_list(w, "parameters", f->nparams, f->params);
			write_close(w, '}');
		}
		write_close(w, ']');
	}
	write_close(w, '}');
}

static int put_properties(struct schema_emit *e, const struct object *o, const struct stand_in *c)
{
	const struct dataset *ds = &o->dataset;
	struct writer *w = &e->w;
	struct pipeline served;
	auto_beside struct schema_beside value = {0};
	bool written = true;
	dataset_pipeline(ds, &served);
	if (ds->reference) {
		/* Of the filters of a file, those remain that the service can undo. */
		uint32_t n = 0;
		for (uint32_t i = 0; i < served.n; i++)
			if (served.f[i].id == FILTER_SHUFFLE ||
			    (served.f[i].id == FILTER_DEFLATE && served.f[i].nparams > 0))
				served.f[n++] = served.f[i];
		served.n = n;
	} else {
		pipeline_of_object(&served, &served);
	}
	write_member_open(w, "creationProperties", '{');
	if (ds->reference) {
		int rc = put_reference(e, ds);
		if (rc)
			return rc;
	} else {
		const bool in_chunks = is_in_chunks(ds);
		put_layout(w, in_chunks ? "H5D_CHUNKED" : "H5D_CONTIGUOUS",
			   in_chunks ? &ds->grid : NULL);
	}
	if (ds->alloc_time >= ALLOC_TIME_EARLY && ds->alloc_time <= ALLOC_TIME_INCR)
		write_member_word(w, "allocTime", schema_alloc_times[ds->alloc_time]);
	if (ds->fill_time <= FILL_TIME_IFSET)
		write_member_word(w, "fillTime", schema_fill_times[ds->fill_time]);
	if (ds->fill_defined) {
		int rc = schema_emit_fill(e, c, ds, &written, &value);
		if (rc)
			return err_wrap(e->err, rc, "fill value");
	}
	if (served.n > 0) {
		write_member_open(w, "filters", '[');
		for (uint32_t i = 0; i < served.n; i++)
			put_served(w, &served.f[i]);
		write_close(w, ']');
	}
	if (o->attrs_ordered) {
		write_member_word(w, "attributeCreationOrder", "H5P_CRT_ORDER_INDEXED");
		write_member_uint(w, "CreateOrder", 1);
	}
	put_initializer(w, ds);
	/* The reader may get the recorded filters from the list of the service. Their names are not
	 * compared, because every libhdf5 knows these filters. */
	const bool is_same = filters_equal(served.f, served.n, ds->filters, ds->nfilters);
	put_hsmount(w, ds, ds->reference ? ds->nfilters > 0 : !is_same, !written, &value);
	write_close(w, '}');
	return 0;
}

int schema_emit_dataset(struct schema_emit *e, const struct object *o)
{
	const struct dataset *ds = &o->dataset;
	struct stand_in stand_in;
	int rc = schema_emit_type(e, ds->type, ds->committed, &stand_in);
	if (rc)
		return rc;
	schema_emit_space(e, &ds->space);
	rc = put_properties(e, o, &stand_in);
	if (!rc && ds->space.cls != DSPACE_NULL)
		put_layout(&e->w, "H5D_CHUNKED", &ds->grid);
	return rc;
}
