/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a slot: the source delivers the chunk, its values are converted to file form, and the
 * filters of the dataset encode it, as far as that is not left to the read. Conversion and encoding
 * run in the thread that calls loaded(), usually a worker of the environment.
 */
#include "image_plan.h"

#include <errno.h>

#include <codec/chunk.h>

/* The source joins chunks that are in an HDF5 file or a shard. Requests of this many decoded bytes
 * take longer to transfer than to begin, and several of them are decoded in parallel. */
enum {
	JOINED_BYTES = 1 << 20,
	FILE_JOINED_MAX = 256, /* chunks of an HDF5 file; those of a shard: CACHE_JOINED_MAX */
	/* Besides its chunk, a load takes a request and the text of an error in several layers.
	 * Thousands of small chunks may be loaded at a time. */
	REQUEST_BYTES = 8 << 10,
};

struct load {
	struct image_dataset *d;
	uint64_t slot;
	struct cache_fill *fill;
};

/* Makes the slot of elements in file form, in place. */
static int make_slot(const struct image_dataset *d, struct chunk_data *chunk, struct err *err)
{
	struct bytes *bytes = &chunk->elems.fixed;
	struct pipeline filters;
	dataset_filters(d, &filters);
	if (d->filtered && codec_stored_size(&filters, bytes->len) != d->slot_bytes)
		return err_set(err, -EINVAL, "%zu bytes are not encoded to %llu bytes", bytes->len,
			       (unsigned long long)d->slot_bytes);
	const int rc = codec_slot_make(&filters, d->ds->type->size, chunk, err);
	if (!rc)
		bytes_trim(bytes); /* a decoder may have reserved more */
	return rc;
}

/* Makes the slot of a chunk that is not stored. Only a filtered one takes memory. */
static int fill_slot(const struct image_dataset *d, struct chunk_data *out, struct err *err)
{
	const struct chunk_data run = chunk_data_run(d->fill, d->ds->type->size);
	struct bytes *bytes = &out->elems.fixed;
	if (!d->filtered) {
		*out = run;
		return 0;
	}
	int rc = bytes_reserve(bytes, d->chunk_bytes);
	if (rc)
		return err_set(err, rc, "out of memory: a chunk of %llu bytes",
			       (unsigned long long)d->chunk_bytes);
	bytes->len = d->chunk_bytes;
	chunk_data_read(&run, 0, bytes->data, bytes->len);
	return make_slot(d, out, err);
}

/* Makes a chunk of fill values. Each element has heap objects of its own. */
static int relocate_fill(const struct image_dataset *d, struct bytes *fixed,
			 struct h5_gheap_writer *writer, struct err *err)
{
	const struct dataset *ds = d->ds;
	int rc = 0;
	for (uint64_t i = 0; !rc && i < ds->grid.chunk_elems; i++) {
		auto_bytes struct bytes one = {0};
		rc = relocate_copy(d->image, ds->type, 1, &ds->fill, writer, &one, err);
		if (!rc && bytes_append(fixed, one.data, one.len))
			rc = err_set(err, -ENOMEM, "out of memory: a chunk");
	}
	return rc;
}

/* Converts a chunk to file form. If absent is true, elems is empty and receives fill values. The
 * heap is then that of the file. */
static int relocate_chunk(const struct load *l, bool absent, struct elems *elems, struct err *err)
{
	const struct image_dataset *d = l->d;
	const struct dtype *t = d->ds->type;
	uint64_t base = 0, window = 0;
	struct h5_gheap_writer writer;
	if (dtype_is_plain(t))
		return 0;
	if (d->windows) {
		uint64_t start = dataset_window(d, l->slot);
		base = d->heap_addr + start;
		window = dataset_window(d, l->slot + 1) - start;
	}
	h5_gheap_init(&writer, base, H5_GHEAP_TARGET_DATA);
	int rc = absent ? relocate_fill(d, &elems->fixed, &writer, err)
			: relocate_elems(d->image, t, d->ds->grid.chunk_elems, elems, &writer, err);
	if (!rc)
		rc = h5_gheap_finish(&writer, err);
	if (!rc && writer.out.len > window)
		rc = err_set(err, -EIO,
			     "the chunk has grown since the file was opened: its values take %zu "
			     "bytes, there is room for %llu",
			     writer.out.len, (unsigned long long)window);
	if (rc) {
		h5_gheap_release(&writer);
		return rc;
	}
	bytes_release(&elems->heap);
	elems->heap = writer.out;
	return 0;
}

static void loaded(void *arg, struct chunk_result *chunk)
{
	struct load *l = arg;
	struct chunk_data *data = &chunk->data;
	int rc = chunk->code;
	atomic_fetch_add_explicit(&l->d->image->fetched, chunk->fetched, memory_order_relaxed);
	if (!rc && chunk->absent && l->d->fill_window == 0) {
		rc = fill_slot(l->d, data, &chunk->err);
	} else if (!rc) {
		rc = relocate_chunk(l, chunk->absent, &data->elems, &chunk->err);
		if (!rc)
			rc = make_slot(l->d, data, &chunk->err);
		if (rc)
			err_wrap(&chunk->err, rc, "object %s",
				 tree_object(l->d->image->tree, l->d->number)->o.id);
	}
	cache_complete(l->fill, rc, data, &chunk->err);
	free(l);
}

static void load(void *ctx, uint32_t dataset, uint64_t slot, struct cache_fill *fill)
{
	struct image *img = ctx;
	struct image_dataset *d = &img->datasets[dataset];
	struct load *l = malloc(sizeof(*l));
	if (!l) {
		struct err err = ERR_INIT;
		err_set(&err, -ENOMEM, "out of memory: a request");
		cache_complete(fill, -ENOMEM, NULL, &err);
		return;
	}
	*l = (struct load){.d = d, .slot = slot, .fill = fill};
	const struct chunk_request request = {
		.dataset = d->number,
		.number = dataset_chunk(d, slot),
		.accepts_shuffled = d->accepts_shuffled,
		.prefetch = cache_fill_ahead(fill),
		.cancelled = cache_fill_cancel(fill),
		.batch = cache_fill_batch(fill),
	};
	img->chunks.get(img->chunks.ctx, &request, loaded, l);
}

void dataset_costs(struct image_dataset *d)
{
	const bool as_stored = d->ds->nfilters == 0 && !d->filtered && dtype_is_plain(d->ds->type);
	const uint64_t heaps = dataset_heap_bytes(d);
	d->cost = d->slot_bytes + (d->nslots ? heaps / d->nslots : 0);
	/* A chunk whose stored bytes are those of the slot is not copied. Otherwise two forms of it
	 * are in memory at a time: stored and decoded, then decoded and encoded. */
	d->load_cost = as_stored ? d->cost : d->cost + d->chunk_bytes;
	d->joined = 1;
	if (dataset_is_in_ranges(d->ds) && d->chunk_bytes)
		d->joined = max_u64(min_u64(JOINED_BYTES / d->chunk_bytes,
					    d->ds->reference ? FILE_JOINED_MAX : CACHE_JOINED_MAX),
				    1);
	if (d->joined > 1)
		d->load_cost += REQUEST_BYTES;
}

static void describe(void *ctx, uint32_t dataset, struct cache_dataset *out)
{
	const struct image *img = ctx;
	const struct image_dataset *d = &img->datasets[dataset];
	*out = (struct cache_dataset){.cost = d->cost,
				      .load_cost = d->load_cost,
				      .joined = d->joined,
				      .read_ahead = atomic_load(&img->kernel_ahead),
				      .nslots = d->nslots,
				      .rank = d->ds->grid.rank,
				      .counts = d->ds->grid.count};
}

static uint64_t number_of(void *ctx, uint32_t dataset, uint64_t slot)
{
	const struct image *img = ctx;
	return dataset_chunk(&img->datasets[dataset], slot);
}

/* Returns false for a chunk that is known to be absent, even if it has a slot, so it is not
 * prefetched. */
static bool slot_of(void *ctx, uint32_t dataset, uint64_t number, uint64_t *slot)
{
	const struct image *img = ctx;
	const struct image_dataset *d = &img->datasets[dataset];
	const uint64_t place = d->known->listed ? chunk_list_find(d->known, number) : 0;
	*slot = d->listed ? place : number;
	return *slot < d->nslots && (!d->known->listed || place < d->known->n);
}

static void *begin(void *ctx)
{
	const struct image *img = ctx;
	return img->chunks.begin(img->chunks.ctx);
}

static void end(void *ctx, void *batch)
{
	const struct image *img = ctx;
	img->chunks.end(img->chunks.ctx, batch);
}

struct cache_source image_source(struct image *img)
{
	const bool joins = img->chunks.begin != NULL;
	return (struct cache_source){.load = load,
				     .begin = joins ? begin : NULL,
				     .end = joins ? end : NULL,
				     .describe = describe,
				     .number = number_of,
				     .slot = slot_of,
				     .ctx = img};
}
