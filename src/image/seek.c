/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holes: the unset part of a large attribute, the gap before the raw data, and slots of chunks that
 * are known to be absent and read as zeros. Only datasets in which all chunks have slots, such as
 * contiguous ones, have slots of absent chunks. Chunks that are not known to be absent, and fill
 * values other than zero, are data.
 */
#include <image/image.h>

#include <errno.h>
#include <unistd.h>

#include "image_plan.h"

static bool reads_as_zeros(const struct image_dataset *d)
{
	/* The repeated part repeats the last bytes. */
	for (size_t i = 0; d->fill && i < d->fill->fixed.len; i++)
		if (d->fill->fixed.data[i] != 0)
			return false;
	return true;
}

static bool has_holes(const struct image_dataset *d)
{
	return !d->listed && d->known->listed && !d->filtered && reads_as_zeros(d);
}

uint64_t dataset_stored_bytes(const struct image_dataset *d)
{
	uint64_t sum = 0;
	if (!has_holes(d))
		return d->raw_bytes;
	for (uint64_t k = 0; k < d->known->n; k++) {
		uint64_t at = d->known->numbers[k] * d->stride;
		sum += at < d->raw_bytes ? min_u64(d->stride, d->raw_bytes - at) : 0;
	}
	return sum;
}

/* Returns the dataset of extent x if it has holes, or NULL if the extent has none or is not of a
 * dataset. */
static const struct image_dataset *dataset_with_holes(const struct image *img,
						      const struct extent *x)
{
	const struct image_dataset *d = x->kind == EXTENT_RAW ? &img->datasets[x->dataset] : NULL;
	return d && has_holes(d) ? d : NULL;
}

/* Returns the start of the hole at the end of the gap or of a large attribute, or the end of x if
 * there is no hole. */
static uint64_t hole_start(const struct image *img, const struct extent *x)
{
	switch (x->kind) {
	case EXTENT_GAP:
		return x->start;
	case EXTENT_VALUE:
		return x->start + value_stored_bytes(&img->values[x->dataset]);
	default:
		return x->end;
	}
}

static uint64_t seek_data(const struct image *img, uint64_t at)
{
	for (uint32_t i = extent_find(img, at); i < img->nextents; i++) {
		const struct extent *x = &img->extents[i];
		const struct image_dataset *d = dataset_with_holes(img, x);
		if (at >= hole_start(img, x)) {
			at = x->end;
			continue;
		}
		if (at < x->start || !d)
			return at;
		uint64_t k = chunk_list_from(d->known, (at - x->start) / d->stride);
		if (k < d->known->n) {
			uint64_t start = x->start + d->known->numbers[k] * d->stride;
			if (start < x->end)
				return max_u64(at, start);
		}
		at = x->end;
	}
	return at;
}

static uint64_t seek_hole(const struct image *img, uint64_t at)
{
	for (uint32_t i = extent_find(img, at); i < img->nextents; i++) {
		const struct extent *x = &img->extents[i];
		const struct image_dataset *d = dataset_with_holes(img, x);
		if (hole_start(img, x) < x->end)
			return max_u64(at, hole_start(img, x));
		if (!d)
			continue;
		at = max_u64(at, x->start);
		uint64_t slot = (at - x->start) / d->stride;
		for (uint64_t k = chunk_list_from(d->known, slot);
		     k < d->known->n && d->known->numbers[k] == slot; k++)
			slot++;
		if (x->start + slot * d->stride < x->end)
			return max_u64(at, x->start + slot * d->stride);
	}
	return img->size;
}

/* The user block and the superblock behind it are data. */
int64_t image_seek(const struct image *img, uint64_t offset, int whence)
{
	if (offset >= img->base + img->size)
		return -ENXIO;
	const uint64_t at = offset > img->base ? offset - img->base : 0;
	switch (whence) {
	case SEEK_DATA:
		return (int64_t)(offset < img->base ? offset : img->base + seek_data(img, at));
	case SEEK_HOLE:
		return (int64_t)(img->base + seek_hole(img, at));
	default:
		return -EINVAL;
	}
}
