/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of the chunks in shards. Pure. */
#include <data/shard.h>

#include <base/mem.h>

uint32_t shard_index_size(const struct shard *s)
{
	_Static_assert(SHARD_CHUNKS_MAX < UINT32_MAX / SHARD_ENTRY - 1, "the size fits");
	return s->nchunks * SHARD_ENTRY + (s->has_checksum ? SHARD_CHECKSUM : 0);
}

uint32_t shard_inner(const struct shard *s, const struct grid *g, uint64_t number)
{
	uint64_t coords[DSPACE_MAX_RANK], inner = 0;
	grid_coords(g, number, coords);
	for (uint32_t i = 0; i < s->rank; i++) {
		const uint32_t d = s->order[i];
		inner = inner * (s->span[d] / s->inner[d]) + coords[d] % s->span[d] / s->inner[d];
	}
	return (uint32_t)inner;
}

uint64_t shard_first(const struct shard *s, const struct grid *g, uint64_t number)
{
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(g, number, coords);
	for (uint32_t d = 0; d < s->rank; d++)
		coords[d] -= coords[d] % s->span[d];
	return grid_number(g, coords);
}

/* The dimensions count like digits. */
bool shard_next(const struct shard *s, const struct grid *g, uint64_t *number)
{
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(g, *number, coords);
	for (uint32_t d = s->rank; d-- > 0;) {
		const uint64_t first = coords[d] - coords[d] % s->span[d];
		const uint64_t left = g->count[d] - first;
		if (++coords[d] - first < min_u64(s->span[d], left)) {
			*number = grid_number(g, coords);
			return true;
		}
		coords[d] = first;
	}
	return false;
}
