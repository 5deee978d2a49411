/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the extent and the slot at an offset of the file, by binary search. */
#include "image_plan.h"

#include <base/search.h>

uint32_t extent_find(const struct image *img, uint64_t offset)
{
	return LOWER_BOUND(i, img->nextents, img->extents[i].end <= offset);
}

uint64_t extent_slot(const struct image *img, const struct extent *x, uint64_t offset)
{
	const struct image_dataset *d = &img->datasets[x->dataset];
	const uint64_t at = offset - x->start;
	if (x->kind == EXTENT_RAW)
		return at / d->stride;
	/* the slot whose window holds the byte; empty windows are skipped */
	return LOWER_BOUND(i, d->nslots, dataset_window(d, i + 1) <= at);
}
