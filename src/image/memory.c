/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of an image, and its charge to the budget. */
#include <image/image.h>

#include <inttypes.h>

#include "image_plan.h"

uint64_t image_memory(const struct image *img)
{
	uint64_t sum = sizeof(*img);
	sum += img->packed ? packed_bytes_memory(img->packed) : img->meta_size;
	sum += img->objects ? (uint64_t)img->nobjects * sizeof(*img->objects) : 0;
	sum += (uint64_t)tree_numbers(img->tree) *
	       (sizeof(*img->header_addr) + sizeof(*img->dataset_of));
	sum += (uint64_t)img->ndatasets * sizeof(*img->datasets);
	sum += (uint64_t)(img->extents ? img->nextents : 3 * img->ndatasets) *
	       sizeof(*img->extents);
	for (uint32_t i = 0; i < img->ndatasets; i++)
		if (img->datasets[i].windows)
			sum += (img->datasets[i].known->n + 1) * sizeof(uint64_t);
	for (uint32_t i = 0; i < img->ndatasets; i++)
		if (img->datasets[i].own_fill)
			sum += sizeof(struct elems) + img->datasets[i].own_fill->fixed.cap;
	return sum + values_memory(img);
}

void image_shrink(struct image *img)
{
	free(img->objects);
	img->objects = NULL;
	/* If memory is short, they stay as they are. */
	if (img->meta_size >= IMAGE_PACKED &&
	    !packed_bytes_new(img->meta, img->meta_size, &img->packed))
		img->meta = NULL;
	budget_set(&img->charge, image_memory(img), NULL);
}

/* Returns a lower limit of the bytes that values with slots will add to the metadata. */
static uint64_t heap_bytes(const struct image *img)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < img->nobjects; i++) {
		const struct object *o = &img->objects[i].node->o;
		for (uint32_t k = 0; k < o->nattrs; k++)
			sum += o->attrs[k].value.heap.len;
		if (o->kind == OBJECT_DATASET)
			sum += o->dataset.fill.heap.len;
	}
	return sum;
}

int image_charge(struct image *img, uint64_t encoded, struct err *err)
{
	const uint64_t planned = img->meta_size ? 0 : encoded + heap_bytes(img);
	const uint64_t bytes = image_memory(img) + planned;
	int rc = budget_set(&img->charge, bytes, err);
	return rc ? err_wrap(err, rc, "image of %" PRIu64 " bytes", bytes) : 0;
}
