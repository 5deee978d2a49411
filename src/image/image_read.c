/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an image: each piece of a range comes from the extent that contains it. */
#include <errno.h>
#include <string.h>

#include <codec/chunk.h>

#include "image_plan.h"
#include "file_stream.h"

/* The open file of a read, and the handle by which the caller can cancel it. Both may be NULL. */
struct reader {
	struct image_stream *stream;
	struct cancel *cancel;
};

static int get_slot(struct image *img, const struct reader *r, uint32_t dataset, uint64_t slot,
		    const struct chunk_data **chunk, struct err *err)
{
	const struct image_dataset *d = &img->datasets[dataset];
	const struct object *o = &tree_object(img->tree, d->number)->o;
	if (d->unknown)
		return err_set(err, -EIO, "object %s: %s", o->id,
			       o->dataset.absence_unknown ? o->dataset.absence_unknown
							  : "its chunks are not known");
	return cache_get(img->owner, r->stream ? r->stream->cache : NULL, dataset, slot, r->cancel,
			 chunk, err);
}

/* Reads a piece of one slot. Returns its length or a negative errno. */
static ssize_t read_raw(struct image *img, const struct reader *r, const struct extent *x,
			uint8_t *buf, size_t n, uint64_t offset, struct err *err)
{
	const struct image_dataset *d = &img->datasets[x->dataset];
	uint64_t at = offset - x->start, slot = at / d->stride, in = at % d->stride;
	const struct chunk_data *chunk;
	n = min_u64(n, min_u64(d->stride - in, x->end - offset));
	if (in >= d->slot_bytes) { /* no chunk is needed for the bytes between slots */
		memset(buf, 0, n);
		return (ssize_t)n;
	}
	n = min_u64(n, d->slot_bytes - in);
	int rc = get_slot(img, r, x->dataset, slot, &chunk, err);
	if (rc)
		return rc;
	if (d->deflated)
		codec_stored_read(chunk, in, buf, n);
	else
		chunk_data_read(chunk, in, buf, n);
	cache_put(img->owner, chunk, in + n >= d->slot_bytes || offset + n == x->end);
	return (ssize_t)n;
}

static ssize_t read_heap(struct image *img, const struct reader *r, const struct extent *x,
			 uint8_t *buf, size_t n, uint64_t offset, struct err *err)
{
	const struct image_dataset *d = &img->datasets[x->dataset];
	uint64_t at = offset - x->start, slot = extent_slot(img, x, offset);
	const struct chunk_data *chunk;
	n = min_u64(n, dataset_window(d, slot + 1) - at);
	int rc = get_slot(img, r, x->dataset, slot, &chunk, err);
	if (rc)
		return rc;
	chunk_data_read_heap(chunk, at - dataset_window(d, slot), buf, n);
	cache_put(img->owner, chunk, at + n == dataset_window(d, slot + 1));
	return (ssize_t)n;
}

static ssize_t read_index(struct image *img, const struct extent *x, uint8_t *buf, size_t n,
			  uint64_t offset)
{
	const struct h5_bt1 index = dataset_index(&img->datasets[x->dataset]);
	n = min_u64(n, x->end - offset);
	h5_bt1_read(&index, offset - x->start, buf, n);
	return (ssize_t)n;
}

static ssize_t read_piece(struct image *img, const struct reader *r, uint8_t *buf, size_t n,
			  uint64_t offset, struct err *err)
{
	if (offset < img->meta_size) {
		n = min_u64(n, img->meta_size - offset);
		if (img->packed) {
			const int rc = packed_bytes_read(img->packed, offset, buf, n, err);
			return rc ? rc : (ssize_t)n;
		}
		memcpy(buf, img->meta + offset, n);
		return (ssize_t)n;
	}
	uint32_t i = extent_find(img, offset);
	if (i == img->nextents || offset < img->extents[i].start) {
		uint64_t end = i == img->nextents ? img->size : img->extents[i].start;
		n = min_u64(n, end - offset);
		memset(buf, 0, n);
		return (ssize_t)n;
	}
	const struct extent *x = &img->extents[i];
	switch (x->kind) {
	case EXTENT_VALUE:
		n = min_u64(n, x->end - offset);
		value_read(&img->values[x->dataset], offset - x->start, buf, n);
		return (ssize_t)n;
	case EXTENT_INDEX:
		return read_index(img, x, buf, n, offset);
	case EXTENT_RAW:
		return read_raw(img, r, x, buf, n, offset, err);
	case EXTENT_HEAP:
		return read_heap(img, r, x, buf, n, offset, err);
	default:
		n = min_u64(n, x->end - offset);
		memset(buf, 0, n);
		return (ssize_t)n;
	}
}

/* The same as image_read() for an address, behind the user block. before is the number of bytes of
 * the same read that were in the block. */
static ssize_t read_address(struct image *img, struct image_stream *s, uint8_t *buf, size_t n,
			    uint64_t addr, uint64_t before, struct cancel *cancel, struct err *err)
{
	const struct reader reader = {.stream = s, .cancel = cancel};
	struct stream_plan plan = {0};
	size_t done = 0;
	if (addr >= img->size || n == 0)
		return 0;
	n = min_u64(n, img->size - addr);
	stream_read(s, addr, n, before, &plan);
	while (done < n) {
		stream_plan_read(img, s, &plan, addr + done, addr + n);
		ssize_t got = read_piece(img, &reader, buf + done, n - done, addr + done, err);
		if (got < 0)
			return done > 0 ? (ssize_t)done : got;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

ssize_t image_read(struct image *img, struct image_stream *s, void *buf, size_t n, uint64_t offset,
		   struct cancel *cancel, struct err *err)
{
	const size_t first = offset < img->base ? (size_t)min_u64(n, img->base - offset) : 0;
	if (first)
		user_block_read(img->block, offset, buf, first);
	if (first == n)
		return (ssize_t)n;
	const ssize_t got = read_address(img, s, (uint8_t *)buf + first, n - first,
					 offset + first - img->base, first, cancel, err);
	return got < 0 && first ? (ssize_t)first : got + (ssize_t)first;
}
