/* SPDX-License-Identifier: Apache-2.0 */
/* The slots that the chunks of a dataset have in the image. */
#include "update_internal.h"

bool slots_of(const struct update_base *b, uint32_t opened, const struct grid *grid,
	      struct slots *out)
{
	if (opened == OBJECT_NONE)
		return false;
	const struct grid *g = &tree_object(domain_tree(b->domain), opened)->o.dataset.grid;
	*out = (struct slots){.image = b->image, .dataset = opened, .grid = g};
	return g->nchunks && grid_same_chunks(g, grid) &&
	       image_dataset_layout(b->image, opened, &out->at) && out->at.slots > 0;
}

uint64_t slots_chunk(const struct slots *s, uint64_t slot)
{
	return image_slot_chunk(s->image, s->dataset, slot);
}

bool slots_find(const struct slots *s, uint64_t chunk, uint64_t *slot)
{
	return image_chunk_slot(s->image, s->dataset, chunk, slot) && *slot < s->at.slots;
}

void slots_range(const struct slots *s, uint64_t slot, uint64_t *start, uint64_t *end)
{
	*start = s->at.addr + slot * s->at.stride;
	*end = min_u64(*start + s->at.size, s->at.addr + s->at.bytes);
}

struct chunk_record slots_record(const struct slots *s, uint64_t slot)
{
	uint64_t start, end;
	slots_range(s, slot, &start, &end);
	return (struct chunk_record){
		.number = slots_chunk(s, slot), .addr = start, .size = end - start};
}

uint64_t slots_at(const struct slots *s, uint64_t addr)
{
	return (addr - s->at.addr) / s->at.stride;
}

bool update_renumber(const struct grid *from, const struct grid *to, uint64_t number, uint64_t *out)
{
	uint64_t coords[DSPACE_MAX_RANK];
	if (!from->nchunks || !to->nchunks)
		return false;
	grid_coords(from, number, coords);
	for (uint32_t i = 0; i < to->rank; i++)
		if (coords[i] >= to->count[i])
			return false;
	*out = grid_number(to, coords);
	return true;
}
