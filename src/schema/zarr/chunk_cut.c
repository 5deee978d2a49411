/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks that are too large for a dataset. A chunk without codecs, in C order, is cut: the dataset
 * gets smaller chunks, each of which is a contiguous part of a stored chunk, so that it is read
 * with a range. The smaller chunks divide one dimension of the stored chunk, have the length 1
 * along the dimensions before it, and the stored length along those after it. Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <inttypes.h>

#include <data/chunk_source.h>

enum { DIVISORS_TRIED = 4096 };
#define STORED_MAX (UINT64_C(1) << 40) /* bytes of a stored chunk; writers make none that large */

/* Returns the bytes of the elements of a chunk, or UINT64_MAX. */
static uint64_t chunk_bytes(const struct zarr_array *a, uint32_t elem_size)
{
	uint64_t bytes = elem_size;
	for (uint32_t i = 0; i < a->rank; i++)
		if (!mul_u64(bytes, a->chunk[i], &bytes))
			return UINT64_MAX;
	return bytes;
}

static bool is_stored_as_shown(const struct zarr_codecs *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->steps[i].codec != CODEC_WIDEN)
			return false;
	return true;
}

/* Returns the largest divisor of n that is not larger than `most`, or 0 if none was found. */
static uint64_t divisor(uint64_t n, uint64_t most)
{
	uint64_t parts = n / most + (n % most != 0);
	for (uint32_t i = 0; i < DIVISORS_TRIED && parts <= n; i++, parts++)
		if (n % parts == 0)
			return n / parts;
	return 0;
}

/* Cuts the chunk to `cut`. Returns false if it cannot be cut to parts of equal length. */
static bool cut_chunk(const struct zarr_array *a, uint32_t elem_size, uint64_t *cut)
{
	grid_cut(a->rank, a->chunk, elem_size, ZARR_PIECE_BYTES, cut);
	uint32_t i = 0;
	while (i < a->rank && cut[i] == 1)
		i++;
	if (i == a->rank || cut[i] == a->chunk[i])
		return true;
	/* The dataset has one stored chunk along this dimension: the last part may be shorter. */
	if (a->chunk[i] >= a->shape[i])
		return true;
	cut[i] = divisor(a->chunk[i], cut[i]);
	return cut[i];
}

/* No listing shows which chunks of the dataset are stored, so the file has room for all. */
static bool is_vast(const struct zarr_array *a, uint32_t elem_size, const uint64_t *cut)
{
	uint64_t bytes = elem_size;
	for (uint32_t i = 0; i < a->rank; i++)
		if (!mul_u64(bytes, div_up_u64(a->shape[i], cut[i]), &bytes) ||
		    !mul_u64(bytes, cut[i], &bytes))
			return true;
	return bytes > DATASET_DENSE_MAX;
}

static int over_limit(uint64_t bytes, const char *why, struct err *err)
{
	return err_set(err, -EOPNOTSUPP, "chunk of %" PRIu64 " bytes is over the limit of %d%s",
		       bytes, CHUNK_BYTES_MAX, why);
}

int zarr_chunk_fit(struct zarr_build *b, struct zarr_array *a, struct err *err)
{
	const uint32_t elem_size = zarr_element_shown(&a->element).size;
	const uint64_t bytes = chunk_bytes(a, elem_size);
	if (bytes <= CHUNK_BYTES_MAX)
		return 0;
	uint64_t *cut = arena_array(b->scratch, a->rank, sizeof(*cut));
	if (!cut)
		return err_errno(err, -ENOMEM, "chunks");
	if (bytes >= STORED_MAX || a->codecs.nshards || !is_stored_as_shown(&a->codecs))
		return over_limit(bytes, "", err);
	if (!cut_chunk(a, elem_size, cut))
		return over_limit(bytes, ", and its shape cannot be divided evenly", err);
	if (is_vast(a, elem_size, cut))
		return over_limit(bytes, ", and the array is too large to cut its chunks", err);
	a->stored_chunk = a->chunk;
	a->chunk = cut;
	return 0;
}
