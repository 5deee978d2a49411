/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: an array in shards inside of each other.
 *
 *   +0  u8  axes - 1, modulo 4; then u8 for each: how many more chunks than one the array has
 *   then    u8 levels - 1, modulo 4; then for each level, from the innermost on, u8 for each axis
 * of the array: how many inner chunks, 1 to 3 then    u8 for each level, from the outermost on:
 * where the order of the axes begins, and its direction
 *
 * The entry of each chunk in each index is that of a naive model, which goes into one shard after
 * the other and exchanges the axes as it goes. The chunks of each shard follow each other without a
 * gap or a repetition.
 */
#include <string.h>

#include <base/cursor.h>
#include <base/mem.h>
#include <data/shard.h>

#include "require.h"

enum { AXES = 4, LEVELS = 4, COUNT = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint32_t rank, levels;
	uint64_t dims[AXES], spans[LEVELS + 1][AXES]; /* spans[i]: chunks of an inner chunk of i */
	uint32_t relative[LEVELS][AXES], absolute[LEVELS][AXES];
	struct shard shards[LEVELS];
	struct grid grid;
};

static void read_orders(struct cursor *c, struct input *x)
{
	uint32_t axes[AXES] = {0, 1, 2, 3};
	for (uint32_t i = 0; i < x->levels; i++) {
		const uint8_t how = cur_u8(c);
		for (uint32_t k = 0; k < x->rank; k++) {
			const uint32_t at = (how / 2 + k) % x->rank;
			x->relative[i][k] = how & 1 ? x->rank - 1 - at : at;
			x->absolute[i][k] = axes[x->relative[i][k]];
		}
		memcpy(axes, x->absolute[i], sizeof(axes));
	}
}

/* Level 0 is the outermost one. */
static void read_input(struct cursor *c, struct input *x)
{
	memset(x, 0, sizeof(*x));
	x->rank = cur_u8(c) % AXES + 1u;
	for (uint32_t i = 0; i < x->rank; i++)
		x->dims[i] = cur_u8(c) % COUNT + 1u;
	x->levels = cur_u8(c) % LEVELS + 1u;
	for (uint32_t i = 0; i < AXES; i++)
		x->spans[x->levels][i] = 1;
	for (uint32_t level = x->levels; level-- > 0;) {
		struct shard *s = &x->shards[level];
		s->nchunks = 1;
		for (uint32_t i = 0; i < x->rank; i++) {
			const uint32_t n = cur_u8(c) % 3 + 1u;
			x->spans[level][i] = x->spans[level + 1][i] * n;
			s->nchunks *= n;
		}
		s->rank = x->rank;
		s->span = x->spans[level];
		s->inner = x->spans[level + 1];
		s->order = x->absolute[level];
		s->nested = level + 1 < x->levels ? s + 1 : NULL;
	}
	read_orders(c, x);
}

/* Compares the entries of a chunk. `at` are its coordinates in the outermost shard. */
static void check_chunk(const struct input *x, uint64_t number, uint64_t *at)
{
	for (uint32_t level = 0; level < x->levels; level++) {
		const struct shard *s = &x->shards[level];
		uint64_t stored[AXES], entry = 0;
		for (uint32_t i = 0; i < x->rank; i++) {
			const uint32_t axis = x->absolute[level][i];
			const uint64_t inner = s->inner[axis], count = s->span[axis] / inner;
			const uint64_t from = at[x->relative[level][i]];
			entry = entry * count + from / inner;
			stored[i] = from % inner;
		}
		require(shard_inner(s, &x->grid, number) == entry && entry < s->nchunks);
		memcpy(at, stored, sizeof(stored));
	}
	for (uint32_t i = 0; i < x->rank; i++)
		require(at[i] == 0);
}

static void check_shards(const struct input *x, const struct shard *s)
{
	uint64_t seen = 0;
	for (uint64_t first = 0; first < x->grid.nchunks; first++) {
		uint64_t number = first;
		if (shard_first(s, &x->grid, first) != first)
			continue;
		do {
			const uint64_t last = number;
			require(shard_first(s, &x->grid, number) == first);
			seen++;
			if (!shard_next(s, &x->grid, &number))
				break;
			require(number > last);
		} while (true);
	}
	require(seen == x->grid.nchunks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t ones[AXES] = {1, 1, 1, 1};
	struct cursor c = cursor_of(data, size);
	struct input x;
	read_input(&c, &x);
	if (!cur_ok(&c))
		return 0;
	struct arena *arena = arena_new(1 << 16);
	require(arena && !grid_init(arena, &x.grid, x.rank, x.dims, ones, NULL));
	for (uint64_t n = 0; n < x.grid.nchunks; n++) {
		uint64_t coords[AXES] = {0};
		grid_coords(&x.grid, n, coords);
		for (uint32_t i = 0; i < x.rank; i++)
			coords[i] %= x.spans[0][i];
		check_chunk(&x, n, coords);
	}
	for (uint32_t level = 0; level < x.levels; level++)
		check_shards(&x, &x.shards[level]);
	arena_free(arena);
	return 0;
}
