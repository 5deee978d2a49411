/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a dataset is stored in the image. One slot holds one chunk of the bucket, so the geometry is
 * the stored chunks' own; contiguous layout is used only where the chunks, laid end to end, are
 * exactly the elements in row-major order.
 */
#include "plan.h"

#include <errno.h>

#include <codec/chunk.h>

enum { DEFLATE_LEVEL = 6 /* where none is recorded: zlib's default */ };

/* Chunks laid end to end are the dataset itself: one dimension is cut, those before it have chunks
 * of 1, those behind are whole; a partial last chunk only where nothing follows it. */
static bool is_linear(const struct grid *g)
{
	uint32_t cut = 0;
	uint64_t before = 1;

	while (cut < g->rank && g->chunk[cut] == 1)
		before *= g->count[cut++];
	if (cut == g->rank)
		return true;
	for (uint32_t d = cut + 1; d < g->rank; d++)
		if (g->chunk[d] != g->dims[d])
			return false;
	return before == 1 || g->dims[cut] % g->chunk[cut] == 0;
}

static bool must_be_contiguous(const struct dataset *ds)
{
	return ds->space.cls != DSPACE_SIMPLE ||
	       (ds->space.nelems == 0 && !dspace_extendible(&ds->space));
}

/* Too large for a place in the file for every element; what is stored of it may have one. */
static bool is_vast(const struct dataset *ds)
{
	uint64_t bytes;

	return !mul_u64(ds->space.nelems, ds->type->size, &bytes) || bytes > DATASET_DENSE_MAX;
}

static bool is_chunked(const struct dataset *ds, const struct pipeline *pipeline)
{
	if (must_be_contiguous(ds))
		return false;
	return dspace_extendible(&ds->space) || ds->requested == LAYOUT_CHUNKED ||
	       pipeline->n > 0 || !is_linear(&ds->grid) || is_vast(ds);
}

/* Room for the heap of one variable-length chunk of `decoded` bytes: 4 bytes of length for each
 * item, and the items. Items of nested types become slots that are up to four times as large. Only
 * strings have an object when they are empty. */
static uint64_t window_size(const struct image_dataset *d, uint64_t decoded)
{
	const struct dtype *t = d->ds->type;
	uint64_t lengths, items, objects;

	if (decoded == UINT64_MAX)
		return 0;
	if (!mul_u64(t->vlen_slots, d->ds->grid.chunk_elems, &objects) ||
	    !mul_u64(objects, 4, &lengths) || lengths > decoded)
		return 0; /* too short: it cannot be decoded, reading fails */
	items = decoded - lengths;
	if (t->depth > 2) {
		objects += items / 4;
		items *= 4;
	}
	if (!t->has_vstring)
		objects = min_u64(objects, items);
	return align_u64(h5_gheap_bound(objects, items, H5_GHEAP_TARGET_DATA), 8);
}

struct heap_objects {
	uint64_t n, bytes;
};

static int count_object(void *ctx, const struct dtype *t, uint8_t *slot, uint8_t *items,
			size_t items_len, struct err *err)
{
	struct heap_objects *objects = ctx;

	objects->n += elems_vlen_has_object(t, slot);
	objects->bytes += items_len;
	return 0;
}

/* The same for a chunk of fill values. Each element gets items of its own: a writer that replaces
 * an element frees what the old one referred to. 0: no items, or more than a chunk should have (its
 * elements then share those of the header's fill value). */
static int plan_fill_window(struct image_dataset *d, struct err *err)
{
	const struct dataset *ds = d->ds;
	struct heap_objects one = {0}, all;
	const struct elems_visitor visitor = {.vlen = count_object, .ctx = &one};

	if (!ds->type->has_vlen || ds->fill.fixed.len == 0)
		return 0; /* no items */
	int rc = elems_visit(ds->type, ds->fill.fixed.data, 1, ds->fill.heap.data,
			     ds->fill.heap.len, &visitor, err);

	if (!rc && mul_u64(one.n, ds->grid.chunk_elems, &all.n) &&
	    mul_u64(one.bytes, ds->grid.chunk_elems, &all.bytes) && all.bytes <= CHUNK_BYTES_MAX)
		d->fill_window =
			align_u64(h5_gheap_bound(all.n, all.bytes, H5_GHEAP_TARGET_DATA), 8);
	return rc;
}

/* Windows follow from the chunks that are known, not from the slots, which may be many more. */
static int plan_windows(struct image_dataset *d, struct err *err)
{
	const uint64_t n = d->nslots ? d->known->n : 0;
	uint64_t at = 0;

	d->windows = calloc(n + 1, sizeof(*d->windows));
	if (!d->windows)
		return err_set(err, -ENOMEM, "out of memory: %llu heap windows",
			       (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++) {
		d->windows[i] = at;
		if (!add_u64(at, window_size(d, d->known->decoded[i]), &at) || at > IMAGE_FILE_MAX)
			return err_set(err, -EFBIG, "the heaps are too large for a file");
	}
	d->windows[n] = at;
	return 0;
}

/* Known chunks before the one in the slot. */
static uint64_t known_before(const struct image_dataset *d, uint64_t slot)
{
	uint64_t low = 0, high = d->nslots ? d->known->n : 0;

	if (d->listed)
		return slot;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (d->known->numbers[middle] < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t dataset_window(const struct image_dataset *d, uint64_t slot)
{
	uint64_t before = known_before(d, slot);

	return d->windows[before] + (slot - before) * d->fill_window;
}

uint64_t dataset_heap_bytes(const struct image_dataset *d)
{
	return d->windows ? dataset_window(d, d->nslots) : 0;
}

/* Whether chunks that are not stored must have slots. libhdf5 cannot read a missing chunk whose
 * fill value has items from a file that it must not write to; it can where there is no chunk at
 * all. And a fill value that no header holds is to be read from slots. Not when the file would be
 * too large. */
static bool fills_slots(const struct image_dataset *d)
{
	uint64_t each, all;

	return (d->fill_hidden || (d->fill_window > 0 && d->known->n > 0)) &&
	       add_u64(d->fill_window, d->stride, &each) &&
	       mul_u64(each, d->ds->grid.nchunks, &all) && all <= DATASET_DENSE_MAX;
}

static int plan_chunked(struct image_dataset *d, struct err *err)
{
	struct pipeline filters;

	dataset_filters(d, &filters);
	d->slot_bytes = codec_stored_size(&filters, d->chunk_bytes);
	if (d->slot_bytes > UINT32_MAX)
		return err_set(err, -EFBIG, "a chunk of %llu bytes is too large for HDF5",
			       (unsigned long long)d->slot_bytes);
	d->stride = align_u64(d->slot_bytes, d->slot_bytes >= IMAGE_PAGED_SLOT ? IMAGE_PAGE : 8);
	d->listed = d->known->listed && !fills_slots(d);
	d->nslots = d->listed ? d->known->n : d->ds->grid.nchunks;
	if (d->listed)
		d->fill_window = 0; /* no slot without a chunk */
	if (!mul_u64(d->nslots, d->stride, &d->raw_bytes) || d->raw_bytes > IMAGE_FILE_MAX ||
	    h5_bt1_size(d->ds->grid.rank, d->nslots) > IMAGE_FILE_MAX)
		return err_set(err, -EFBIG, "the dataset is too large for a file");
	return 0;
}

/* Every chunk has its place, present or not; where none is stored there is nothing at all. */
static int plan_contiguous(struct image_dataset *d, struct err *err)
{
	const struct dataset *ds = d->ds;

	d->slot_bytes = d->stride = d->chunk_bytes;
	if (!mul_u64(ds->space.nelems, ds->type->size, &d->raw_bytes) ||
	    d->raw_bytes > IMAGE_FILE_MAX)
		return err_set(err, -EFBIG, "the dataset is too large for a file");
	if (d->known->listed && d->known->n == 0 && !fills_slots(d))
		d->raw_bytes = 0;
	d->nslots = d->raw_bytes ? ds->grid.nchunks : 0;
	d->listed = false;
	if (!fills_slots(d))
		d->fill_window = 0;
	return 0;
}

/* Filters as the header names them: client data as libhdf5 completes it for this dataset, and none
 * that it would refuse to create the dataset with (h5repack does): checksums of variable-length
 * elements. */
static void shown_filters(const struct image_dataset *d, struct pipeline *out)
{
	struct pipeline recorded, stored;

	out->n = 0;
	if (d->image->flags & IMAGE_NO_FILTERS || d->ds->nfilters == 0)
		return;
	dataset_pipeline(d->ds, &recorded);
	codec_stored_pipeline(&recorded, &stored);
	for (uint32_t i = 0; i < stored.n; i++) {
		struct filter *f = &stored.f[i];

		if (f->id == FILTER_FLETCHER32 && d->ds->type->cls == DTYPE_VLEN)
			continue;
		if (f->id == FILTER_SHUFFLE) {
			f->nparams = 1;
			f->params[0] = d->ds->type->size;
		} else if (f->id == FILTER_DEFLATE && f->nparams != 1) {
			f->nparams = 1;
			f->params[0] = DEFLATE_LEVEL;
		}
		out->f[out->n++] = *f;
	}
}

void dataset_filters(const struct image_dataset *d, struct pipeline *out)
{
	out->n = 0;
	if (d->filtered)
		shown_filters(d, out);
}

int dataset_plan(struct image_dataset *d, struct err *err)
{
	const struct dataset *ds = d->ds;

	d->index_addr = d->raw_addr = d->heap_addr = H5_UNDEF;
	d->unknown = d->known->unknown;
	struct pipeline filters;

	shown_filters(d, &filters);
	d->chunked = is_chunked(ds, &filters);
	d->filtered = d->chunked && filters.n > 0;
	if (ds->space.cls == DSPACE_NULL || ds->space.nelems == 0)
		return 0;
	/* bounded when the domain was opened */
	d->chunk_bytes = ds->grid.chunk_elems * ds->type->size;
	d->fill_hidden = ds->fill_defined && ds->type->size > IMAGE_FILL_MAX;
	int rc = plan_fill_window(d, err);
	if (!rc)
		rc = d->chunked ? plan_chunked(d, err) : plan_contiguous(d, err);
	if (!rc && ds->type->has_vlen && !d->unknown)
		rc = plan_windows(d, err);
	return rc;
}

uint64_t dataset_chunk(const struct image_dataset *d, uint64_t slot)
{
	return d->listed ? d->known->numbers[slot] : slot;
}

static void index_chunk(void *ctx, uint64_t i, struct h5_bt1_chunk *out)
{
	const struct image_dataset *d = ctx;
	const struct grid *g = &d->ds->grid;

	*out = (struct h5_bt1_chunk){.size = (uint32_t)d->slot_bytes,
				     .addr = d->raw_addr + i * d->stride};
	grid_coords(g, dataset_chunk(d, i), out->offset);
	for (uint32_t k = 0; k < g->rank; k++)
		out->offset[k] *= g->chunk[k];
}

/* As libhdf5 leaves it: one chunk past the last in every dimension. */
static void index_end(void *ctx, struct h5_bt1_chunk *out)
{
	const struct image_dataset *d = ctx;
	const struct grid *g = &d->ds->grid;

	index_chunk(ctx, d->nslots - 1, out);
	for (uint32_t k = 0; k < g->rank; k++)
		out->offset[k] += g->chunk[k];
	out->size = 0;
	out->addr = H5_UNDEF;
}

struct h5_bt1 dataset_index(const struct image_dataset *d)
{
	return (struct h5_bt1){
		.rank = d->ds->grid.rank,
		.elem_size = d->ds->type->size,
		.n = d->nslots,
		.addr = d->index_addr,
		.chunk = index_chunk,
		.end = index_end,
		.ctx = (void *)(uintptr_t)d,
	};
}
