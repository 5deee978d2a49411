/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between the elements of a chunk object and the form of data/elems.h. */
#ifndef CODEC_ELEMENTS_H
#define CODEC_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <codec/chunk.h>

/* The most bytes of an encoded chunk. */
#define ELEMENTS_ENCODED_MAX (UINT64_C(1) << 31)

/* Decodes the elements of a chunk. `in` has all bytes of the chunk, after its filters were undone.
 * out is empty before the call; the caller releases it also after an error. Fails with -EIO if the
 * bytes are not nelems elements of the type, with -EOPNOTSUPP if items of a sequence have large
 * gaps, and with -ENOMEM. */
int elements_decode(const struct codec_chunk *c, const uint8_t *in, size_t n, struct elems *out,
		    struct err *err);
/* Returns true if the bytes are nelems elements of the type. Does not check the gaps of items,
 * which elements_decode() may refuse. Needs no memory. */
bool elements_fit(const struct dtype *t, uint64_t nelems, const uint8_t *in, size_t n);
/* Encodes elements. out is empty before the call; the caller releases it also after an error. Fails
 * with -EIO if `in` is not nelems valid elements, with -EOPNOTSUPP for region references and for
 * items of a sequence with large gaps, with -EFBIG, and with -ENOMEM. */
int elements_encode(const struct codec_encode *c, const struct elems *in, struct bytes *out,
		    struct err *err);
/* Returns true if the elements have no slots and no gaps, and the members of compounds are in the
 * order of their offsets. Both forms are then the same bytes. */
bool elements_are_packed(const struct dtype *t);

#endif
