/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a chunk of a file has changed.
 *
 * It is unchanged if the index has the same record for it as before, and if no program has written
 * to its bytes. If its elements have variable length, no program may have written to the heap
 * collections that have its items either. A chunk that was written counts as changed, even if its
 * bytes are the same: to compare them, the old bytes would have to be read.
 *
 * The bytes of a chunk show where its items are. If they are the bytes of the image, the image
 * shows it, and the chunk is not read.
 */
#include "update_internal.h"

static bool is_written(const struct update *u, uint64_t addr, uint64_t size)
{
	return size && update_is_written(u, addr, addr + size);
}

static int find_written(void *ctx, uint64_t addr, uint64_t size)
{
	return is_written(ctx, addr, size);
}

static int read_heaps(const struct pair *p, const struct chunk_record *r, struct err *err)
{
	const struct update *u = p->u;
	auto_bytes struct bytes stored = {0};
	const struct h5file_chunk chunk = {.number = r->number,
					   .addr = r->addr,
					   .size = r->size,
					   .filter_mask = r->mask,
					   .is_filtered = p->file->pipeline->n > 0};
	int rc = h5file_chunk_read(u->now->file, &chunk, &stored, err);
	if (!rc)
		rc = h5file_chunk_heaps(u->now->file, p->now, &chunk, &stored, find_written, p->u,
					err);
	return rc;
}

/* Returns whether a chunk has its address and its bytes from the image. */
static bool is_of_image(const struct pair *p, const struct chunk_record *r, uint64_t *chunk)
{
	uint64_t start, end, slot;
	if (!p->has_slots || !update_renumber(p->grid, p->slots.grid, r->number, chunk) ||
	    !slots_find(&p->slots, *chunk, &slot))
		return false;
	slots_range(&p->slots, slot, &start, &end);
	return r->addr == start && r->size == end - start && !r->mask &&
	       update_next_replaced(p->u, start, end) == end;
}

int chunk_has_new_items(const struct pair *p, const struct chunk_record *now, struct err *err)
{
	const struct update *u = p->u;
	uint64_t chunk, start, end;
	if (!p->has_items)
		return 0;
	if (!is_of_image(p, now, &chunk))
		return read_heaps(p, now, err);
	return image_items(u->base->image, p->slots.dataset, chunk, &start, &end) &&
	       update_is_written(u, start, end);
}

int chunk_has_changed(const struct pair *p, const struct chunk_record *old,
		      const struct chunk_record *now, struct err *err)
{
	if (!old || old->addr != now->addr || old->size != now->size || old->mask != now->mask)
		return 1;
	if (p->file->layout != LAYOUT_COMPACT && is_written(p->u, now->addr, now->size))
		return 1;
	return chunk_has_new_items(p, now, err);
}
