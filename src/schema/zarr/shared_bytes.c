/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares what many arrays of a store have in common: names of attributes, numbers of dimensions,
 * chains. The shared copies are in the arena of the tree. Pure.
 */
#include "model_internal.h"

#include <errno.h>

struct zarr_shared {
	UT_hash_handle hh; /* of the build, by the bytes */
};

const void *zarr_share(struct zarr_build *b, const void *bytes, size_t n)
{
	struct zarr_shared *known;
	HASH_FIND(hh, b->shared, bytes, n, known);
	if (known)
		return known->hh.key;
	known = arena_alloc(b->scratch, sizeof(*known));
	const char *copy = arena_strndup(b->arena, bytes, n);
	if (!known || !copy)
		return NULL;
	HASH_ADD_KEYPTR(hh, b->shared, copy, n, known);
	return known->hh.tbl ? copy : NULL;
}

void zarr_share_end(struct zarr_build *b)
{
	HASH_CLEAR(hh, b->shared);
}

int zarr_space(struct zarr_build *b, struct dspace *s, uint32_t rank, const uint64_t *dims,
	       const uint64_t *max, struct err *err)
{
	const int rc = dspace_simple(b->scratch, s, rank, dims, max, err);
	if (rc)
		return rc;
	s->dims = zarr_share(b, s->dims, rank * sizeof(*s->dims));
	s->max = zarr_share(b, s->max, rank * sizeof(*s->max));
	return s->dims && s->max ? 0 : err_errno(err, -ENOMEM, "dimensions");
}

const struct codec_chain *zarr_chain(struct zarr_build *b, const struct codec_chain *c)
{
	if (!b->chain || !codec_chain_equal(b->chain, c))
		b->chain = codec_chain_copy(c, b->arena);
	return b->chain;
}
