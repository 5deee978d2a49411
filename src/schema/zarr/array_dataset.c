/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the dataset of an array: its dataspace, grid, fill value, filters, chain and locator. In
 * HDF5, a chunk must not be larger than the maximum of the dataspace. So the maximum is the larger
 * one of shape and chunk. Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

/* A chunk length of 0 is accepted only along a dimension of length 0. It becomes 1. */
int zarr_array_chunk(struct zarr_build *b, struct zarr_array *a, struct err *err)
{
	uint64_t *chunk = arena_array(b->scratch, a->rank + 1, sizeof(*chunk));
	if (!chunk)
		return err_errno(err, -ENOMEM, "chunks");
	for (uint32_t i = 0; i < a->rank; i++) {
		chunk[i] = a->chunk[i];
		if (chunk[i] == 0 && a->shape[i] != 0)
			return err_set(err, -EIO, "the chunk length of dimension %u is 0", i);
		chunk[i] = max_u64(chunk[i], 1);
	}
	a->chunk = chunk;
	return 0;
}

/* Converts the error of a constructor of data/. Unless memory is short, the shape is beyond the
 * limits of HDF5 or of this program. */
static int over_limit(struct err *err, int rc)
{
	if (rc == -ENOMEM)
		return rc;
	if (err)
		err->code = -EOPNOTSUPP;
	return -EOPNOTSUPP;
}

static int make_space(struct zarr_build *b, const struct zarr_array *a, struct dataset *ds,
		      struct err *err)
{
	static const uint64_t one[1] = {1};
	uint64_t max[DSPACE_MAX_RANK];
	int rc;
	if (a->rank == 0) {
		dspace_scalar(&ds->space);
		rc = grid_init(b->arena, &ds->grid, 1, one, one, err);
		return rc ? over_limit(err, rc) : 0;
	}
	for (uint32_t i = 0; i < a->rank; i++)
		max[i] = max_u64(a->shape[i], a->chunk[i]);
	rc = zarr_space(b, &ds->space, a->rank, a->shape, max, err);
	if (!rc)
		rc = grid_init(b->arena, &ds->grid, a->rank, a->shape, a->chunk, err);
	return rc ? over_limit(err, rc) : 0;
}

/* Sets the fill value. One that does not fit is left out with a note. */
static int make_fill(struct zarr_build *b, const struct zarr_array *a, const char *path,
		     struct dataset *ds, struct err *err)
{
	uint8_t fill[ZARR_FILL_BYTES];
	struct err why = ERR_INIT;
	const int rc = zarr_fill(b, a->fill, &a->element, a->is_v3, fill, &ds->fill_defined, &why);
	if (rc == -EIO)
		tree_note(b->tree, TREE_DAMAGE, "%s: fill_value %s", path, why.msg);
	else if (rc)
		return err_set(err, rc, "%s", why.msg);
	if (!ds->fill_defined)
		return 0;
	ds->fill.fixed.data = (uint8_t *)(uintptr_t)zarr_share(b, fill, ds->type->size);
	ds->fill.fixed.len = ds->type->size;
	ds->fill.is_borrowed = true;
	return ds->fill.fixed.data ? 0 : err_errno(err, -ENOMEM, "fill_value");
}

static int make_filters(struct zarr_build *b, const struct zarr_array *a, struct dataset *ds,
			struct err *err)
{
	const uint32_t n = a->codecs.nfilters;
	if (n == 0 || a->rank == 0)
		return 0;
	struct filter *filters = arena_array(b->arena, n, sizeof(*filters));
	if (!filters)
		return err_errno(err, -ENOMEM, "filters");
	memcpy(filters, a->codecs.filters, n * sizeof(*filters));
	ds->filters = filters;
	ds->nfilters = n;
	return 0;
}

static int make_chain(struct zarr_build *b, const struct zarr_array *a, struct dataset *ds,
		      struct err *err)
{
	struct codec_plan plan;
	if (codec_plan_array(&plan, ds->type, a->element.size, ds->grid.chunk_elems,
			     a->codecs.steps, a->codecs.n))
		return err_set(err, -EIO, "its codecs do not fit its chunks");
	ds->chain = zarr_chain(b, &plan.chain);
	return ds->chain ? 0 : err_errno(err, -ENOMEM, "codecs");
}

static int make_locator(struct zarr_build *b, const struct zarr_array *a, const char *path,
			struct dataset *ds, struct err *err)
{
	struct zarr_locator *l = arena_alloc(b->arena, sizeof(*l));
	if (!l)
		return err_errno(err, -ENOMEM, "locator");
	*l = (struct zarr_locator){
		.path = path,
		.store = b->store,
		.is_default = a->is_default,
		.separator = a->separator,
		.is_guessed = a->is_guessed,
		.rank = a->rank,
		.elem_size = a->element.size,
		.codecs = a->codecs.text,
	};
	if (a->stored_chunk) {
		uint64_t *chunk = arena_array(b->arena, a->rank, sizeof(*chunk));
		if (!chunk)
			return err_errno(err, -ENOMEM, "locator");
		l->stored_chunk = memcpy(chunk, a->stored_chunk, a->rank * sizeof(*chunk));
	}
	if (l->is_guessed && b->f->separator) {
		const char shown = b->f->separator(b->f->separator_ctx, path);
		if (shown) {
			l->separator = shown;
			l->is_guessed = false;
		}
	}
	ds->locator = l;
	return 0;
}

int zarr_dataset(struct zarr_build *b, struct zarr_array *a, const char *path, struct object *o,
		 struct err *err)
{
	const struct zarr_element shown = zarr_element_shown(&a->element);
	struct dataset *ds = &o->dataset;
	o->kind = OBJECT_DATASET;
	ds->type = zarr_element_type(b, &shown, &ds->committed, err);
	if (!ds->type)
		return err ? err->code : -ENOMEM;
	ds->requested = a->rank ? LAYOUT_CHUNKED : LAYOUT_CONTIGUOUS;
	ds->alloc_time = a->rank ? ALLOC_TIME_INCR : ALLOC_TIME_LATE;
	ds->fill_time = FILL_TIME_IFSET;
	ds->keep_apart = true;
	int rc = zarr_chunk_fit(b, a, err);
	if (!rc)
		rc = make_space(b, a, ds, err);
	if (!rc)
		rc = make_fill(b, a, path, ds, err);
	if (!rc)
		rc = make_filters(b, a, ds, err);
	if (!rc)
		rc = make_chain(b, a, ds, err);
	if (!rc)
		rc = zarr_shards(b, a, ds, err);
	return rc ? rc : make_locator(b, a, path, ds, err);
}
