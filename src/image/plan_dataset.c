/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a dataset is stored in the image. One slot holds one stored chunk, so the dataset has the
 * chunk dimensions of the domain. The layout is contiguous only if the chunks in sequence are
 * exactly the elements in row-major order.
 */
#include "image_plan.h"

#include <errno.h>

#include <codec/chunk.h>

enum { DEFLATE_LEVEL = 6 /* zlib's default, if the domain records no level */ };

static bool must_be_contiguous(const struct dataset *ds)
{
	return ds->space.cls != DSPACE_SIMPLE ||
	       (ds->space.nelems == 0 && !dspace_extendible(&ds->space));
}

/* Returns true if the dataset is too large to have slots for all chunks. If so, only stored chunks
 * have slots. */
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
	       pipeline->n > 0 || !grid_is_linear(&ds->grid) || is_vast(ds);
}

/* Returns the bytes of a window for `objects` heap objects with `bytes` bytes in total. If they do
 * not fit in a file, the result is more than IMAGE_FILE_MAX. */
static uint64_t window_bytes(uint64_t objects, uint64_t bytes)
{
	const uint64_t bound = h5_gheap_bound(objects, bytes, H5_GHEAP_TARGET_DATA);
	return align_u64(min_u64(bound, 2 * IMAGE_FILE_MAX), 8);
}

/* Returns an upper limit of the bytes of the window of a variable-length chunk. Its `decoded` bytes
 * are a length of 4 bytes for each slot, and the items. If types are nested, items contain slots,
 * which are up to four times as large as the lengths from which they are made. An empty string has
 * a heap object; other empty values have none. */
static uint64_t window_size(const struct image_dataset *d, uint64_t decoded)
{
	const struct dtype *t = d->ds->type;
	uint64_t lengths, items, objects;
	if (decoded == UINT64_MAX)
		return 0;
	if (!mul_u64(t->nvlens, d->ds->grid.chunk_elems, &objects) ||
	    !mul_u64(objects, 4, &lengths) || lengths > decoded)
		return 0; /* damaged; decoding will fail */
	items = decoded - lengths;
	if (t->depth > 2) {
		objects += items / 4;
		items *= 4;
	}
	if (!t->has_vstring)
		objects = min_u64(objects, items);
	return window_bytes(objects, items);
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

/* The window of a chunk of fill values. Each element has heap objects of its own, because a writer
 * that replaces an element frees those of the old one. There is no window if the fill value has no
 * items, or if the items of a chunk would take more than CHUNK_BYTES_MAX. In the second case, the
 * elements share the heap objects of the fill value message. */
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
		d->fill_window = window_bytes(all.n, all.bytes);
	return rc;
}

/* Windows are computed for stored chunks, not for slots, of which there may be many more. */
static int plan_windows(struct image_dataset *d, struct err *err)
{
	const uint64_t n = d->known->n;
	uint64_t at = 0;
	d->windows = calloc(n + 1, sizeof(*d->windows));
	if (!d->windows)
		return err_set(err, -ENOMEM, "out of memory: %llu heap windows",
			       (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++) {
		d->windows[i] = at;
		at += window_size(d, d->known->decoded[i]);
		if (at > IMAGE_FILE_MAX)
			return err_set(err, -EFBIG, "the heaps are too large for a file");
	}
	d->windows[n] = at;
	return 0;
}

uint64_t dataset_window(const struct image_dataset *d, uint64_t slot)
{
	const uint64_t before = d->listed ? slot : chunk_list_from(d->known, slot);
	return d->windows[before] + (slot - before) * d->fill_window;
}

uint64_t dataset_heap_bytes(const struct image_dataset *d)
{
	return d->windows ? dataset_window(d, d->nslots) : 0;
}

/* Returns true if chunks that are not stored have slots, too. They need slots if the header cannot
 * hold the fill value. They also need slots if the fill value has items and any chunk is stored:
 * libhdf5 cannot read a missing chunk with such a fill value from a read-only file, unless the
 * dataset has no chunks at all. They have no slots if the file would be too large. */
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
		d->fill_window = 0; /* only stored chunks have slots */
	if (!mul_u64(d->nslots, d->stride, &d->raw_bytes) || d->raw_bytes > IMAGE_FILE_MAX ||
	    h5_bt1_size(d->ds->grid.rank, d->nslots) > IMAGE_FILE_MAX)
		return err_set(err, -EFBIG, "the dataset is too large for a file");
	return 0;
}

/* All chunks have slots, stored or not. If no chunk is stored and the fill value requires no slots,
 * the dataset has no raw data. */
static void plan_contiguous(struct image_dataset *d)
{
	const struct dataset *ds = d->ds;
	d->slot_bytes = d->stride = d->chunk_bytes;
	d->raw_bytes = ds->space.nelems * ds->type->size; /* see is_vast() */
	if (d->known->listed && d->known->n == 0 && !fills_slots(d))
		d->raw_bytes = 0;
	d->nslots = d->raw_bytes ? ds->grid.nchunks : 0;
	if (!fills_slots(d))
		d->fill_window = 0;
}

/* The filters of the header, with the client data that libhdf5 computes for this dataset. A
 * checksum of variable-length elements is left out, because libhdf5 (and so h5repack) refuses to
 * create such a dataset. */
static void shown_filters(const struct image_dataset *d, struct pipeline *out)
{
	static const uint32_t level = DEFLATE_LEVEL;
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
			f->params = &d->ds->type->size;
		} else if (f->id == FILTER_DEFLATE && f->nparams != 1) {
			f->nparams = 1;
			f->params = &level;
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
	d->deflated = d->filtered && codec_slot_is_deflated(&filters);
	d->accepts_shuffled =
		dtype_is_plain(ds->type) && (!d->filtered || filters.f[0].id == FILTER_SHUFFLE);
	if (ds->space.nelems == 0)
		return 0;
	/* no overflow: less than 2^32 elements of at most 2^30 bytes */
	d->chunk_bytes = ds->grid.chunk_elems * ds->type->size;
	d->fill_hidden = ds->fill_defined && ds->type->size > IMAGE_FILL_MAX;
	int rc = plan_fill_window(d, err);
	if (!rc && d->chunked)
		rc = plan_chunked(d, err);
	else if (!rc)
		plan_contiguous(d);
	if (!rc && ds->type->has_vlen && !d->unknown)
		rc = plan_windows(d, err);
	return rc;
}

uint64_t dataset_chunk(const struct image_dataset *d, uint64_t slot)
{
	return d->listed ? d->known->numbers[slot] : slot;
}

bool dataset_slot(const struct image_dataset *d, uint64_t chunk, uint64_t *slot)
{
	*slot = d->listed ? chunk_list_find(d->known, chunk) : chunk;
	return *slot < d->nslots;
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

/* Gets the last key as libhdf5 writes it: one chunk after the last chunk in every dimension. */
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
