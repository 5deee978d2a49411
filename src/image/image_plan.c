/* SPDX-License-Identifier: Apache-2.0 */
/* The three steps of image_plan.h: storage, addresses, bytes. */
#include "image_plan.h"

#include <errno.h>

#include <h5/superblock.h>

static int wrap_object(struct err *err, int rc, const struct image_object *o)
{
	return rc ? err_wrap(err, rc, "object %s", o->node->o.id) : 0;
}

/* Step 1. */
static int plan_objects(struct image *img, struct err *err)
{
	uint32_t numbers = tree_numbers(img->tree), ndatasets = 0;
	img->nobjects = tree_count(img->tree);
	img->objects = calloc(img->nobjects, sizeof(*img->objects));
	img->header_addr = calloc(numbers, sizeof(*img->header_addr));
	img->dataset_of = calloc(numbers, sizeof(*img->dataset_of));
	if (!img->objects || !img->header_addr || !img->dataset_of)
		return err_set(err, -ENOMEM, "out of memory: %u objects", img->nobjects);
	for (uint32_t i = 0; i < numbers; i++) {
		img->header_addr[i] = H5_UNDEF;
		img->dataset_of[i] = OBJECT_NONE;
	}
	for (uint32_t i = 0; i < img->nobjects; i++) {
		struct image_object *o = &img->objects[i];
		o->node = tree_object(img->tree, tree_nth(img->tree, i));
		o->dataset = OBJECT_NONE;
		if (o->node->o.kind == OBJECT_DATASET)
			o->dataset = ndatasets++;
		o->links_dense = o->node->o.kind == OBJECT_GROUP && links_are_dense(&o->node->o);
		o->attrs_dense = attrs_are_dense(&o->node->o);
	}
	img->ndatasets = ndatasets;
	img->datasets = calloc(ndatasets ? ndatasets : 1, sizeof(*img->datasets));
	return img->datasets ? 0 : err_set(err, -ENOMEM, "out of memory: %u datasets", ndatasets);
}

static int plan_storage(struct image *img, struct err *err)
{
	int rc = plan_objects(img, err);
	for (uint32_t i = 0; !rc && i < img->nobjects; i++) {
		struct image_object *o = &img->objects[i];
		if (o->dataset == OBJECT_NONE)
			continue;
		struct image_dataset *d = &img->datasets[o->dataset];
		d->image = img;
		d->number = tree_nth(img->tree, i);
		img->dataset_of[d->number] = o->dataset;
		d->ds = &o->node->o.dataset;
		d->known = img->chunks.list(img->chunks.ctx, d->number);
		rc = wrap_object(err, dataset_plan(d, err), o);
	}
	return rc;
}

/* Step 2. */
static int place_headers(struct image *img, uint64_t *at, struct err *err)
{
	for (uint32_t i = 0; i < img->nobjects; i++) {
		struct image_object *o = &img->objects[i];
		struct emit count = emit_count();
		int rc = header_encode(&count, img, o, err);
		if (rc)
			return wrap_object(err, rc, o);
		o->header_size = count.pos;
		img->header_addr[tree_nth(img->tree, i)] = *at;
		*at = align_u64(*at + o->header_size, 8);
	}
	return 0;
}

static int place_dense(struct image *img, uint64_t *at, struct err *err)
{
	for (uint32_t i = 0; i < img->nobjects; i++) {
		struct image_object *o = &img->objects[i];
		struct emit links = emit_count(), attrs = emit_count();
		int rc = 0;
		o->links_addr = *at;
		if (o->links_dense)
			rc = links_encode(&links, img, o, *at, err);
		*at = align_u64(*at + links.pos, 8);
		o->attrs_addr = *at;
		if (!rc && o->attrs_dense)
			rc = attrs_encode(&attrs, img, o, *at, err);
		*at = align_u64(*at + attrs.pos, 8);
		if (rc)
			return wrap_object(err, rc, o);
	}
	return 0;
}

static void add_extent(struct image *img, enum extent_kind kind, uint32_t dataset, uint64_t start,
		       uint64_t size)
{
	img->extents[img->nextents++] = (struct extent){.start = start,
							.end = start + size,
							.kind = kind,
							.dataset = dataset,
							.first_slot = img->nslots};
	if (extent_has_slots(kind)) {
		if (img->nslots == 0) {
			img->data_start = start;
			img->data_end = start + size;
		}
		img->nslots += img->datasets[dataset].nslots;
	}
	if (kind == EXTENT_RAW)
		img->allocated += dataset_stored_bytes(&img->datasets[dataset]);
	else if (kind == EXTENT_VALUE)
		img->allocated += value_stored_bytes(&img->values[dataset]);
	else if (kind != EXTENT_GAP)
		img->allocated += size;
}

/* Returns the first address from `at` on that begins a page of the file. */
static uint64_t align_page(const struct image *img, uint64_t at)
{
	return align_u64(img->base + at, IMAGE_PAGE) - img->base;
}

static int place_values(struct image *img, uint64_t *at, struct err *err)
{
	int rc = values_place(img, at, err);
	for (uint32_t i = 0; !rc && i < img->nvalues; i++)
		add_extent(img, EXTENT_VALUE, i, img->values[i].addr, img->values[i].size);
	return rc;
}

/* A dataset without chunks has an empty index, because jsfive and pyfive cannot read a dataset that
 * has no index. Variable-length data have none: libhdf5 reads their fill value from a read-only
 * file only if there is no index (see fills_slots() in plan_dataset.c), and jsfive fails if there
 * is one. */
static bool has_index(const struct image_dataset *d)
{
	return d->chunked && (d->nslots > 0 || !d->ds->type->has_vlen);
}

static int place_indexes(struct image *img, uint64_t *at, struct err *err)
{
	for (uint32_t i = 0; i < img->ndatasets; i++) {
		struct image_dataset *d = &img->datasets[i];
		if (!has_index(d))
			continue;
		uint64_t size = h5_bt1_size(d->ds->grid.rank, d->nslots);
		d->index_addr = *at;
		add_extent(img, EXTENT_INDEX, i, *at, size);
		int rc = advance(at, align_u64(size, 8), err);
		if (rc)
			return rc;
	}
	*at = align_page(img, *at);
	return 0;
}

/* Returns the length of the gap after `at` bytes of metadata. */
static uint64_t gap_bytes(const struct image *img, uint64_t at)
{
	uint64_t raw = 0, chunks = 0;
	for (uint32_t i = 0; i < img->ndatasets; i++) {
		const struct image_dataset *d = &img->datasets[i];
		if (!add_u64(raw, d->raw_bytes, &raw))
			raw = UINT64_MAX;
		if (d->ds->keep_apart && d->raw_bytes)
			chunks += min_u64(d->nslots, IMAGE_GAP_CHUNKS + 1);
	}
	const uint64_t gap = raw < IMAGE_GAP_FROM ? 0 : IMAGE_GAP;
	if (chunks <= IMAGE_GAP_CHUNKS)
		return gap;
	const uint64_t most = IMAGE_GAP_APART;
	return max_u64(gap, at < most / IMAGE_GAP_TIMES ? IMAGE_GAP_TIMES * at : most);
}

static void place_gap(struct image *img, uint64_t *at)
{
	const uint64_t n = gap_bytes(img, *at);
	if (n == 0)
		return;
	add_extent(img, EXTENT_GAP, 0, *at, n);
	*at += n;
}

/* Returns the address of the n bytes of raw data of a dataset. The kernel reads whole pages, and
 * reading a page fails if one of its bytes cannot be read. So a dataset shares no page with another
 * one. If there are more than IMAGE_OWN_PAGES datasets, those smaller than a page share pages, and
 * each is in one page. *shared is true if `at` is in or after such a page. */
static uint64_t run_start(const struct image *img, uint64_t at, uint64_t n, bool *shared)
{
	const bool small = img->ndatasets > IMAGE_OWN_PAGES && n < IMAGE_PAGE;
	at = small && *shared ? align_u64(at, 8) : align_page(img, at);
	*shared = small;
	const uint64_t in_page = (img->base + at) % IMAGE_PAGE;
	return small && in_page + n > IMAGE_PAGE ? align_page(img, at) : at;
}

static int place_raw(struct image *img, uint64_t *at, struct err *err)
{
	bool shared = false;
	for (uint32_t i = 0; i < img->ndatasets; i++) {
		struct image_dataset *d = &img->datasets[i];
		if (d->raw_bytes == 0)
			continue;
		*at = run_start(img, *at, d->raw_bytes, &shared);
		d->raw_addr = *at;
		add_extent(img, EXTENT_RAW, i, *at, d->raw_bytes);
		int rc = advance(at, d->raw_bytes, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int place_heaps(struct image *img, uint64_t *at, struct err *err)
{
	for (uint32_t i = 0; i < img->ndatasets; i++) {
		struct image_dataset *d = &img->datasets[i];
		const uint64_t bytes = dataset_heap_bytes(d);
		if (bytes == 0)
			continue;
		*at = align_page(img, *at);
		d->heap_addr = *at;
		add_extent(img, EXTENT_HEAP, i, *at, bytes);
		int rc = advance(at, bytes, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Assigns addresses to all regions after the metadata. */
static int place_data(struct image *img, struct err *err)
{
	uint64_t at = align_page(img, img->meta_size);
	img->extents = calloc(3 * (size_t)img->ndatasets + img->nvalues + 2, sizeof(*img->extents));
	if (!img->extents)
		return err_set(err, -ENOMEM, "out of memory: %u datasets", img->ndatasets);
	img->allocated = img->meta_size;
	int rc = place_values(img, &at, err);
	if (!rc)
		rc = place_indexes(img, &at, err);
	if (!rc) {
		place_gap(img, &at);
		rc = place_raw(img, &at, err);
	}
	if (!rc)
		rc = place_heaps(img, &at, err);
	/* The memory for extents that no dataset has is given back. */
	const size_t n = max_u64(img->nextents, 1);
	struct extent *extents = reallocarray(img->extents, n, sizeof(*extents));
	if (extents)
		img->extents = extents;
	/* The tail: a writer that frees the last object must not shrink the file into the image. */
	img->size = align_u64(at + 1, 8);
	return rc;
}

/* Step 3. Converts a value to file form if it has slots, and adds the unset part if the attribute
 * is not large. Other values are used as they are in the tree. */
static int relocate_attr(struct image *img, struct image_object *o, uint32_t i,
			 struct h5_gheap_writer *heap, struct err *err)
{
	const struct object *obj = &o->node->o;
	const struct attribute *a = &obj->attrs[i];
	const uint64_t len = attribute_bytes(a);
	struct image_value *large = value_find(img, o, i);
	if (large)
		return value_relocate(img, a, large, heap, err);
	if (len == 0 || (dtype_is_plain(a->type) && a->value.fixed.len == len))
		return 0;
	if (!o->values)
		o->values = calloc(obj->nattrs, sizeof(*o->values));
	if (!o->values)
		return err_set(err, -ENOMEM, "out of memory: %u values", obj->nattrs);
	return relocate_copy(img, a->type, a->space.nelems, &a->value, heap, &o->values[i], err);
}

static int relocate_attrs(struct image *img, struct image_object *o, struct h5_gheap_writer *heap,
			  struct err *err)
{
	for (uint32_t i = 0; i < o->node->o.nattrs; i++) {
		int rc = relocate_attr(img, o, i, heap, err);
		if (rc)
			return err_wrap(err, rc, "attribute \"%s\"", o->node->o.attrs[i].name);
	}
	return 0;
}

static int relocate_fill_value(struct image_dataset *d, struct h5_gheap_writer *heap,
			       struct err *err)
{
	const struct dataset *ds = d->ds;
	if (dtype_is_plain(ds->type) &&
	    (ds->fill.fixed.len == ds->type->size || ds->type->size > IMAGE_FILL_MAX)) {
		d->fill = &ds->fill;
		return 0;
	}
	d->fill = d->own_fill = calloc(1, sizeof(*d->own_fill));
	if (!d->fill)
		return err_set(err, -ENOMEM, "out of memory: a fill value");
	return relocate_copy(d->image, ds->type, 1, &ds->fill, heap, &d->own_fill->fixed, err);
}

/* Notes which collections have got items since the heap was as in `before`. */
static void note_items(struct image_object *o, const struct h5_gheap_writer *before,
		       const struct h5_gheap_writer *heap)
{
	if (heap->collection == before->collection && heap->next == before->next)
		return;
	o->first_items = before->base + before->collection;
	o->last_items = heap->base + heap->collection;
}

static int relocate_values(struct image *img, struct h5_gheap_writer *heap, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < img->nobjects; i++) {
		struct image_object *o = &img->objects[i];
		const struct h5_gheap_writer before = *heap;
		rc = relocate_attrs(img, o, heap, err);
		if (!rc && o->dataset != OBJECT_NONE && o->node->o.dataset.fill_defined)
			rc = relocate_fill_value(&img->datasets[o->dataset], heap, err);
		note_items(o, &before, heap);
		rc = wrap_object(err, rc, o);
	}
	return rc ? rc : h5_gheap_finish(heap, err);
}

static int encode_all(struct image *img, const struct h5_gheap_writer *heap, struct err *err)
{
	struct emit e = emit_to(img->meta, img->meta_size);
	int rc = 0;
	h5_superblock_encode(&e, &(struct h5_superblock){.leaf_k = 4,
							 .internal_k = 16,
							 .chunk_k = H5_BT1_K,
							 .base = img->base,
							 .eof = img->base + img->size,
							 .root = img->header_addr[0]});
	for (uint32_t i = 0; !rc && i < img->nobjects; i++) {
		rc = wrap_object(err, header_encode(&e, img, &img->objects[i], err),
				 &img->objects[i]);
		emit_align(&e, 0, 8);
	}
	for (uint32_t i = 0; !rc && i < img->nobjects; i++) {
		const struct image_object *o = &img->objects[i];
		if (o->links_dense)
			rc = links_encode(&e, img, o, o->links_addr, err);
		emit_align(&e, 0, 8);
		if (!rc && o->attrs_dense)
			rc = attrs_encode(&e, img, o, o->attrs_addr, err);
		emit_align(&e, 0, 8);
		rc = wrap_object(err, rc, o);
	}
	if (rc)
		return rc;
	emit_bytes(&e, heap->out.data, heap->out.len);
	if (e.bad || e.pos != img->meta_size)
		return err_set(err, -EIO,
			       "internal error: %zu bytes of metadata were planned as %llu", e.pos,
			       (unsigned long long)img->meta_size);
	return 0;
}

int image_plan(struct image *img, struct err *err)
{
	struct h5_gheap_writer heap = {0};
	uint64_t at = H5_SUPERBLOCK_SIZE;
	int rc = plan_storage(img, err);
	if (!rc)
		rc = values_plan(img, err);
	if (!rc)
		rc = place_headers(img, &at, err);
	if (!rc)
		rc = place_dense(img, &at, err);
	if (!rc)
		rc = image_charge(img, at, err);
	if (!rc) {
		img->dense_end = at;
		h5_gheap_init(&heap, at, H5_GHEAP_TARGET_ATTRS);
		rc = relocate_values(img, &heap, err);
	}
	if (!rc) {
		img->meta_size = at + heap.out.len;
		rc = place_data(img, err);
	}
	if (!rc)
		rc = image_charge(img, 0, err);
	if (!rc) {
		img->meta = malloc(img->meta_size);
		rc = img->meta ? encode_all(img, &heap, err)
			       : err_set(err, -ENOMEM, "out of memory: %llu bytes of metadata",
					 (unsigned long long)img->meta_size);
	}
	h5_gheap_release(&heap);
	return rc;
}
