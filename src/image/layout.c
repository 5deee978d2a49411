/* SPDX-License-Identifier: Apache-2.0 */
/* Where the chunks of a dataset are, for those who compare a file with its image: see image.h. */
#include <image/image.h>

#include <assert.h>

#include <base/search.h>

#include "image_plan.h"

static uint64_t index_end(const struct image_dataset *d)
{
	if (d->index_addr == H5_UNDEF)
		return H5_UNDEF;
	return d->index_addr + h5_bt1_size(d->ds->grid.rank, d->nslots);
}

bool image_layout(const struct image *img, uint32_t i, struct image_layout *out)
{
	if (i >= img->ndatasets)
		return false;
	const struct image_dataset *d = &img->datasets[i];
	const bool has_items = d->windows && d->heap_addr != H5_UNDEF;
	*out = (struct image_layout){
		.number = d->number,
		.chunked = d->chunked,
		.listed = d->listed,
		.fill_hidden = d->fill_hidden,
		.slots = d->raw_bytes ? d->nslots : 0,
		.addr = d->raw_addr,
		.size = d->slot_bytes,
		.stride = d->stride,
		.chunk_bytes = d->chunk_bytes,
		.bytes = d->raw_bytes,
		.index = d->index_addr,
		.index_end = index_end(d),
		.heap = has_items ? d->heap_addr : 0,
		.heap_end = has_items ? d->heap_addr + dataset_heap_bytes(d) : 0,
	};
	return true;
}

static uint32_t index_of(const struct image *img, uint32_t number)
{
	return number < tree_numbers(img->tree) ? img->dataset_of[number] : OBJECT_NONE;
}

static const struct image_dataset *dataset_of(const struct image *img, uint32_t number)
{
	const uint32_t i = index_of(img, number);
	return i == OBJECT_NONE ? NULL : &img->datasets[i];
}

bool image_dataset_layout(const struct image *img, uint32_t number, struct image_layout *out)
{
	return image_layout(img, index_of(img, number), out);
}

uint64_t image_slot_chunk(const struct image *img, uint32_t number, uint64_t slot)
{
	return dataset_chunk(dataset_of(img, number), slot);
}

bool image_chunk_slot(const struct image *img, uint32_t number, uint64_t chunk, uint64_t *slot)
{
	const struct image_dataset *d = dataset_of(img, number);
	return d && dataset_slot(d, chunk, slot);
}

uint64_t image_item_slot(const struct image *img, uint32_t number, uint64_t addr)
{
	const struct image_dataset *d = dataset_of(img, number);
	const struct extent x = {
		.start = d->heap_addr, .kind = EXTENT_HEAP, .dataset = index_of(img, number)};
	return extent_slot(img, &x, addr);
}

bool image_items(const struct image *img, uint32_t dataset, uint64_t chunk, uint64_t *start,
		 uint64_t *end)
{
	const struct image_dataset *d = dataset_of(img, dataset);
	uint64_t slot;
	if (!d || !d->windows || d->heap_addr == H5_UNDEF || !dataset_slot(d, chunk, &slot))
		return false;
	*start = d->heap_addr + dataset_window(d, slot);
	*end = d->heap_addr + dataset_window(d, slot + 1);
	return *start < *end;
}

static struct byte_range large_values(const struct image *img, const struct image_object *o)
{
	if (o->nlarge == 0)
		return (struct byte_range){0};
	const struct image_value *first = &img->values[o->first_large];
	const struct image_value *last = first + o->nlarge - 1;
	return (struct byte_range){first->addr, last->addr + last->size};
}

bool image_parts_at(const struct image *img, uint64_t addr, struct image_parts *out)
{
	/* the index, in the order of the tree, of the object whose header is at the address */
	const uint32_t i =
		LOWER_BOUND(k, img->nobjects, img->header_addr[tree_nth(img->tree, k)] < addr);
	assert(img->objects);
	if (i == img->nobjects || img->header_addr[tree_nth(img->tree, i)] != addr)
		return false;
	const struct image_object *o = &img->objects[i];
	const bool is_last = i + 1 == img->nobjects;
	*out = (struct image_parts){
		.number = tree_nth(img->tree, i),
		.header = {addr, addr + o->header_size},
		.dense = {o->links_addr, is_last ? img->dense_end : o[1].links_addr},
		.large = large_values(img, o),
	};
	if (o->last_items)
		out->items = (struct byte_range){
			o->first_items,
			o->last_items + h5_gheap_encoded_size(img->meta + o->last_items)};
	return true;
}
