/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a stored chunk of an HDF5 file can be a chunk object as it is. The filters that
 * were applied to it, without the checksums at the end, must be those of pipeline_of_object(). A
 * checksum in front of deflate is inside of the stream, where it cannot be cut off. The functions
 * are pure; any thread may call them.
 */
#include <codec/chunk.h>

#include "elements.h"
#include "fletcher32.h"
#include "recorded.h"
#include "zstream.h"

/* Returns whether a reader of the chunk object undoes exactly this filter. */
static bool is_same(const struct filter *applied, const struct filter *object,
		    const struct dtype *t)
{
	if (applied->id != object->id || recorded_is_bitshuffle(applied))
		return false;
	return applied->id != FILTER_SHUFFLE || applied->nparams == 0 ||
	       applied->params[0] == t->size;
}

int codec_verbatim(const struct pipeline *file, uint32_t filter_mask, const struct dtype *t,
		   const uint8_t *bytes, size_t n, size_t *keep, struct err *err)
{
	struct pipeline applied, object;
	*keep = 0;
	if (!elements_are_packed(t))
		return 0;
	applied.n = 0;
	for (uint32_t i = 0; i < file->n && i < FILTER_MAX; i++)
		if (!(filter_mask & (1u << i)))
			applied.f[applied.n++] = file->f[i];
	pipeline_of_object(file, &object);
	uint32_t sums = 0;
	while (applied.n > 0 && applied.f[applied.n - 1].id == FILTER_FLETCHER32) {
		applied.n--;
		sums++;
	}
	if (applied.n != object.n)
		return 0;
	for (uint32_t i = 0; i < applied.n; i++)
		if (!is_same(&applied.f[i], &object.f[i], t))
			return 0;
	for (; sums > 0; sums--) {
		const int rc = fletcher32_check(bytes, n, &n, err);
		if (rc)
			return rc;
	}
	/* If the first bytes are not those of a stream, the chunk is not copied, and its decoder
	 * reports the damage. */
	if (object.n == 0 || zstream_looks_like(bytes, n))
		*keep = n;
	return 0;
}

int codec_verbatim_length(const uint8_t *bytes, size_t n, uint64_t plain, size_t *length,
			  uint64_t *decoded, struct err *err)
{
	size_t left = 0;
	const int rc = zstream_measure(bytes, n, plain, decoded, &left, err);
	*length = n - left;
	return rc;
}
