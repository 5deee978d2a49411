/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of chunks (Zarr v2, "Storing and accessing array data"; Zarr v3, "Chunk key encoding"):
 *
 *   v2, and the encoding "v2" of v3    <path>/<i>.<j>    <path>/<i>/<j>    rank 0: <path>/0
 *   the encoding "default" of v3       <path>/c/<i>/<j>  <path>/c.<i>.<j>  rank 0: <path>/c
 *
 * A chunk that is cut (chunk_cut.c), or a shard, is one object with several chunks of the dataset.
 * Below, "stored coordinates" are those of the object.
 *
 * Pure.
 */
#include "zarr_space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Appends a text to a key of n bytes, unless n is an error. Returns the new length, or an error. */
static int append(char *key, size_t room, int n, const char *text)
{
	const size_t len = strlen(text);
	if (n < 0 || room <= len || (size_t)n >= room - len)
		return -ENAMETOOLONG;
	memcpy(key + n, text, len + 1);
	return n + (int)len;
}

int zarr_key(const char *store, const char *rest, char *key, size_t room)
{
	int n = append(key, room, 0, store);
	if (store[0] && rest[0])
		n = append(key, room, n, "/");
	return append(key, room, n, rest);
}

/* Writes the part that the keys of all chunks of an array have: "x.zarr/a/". */
static int folder(const struct zarr_locator *l, char *key, size_t room)
{
	int n = zarr_key(l->store, l->path, key, room);
	return n > 0 ? append(key, room, n, "/") : n;
}

static int chunk_key(const struct zarr_locator *l, char between, const uint64_t *coords, char *key,
		     size_t room)
{
	const char separator[] = {between, '\0'};
	char number[24];
	int n = folder(l, key, room);
	if (l->is_default)
		n = append(key, room, n, "c");
	else if (l->rank == 0)
		n = append(key, room, n, "0");
	for (uint32_t i = 0; i < l->rank; i++) {
		if (i || l->is_default)
			n = append(key, room, n, separator);
		snprintf(number, sizeof(number), "%" PRIu64, coords[i]);
		n = append(key, room, n, number);
	}
	return n;
}

/* Replaces the coordinates of a chunk of the dataset by the stored coordinates, and finds its range
 * in the object. */
static void find_part(const struct zarr_locator *l, const struct grid *grid, uint64_t *coords,
		      struct chunk_place *place)
{
	uint64_t offset = 0, elems = 1, all = 1, first[DSPACE_MAX_RANK];
	for (uint32_t i = 0; i < grid->rank; i++) {
		const uint64_t stored = l->stored_chunk[i], at = coords[i] * grid->chunk[i];
		coords[i] = at / stored;
		first[i] = coords[i] * stored / grid->chunk[i];
		offset = offset * stored + at % stored;
		all *= stored;
		elems *= min_u64(grid->chunk[i], stored - at % stored);
	}
	place->offset = offset * l->elem_size;
	place->length = elems * l->elem_size;
	place->is_shared = true;
	place->object_size = all * l->elem_size;
	place->first = grid_number(grid, first);
	place->ends_early = elems < grid->chunk_elems;
}

bool zarr_chunk_part(const struct object *o, uint64_t number, struct chunk_place *place)
{
	const struct zarr_locator *l = o->dataset.locator;
	uint64_t coords[DSPACE_MAX_RANK];
	if (!l->stored_chunk)
		return false;
	grid_coords(&o->dataset.grid, number, coords);
	find_part(l, &o->dataset.grid, coords, place);
	return true;
}

/* The axes count like digits. */
bool zarr_next_part(const struct object *o, uint64_t *number)
{
	const struct zarr_locator *l = o->dataset.locator;
	const struct grid *g = &o->dataset.grid;
	uint64_t coords[DSPACE_MAX_RANK];
	if (o->dataset.shard)
		return shard_next(o->dataset.shard, g, number);
	grid_coords(g, *number, coords);
	for (uint32_t i = 0; i < g->rank; i++) {
		const uint64_t stored = l->stored_chunk[i];
		const uint64_t first = coords[i] * g->chunk[i] / stored * stored / g->chunk[i];
		if (++coords[i] < min_u64(first + div_up_u64(stored, g->chunk[i]), g->count[i])) {
			*number = grid_number(g, coords);
			return true;
		}
		coords[i] = first;
	}
	return false;
}

int zarr_locate(const struct object *o, const struct object *table, uint64_t number,
		unsigned int *step, const struct schema_answer *answer, struct chunk_place *place,
		struct err *err)
{
	const struct zarr_locator *l = o->dataset.locator;
	const struct shard *shard = o->dataset.shard;
	uint64_t coords[DSPACE_MAX_RANK];
	if (!l->path) {
		place->absent = true; /* a dimension without a variable has no data */
		return 0;
	}
	/* Only a chunk shows which separator the keys of an array have whose document does not say
	 * it. A byte of the chunk is enough. */
	const bool probes = l->is_guessed && *step == 0;
	const bool other = l->is_guessed && *step > 0 && answer->absent;
	grid_coords(&o->dataset.grid, number, coords);
	place->length = CHUNK_TO_END;
	if (l->stored_chunk)
		find_part(l, &o->dataset.grid, coords, place);
	for (uint32_t i = 0; shard && i < shard->rank; i++)
		coords[i] /= shard->span[i];
	if (chunk_key(l, other ? '/' : l->separator, coords, place->key, place->room) < 0)
		return err_set(err, -ENAMETOOLONG, "the key of the chunk would be too long");
	if (probes) {
		place->offset = 0;
		place->length = 1;
	}
	*step += probes;
	return probes ? SCHEMA_NEEDS_ANSWER : shard ? SCHEMA_NEEDS_SHARD : 0;
}

int zarr_chunk_prefix(const struct object *o, char *prefix, size_t room)
{
	const struct zarr_locator *l = o->dataset.locator;
	if (!l->path)
		return 0; /* a dimension without a variable */
	if (l->stored_chunk || o->dataset.shard)
		return -EOPNOTSUPP; /* a key is that of several chunks */
	const int n = folder(l, prefix, room);
	return n >= 0 && l->is_default ? append(prefix, room, n, "c") : n;
}

/* Reads a number without leading zeros. Returns false if there is none. */
static bool read_number(const char **at, uint64_t *number)
{
	const char *p = *at;
	uint64_t n = 0;
	if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		if (!mul_u64(n, 10, &n) || !add_u64(n, (uint64_t)(*p - '0'), &n))
			return false;
	*at = p;
	*number = n;
	return true;
}

static bool read_coords(const struct zarr_locator *l, char separator, const char *p,
			uint64_t *coords)
{
	if (l->is_default && *p++ != 'c')
		return false;
	if (l->rank == 0)
		return strcmp(p, l->is_default ? "" : "0") == 0;
	for (uint32_t i = 0; i < l->rank; i++) {
		if ((i || l->is_default) && *p++ != separator)
			return false;
		if (!read_number(&p, &coords[i]))
			return false;
	}
	return *p == '\0';
}

bool zarr_chunk_of_key(const struct object *o, const char *key, uint64_t *number)
{
	const struct zarr_locator *l = o->dataset.locator;
	const struct grid *grid = &o->dataset.grid;
	const struct shard *shard = o->dataset.shard;
	uint64_t coords[DSPACE_MAX_RANK] = {0};
	char prefix[SCHEMA_KEY_MAX + 1];
	const int n = l->path ? folder(l, prefix, sizeof(prefix)) : -EINVAL;
	if (n < 0 || strncmp(key, prefix, (size_t)n) != 0 ||
	    !(read_coords(l, l->separator, key + n, coords) ||
	      (l->is_guessed && read_coords(l, '/', key + n, coords))))
		return false;
	for (uint32_t i = 0; i < grid->rank; i++) {
		if (shard && i < shard->rank) {
			if (coords[i] >= div_up_u64(grid->count[i], shard->span[i]))
				return false;
			coords[i] *= shard->span[i];
		}
		if (l->stored_chunk) {
			if (coords[i] >= div_up_u64(grid->dims[i], l->stored_chunk[i]))
				return false;
			coords[i] = coords[i] * l->stored_chunk[i] / grid->chunk[i];
		}
		if (coords[i] >= grid->count[i])
			return false;
	}
	*number = grid_number(grid, coords);
	return true;
}
