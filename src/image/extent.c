/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the extent and the slot at an offset of the file, by binary search. */
#include "image_plan.h"

uint32_t extent_find(const struct image *img, uint64_t offset)
{
	uint32_t low = 0, high = img->nextents;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (img->extents[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the slot whose window holds byte `at` of the heaps of a dataset. Skips empty windows. */
static uint64_t find_window(const struct image_dataset *d, uint64_t at)
{
	uint64_t low = 0, high = d->nslots;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (dataset_window(d, middle + 1) <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t extent_slot(const struct image *img, const struct extent *x, uint64_t offset)
{
	const struct image_dataset *d = &img->datasets[x->dataset];
	const uint64_t at = offset - x->start;
	return x->kind == EXTENT_RAW ? at / d->stride : find_window(d, at);
}
