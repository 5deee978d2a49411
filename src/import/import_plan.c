/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the indexes before the first chunk is put: finds chunks that the index names twice, counts
 * what there is to do, and joins neighbouring chunks.
 *
 * Chunks are joined by whole multiples along the last dimension, then, if that is one chunk, along
 * the one before it, and so on. So the chunks of the file that form one chunk of the domain have
 * consecutive numbers. They follow each other in the index if the index is in the order of the
 * numbers. An extensible array whose first dimension is fixed is not; its chunks are not joined.
 */
#include "import_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chunk.h>
#include <data/chunk_source.h>

enum {
	SMALL_CHUNK = 64 << 10,
	MANY_CHUNKS = 100000,
	SEEN_MAX = 64 << 20, /* bytes of a bit for each chunk */
};

/* ---- the index of one dataset ---- */

struct scan {
	const struct import *im;
	struct import_dataset *out;
	const struct h5file_dataset *file;
	uint64_t last;	/* number of the previous chunk */
	uint8_t *seen;	/* second scan: a bit for each chunk */
	uint64_t small; /* chunks below SMALL_CHUNK */
};

static int named_twice(uint64_t number, struct err *err)
{
	return err_set(err, -EIO, "its index names chunk %" PRIu64 " twice", number);
}

/* Checks that a chunk without filters has the bytes that the layout says. It may lack elements
 * beyond the extent. A copy ignores bytes behind the chunk, as libhdf5 does. Readers of a link
 * would get them. */
static int check_size(const struct scan *s, const struct h5file_chunk *chunk, struct err *err)
{
	const struct h5file_dataset *d = s->file;
	if (d->layout != LAYOUT_CHUNKED)
		return 0;
	const uint32_t n = d->pipeline->n;
	const uint64_t all = n ? (UINT64_C(1) << n) - 1 : 0;
	const uint64_t whole = d->grid.chunk_elems * d->elem_size;
	if (chunk->is_filtered && (chunk->filter_mask & all) != all)
		return 0;
	if (chunk->size >= grid_covered(&d->grid, chunk->number) * d->elem_size &&
	    (chunk->size <= whole || !s->im->opt->link))
		return 0;
	return err_set(err, -EIO,
		       "chunk %" PRIu64 " has %" PRIu64 " bytes; the layout says %" PRIu64,
		       chunk->number, chunk->size, whole);
}

static int count_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct scan *s = ctx;
	const atomic_bool *cancelled = s->im->opt->cancelled;
	if (s->out->stored && chunk->number == s->last)
		return named_twice(chunk->number, err);
	if (s->out->stored && chunk->number < s->last)
		s->out->is_ascending = false;
	if (cancelled && atomic_load(cancelled))
		return err_set(err, -ECANCELED, "interrupted");
	s->last = chunk->number;
	s->out->stored++;
	s->out->bytes += chunk->size;
	s->small += chunk->size < SMALL_CHUNK;
	return check_size(s, chunk, err);
}

static int mark_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct scan *s = ctx;
	uint8_t *byte = &s->seen[chunk->number / 8];
	const uint8_t bit = (uint8_t)(1 << chunk->number % 8);
	if (*byte & bit)
		return named_twice(chunk->number, err);
	*byte |= bit;
	return 0;
}

/* For an index in another order than that of the numbers. Without room for the bits, the order of
 * the index is not checked: such an index is an array, which has one place for each chunk. */
static int find_twice(struct scan *s, uint32_t number, uint64_t nchunks, struct err *err)
{
	struct budget_charge charge = {.budget = s->im->opt->env->budget, .use = BUDGET_TREES};
	const uint64_t bytes = nchunks / 8 + 1;
	if (bytes > SEEN_MAX || budget_set(&charge, bytes, NULL))
		return 0;
	s->seen = calloc(1, (size_t)bytes);
	int rc = s->seen ? h5file_chunks(s->im->file, number, 0, nchunks, mark_chunk, s, err)
			 : err_no_memory(err);
	free(s->seen);
	budget_set(&charge, 0, NULL);
	return rc;
}

static int scan_dataset(struct import *im, uint32_t number, uint64_t *small, struct err *err)
{
	const struct h5file_dataset *file = h5file_dataset(im->file, number);
	struct scan s = {.im = im, .out = &im->datasets[number], .file = file};
	s.out->is_ascending = true;
	int rc = h5file_chunks(im->file, number, 0, file->grid.nchunks, count_chunk, &s, err);
	if (!rc && !s.out->is_ascending)
		rc = find_twice(&s, number, file->grid.nchunks, err);
	if (rc)
		return err_wrap(err, rc, "dataset %s", import_path(im, number));
	im->total += s.out->bytes;
	*small += s.small;
	return 0;
}

/* ---- joining chunks ---- */

/* Chunk dimensions of at least min_chunk bytes. Returns true if they are not those of g. */
static bool joined_chunk(const struct grid *g, uint64_t elem_size, uint64_t min_chunk,
			 uint64_t *chunk)
{
	uint64_t bytes = elem_size * g->chunk_elems; /* at most CHUNK_BYTES_MAX: import_check() */
	bool joined = false;
	for (uint32_t i = 0; i < g->rank; i++)
		chunk[i] = g->chunk[i];
	for (uint32_t i = g->rank; i-- > 0 && bytes < min_chunk;) {
		uint64_t factor = min_u64(div_up_u64(min_chunk, bytes), g->count[i]);
		factor = min_u64(factor, CHUNK_BYTES_MAX / bytes);
		joined = joined || factor > 1;
		chunk[i] *= factor;
		bytes *= factor;
		if (factor < g->count[i])
			break; /* the dimensions before can only be joined if this one is whole */
	}
	return joined;
}

static int join(struct import *im, uint32_t number, struct err *err)
{
	struct dataset *ds = &tree_edit(im->tree, number)->dataset;
	const uint64_t elem_size = max_u64(codec_stored_elem_size(ds->type), ds->type->size);
	uint64_t chunk[DSPACE_MAX_RANK];
	struct grid grid;
	/* A fill value with items would have to be copied into each place without a chunk. */
	if (!dtype_is_plain(ds->type) && ds->fill_defined && elems_end(&ds->fill))
		return 0;
	if (!joined_chunk(&ds->grid, elem_size, im->opt->min_chunk, chunk))
		return 0;
	int rc = grid_init(tree_arena(im->tree), &grid, ds->grid.rank, ds->grid.dims, chunk, err);
	if (rc)
		return rc;
	if (!ds->requested_chunk) {
		uint32_t *requested =
			arena_array(tree_arena(im->tree), grid.rank, sizeof(*requested));
		if (!requested)
			return err_no_memory(err);
		memcpy(requested, ds->grid.chunk, grid.rank * sizeof(*requested));
		ds->requested_chunk = requested;
	}
	ds->grid = grid;
	return 0;
}

/* ---- all datasets ---- */

static bool has_chunks(const struct import *im, uint32_t number)
{
	const struct object *o = &tree_object(im->tree, number)->o;
	const struct h5file_dataset *file = h5file_dataset(im->file, number);
	return o->kind == OBJECT_DATASET && o->dataset.raw == RAW_STORED && file &&
	       file->grid.nchunks;
}

int import_plan(struct import *im, struct err *err)
{
	uint64_t small = 0;
	int rc = 0;
	im->datasets = calloc(tree_numbers(im->tree), sizeof(*im->datasets));
	if (!im->datasets)
		return err_no_memory(err);
	for (uint32_t i = 0; !rc && i < tree_count(im->tree); i++) {
		const uint32_t number = tree_nth(im->tree, i);
		if (!has_chunks(im, number))
			continue;
		rc = scan_dataset(im, number, &small, err);
		if (!rc && im->opt->min_chunk && im->datasets[number].is_ascending)
			rc = join(im, number, err);
	}
	if (!rc && small > MANY_CHUNKS && !im->opt->min_chunk && !im->opt->link)
		import_note(im,
			    "%" PRIu64 " chunks are smaller than 64 KiB, and each becomes an "
			    "object; --min-chunk=1M joins neighbouring chunks",
			    small);
	return rc;
}
