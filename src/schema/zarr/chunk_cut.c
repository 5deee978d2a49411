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

enum { DIVISORS_TRIED = 1 << 16 };
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

int zarr_chunk_fit(struct zarr_build *b, struct zarr_array *a, struct err *err)
{
	const uint32_t elem_size = zarr_element_shown(&a->element).size;
	const uint64_t bytes = chunk_bytes(a, elem_size);
	if (bytes <= CHUNK_BYTES_MAX)
		return 0;
	uint64_t *cut = arena_array(b->scratch, a->rank, sizeof(*cut));
	if (!cut)
		return err_errno(err, -ENOMEM, "chunks");
	if (bytes >= STORED_MAX || !is_stored_as_shown(&a->codecs) || !cut_chunk(a, elem_size, cut))
		return err_set(err, -EOPNOTSUPP,
			       "chunk of %" PRIu64 " bytes is over the limit of %d", bytes,
			       CHUNK_BYTES_MAX);
	a->stored_chunk = a->chunk;
	a->chunk = cut;
	return 0;
}
