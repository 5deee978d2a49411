/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoes one filter of an HDF5 file. Each filter has one function, in the file named after it. The
 * parameters of the filter and the bytes both come from the file, so neither can be trusted.
 */
#ifndef CODEC_UNDO_H
#define CODEC_UNDO_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/filter.h>

struct undo {
	const struct filter *f;
	uint32_t elem_size; /* of the dataset's type, bytes */
	uint64_t limit;	    /* most bytes that the filter may decode to */
};

/* Each function undoes its filter: it decodes the n bytes at `in` to out, which is empty before the
 * call, and belongs to the caller also after an error. Fails with -EIO if the bytes are damaged or
 * decode to more than u->limit bytes, with -EOPNOTSUPP if there is no decoder for this variant, and
 * with -ENOMEM. */
typedef int undo_fn(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out,
		    struct err *err);
undo_fn undo_lzf, undo_szip, undo_nbit, undo_scaleoffset, undo_lz4, undo_zstd, undo_bzip2,
	undo_blosc, undo_bitshuffle, undo_vbz, undo_zfp;

/* Returns parameter i of a filter, or `otherwise` if the file has fewer. */
static inline uint32_t undo_param(const struct undo *u, uint32_t i, uint32_t otherwise)
{
	return i < u->f->nparams ? u->f->params[i] : otherwise;
}

/* Makes room for more output of a decoder that does not know its size: at least doubles the room,
 * but never to more than limit + 1 bytes. The byte over the limit shows that the output is too
 * long. Fails with -ENOMEM. */
static inline int undo_grow(struct bytes *out, uint64_t limit)
{
	enum { FIRST = 1 << 20 };
	const uint64_t most = limit == UINT64_MAX ? limit : limit + 1;
	const uint64_t more = min_u64(max_u64(out->len, FIRST), most - out->len);
	return bytes_reserve(out, (size_t)min_u64(more, SIZE_MAX / 2));
}

#endif
