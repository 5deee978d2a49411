/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holes: the unset part of a large attribute, the gap before the raw data, and slots of chunks that
 * are known to be absent and read as zeros. Only datasets in which all chunks have slots, such as
 * contiguous ones, have slots of absent chunks. Chunks that are not known to be absent, and fill
 * values other than zero, are data.
 *
 * If an open has not found out which chunks of a dataset are stored, image_find() asks the source.
 * What it says is kept with the image until image_forget_chunks(), as the chunks are.
 *
 * Threads: a list is added once, atomically, and constant afterwards.
 */
#include <image/image.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <hsmount/log.h>

#include "image_plan.h"

static bool reads_as_zeros(const struct image_dataset *d)
{
	/* The repeated part repeats the last bytes. */
	for (size_t i = 0; d->fill && i < d->fill->fixed.len; i++)
		if (d->fill->fixed.data[i] != 0)
			return false;
	return true;
}

/* Returns whether a hole may take the place of a chunk. */
static bool may_have_holes(const struct image_dataset *d)
{
	return !d->listed && !d->filtered && !d->unknown && reads_as_zeros(d);
}

static uint64_t stored_bytes(const struct image_dataset *d, const struct chunk_list *stored)
{
	uint64_t sum = 0;
	for (uint64_t k = 0; k < stored->n; k++) {
		uint64_t at = stored->numbers[k] * d->stride;
		sum += at < d->raw_bytes ? min_u64(d->stride, d->raw_bytes - at) : 0;
	}
	return sum;
}

uint64_t dataset_stored_bytes(const struct image_dataset *d)
{
	return may_have_holes(d) && d->known->listed ? stored_bytes(d, d->known) : d->raw_bytes;
}

/* ---- lists that the open has not made ---- */

struct found_list {
	struct chunk_list list; /* `listed` is false if the source cannot tell */
	struct budget_charge charge;
};

static void found_free(struct found_list *f)
{
	if (!f)
		return;
	budget_set(&f->charge, 0, NULL);
	free((void *)(uintptr_t)f->list.numbers);
	free(f);
}

void dataset_forget_found(struct image_dataset *d)
{
	found_free(atomic_exchange(&d->found, NULL));
}

bool dataset_is_uncertain(const struct image_dataset *d)
{
	const struct found_list *f = atomic_load(&d->found);
	return may_have_holes(d) && !d->known->listed && !(f && f->list.listed);
}

/* Asks the source. A failure is kept, too: then all chunks count as stored. Returns NULL if out of
 * memory. */
static struct found_list *find(const struct image_dataset *d)
{
	const struct image *img = d->image;
	struct found_list *f = calloc(1, sizeof(*f));
	struct err err = ERR_INIT;
	if (!f)
		return NULL;
	f->charge = (struct budget_charge){.budget = img->env->budget, .use = BUDGET_PLANS};
	int rc = img->chunks.find(img->chunks.ctx, d->number, &f->list, &err);
	if (!rc)
		rc = budget_set(&f->charge, sizeof(*f) + f->list.n * sizeof(*f->list.numbers),
				&err);
	if (rc) {
		free((void *)(uintptr_t)f->list.numbers);
		f->list = (struct chunk_list){0};
	}
	if (rc && rc != -EOPNOTSUPP)
		log_info(img->env->log, "%s; so lseek shows no holes in this dataset", err.msg);
	return f;
}

static const struct found_list *found_of(struct image_dataset *d)
{
	struct found_list *f = atomic_load(&d->found), *none = NULL;
	if (f || !d->image->chunks.find || d->nslots < IMAGE_ASK_FROM)
		return f;
	f = find(d);
	if (!f)
		return NULL;
	if (!atomic_compare_exchange_strong(&d->found, &none, f)) {
		found_free(f); /* another thread has asked, too */
		return none;
	}
	if (f->list.listed)
		atomic_fetch_add(&d->image->found_holes, d->raw_bytes - stored_bytes(d, &f->list));
	return f;
}

/* ---- seeking ---- */

struct seek {
	const struct image *img;
	bool asks;
};

/* Returns the list of the chunks with values, if extent x is of a dataset that has holes. */
static const struct chunk_list *stored_in(const struct seek *s, const struct extent *x)
{
	struct image_dataset *d = x->kind == EXTENT_RAW ? &s->img->datasets[x->dataset] : NULL;
	if (!d || !may_have_holes(d))
		return NULL;
	if (d->known->listed)
		return d->known;
	const struct found_list *f = s->asks ? found_of(d) : atomic_load(&d->found);
	return f && f->list.listed ? &f->list : NULL;
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

static uint64_t seek_data(const struct seek *s, uint64_t at)
{
	const struct image *img = s->img;
	for (uint32_t i = extent_find(img, at); i < img->nextents; i++) {
		const struct extent *x = &img->extents[i];
		if (at >= hole_start(img, x)) {
			at = x->end;
			continue;
		}
		const struct chunk_list *stored = at < x->start ? NULL : stored_in(s, x);
		if (!stored)
			return at;
		const uint64_t stride = img->datasets[x->dataset].stride;
		uint64_t k = chunk_list_from(stored, (at - x->start) / stride);
		if (k < stored->n) {
			uint64_t start = x->start + stored->numbers[k] * stride;
			if (start < x->end)
				return max_u64(at, start);
		}
		at = x->end;
	}
	return at;
}

static uint64_t seek_hole(const struct seek *s, uint64_t at)
{
	const struct image *img = s->img;
	for (uint32_t i = extent_find(img, at); i < img->nextents; i++) {
		const struct extent *x = &img->extents[i];
		if (hole_start(img, x) < x->end)
			return max_u64(at, hole_start(img, x));
		const struct chunk_list *stored = stored_in(s, x);
		if (!stored)
			continue;
		const uint64_t stride = img->datasets[x->dataset].stride;
		at = max_u64(at, x->start);
		uint64_t slot = (at - x->start) / stride;
		for (uint64_t k = chunk_list_from(stored, slot);
		     k < stored->n && stored->numbers[k] == slot; k++)
			slot++;
		if (x->start + slot * stride < x->end)
			return max_u64(at, x->start + slot * stride);
	}
	return img->size;
}

/* The user block and the superblock behind it are data. */
static int64_t seek(const struct seek *s, uint64_t offset, int whence)
{
	const struct image *img = s->img;
	if (offset >= img->base + img->size)
		return -ENXIO;
	const uint64_t at = offset > img->base ? offset - img->base : 0;
	switch (whence) {
	case SEEK_DATA:
		return (int64_t)(offset < img->base ? offset : img->base + seek_data(s, at));
	case SEEK_HOLE:
		return (int64_t)(img->base + seek_hole(s, at));
	default:
		return -EINVAL;
	}
}

int64_t image_seek(const struct image *img, uint64_t offset, int whence)
{
	return seek(&(struct seek){.img = img}, offset, whence);
}

int64_t image_find(const struct image *img, uint64_t offset, int whence)
{
	return seek(&(struct seek){.img = img, .asks = true}, offset, whence);
}
