/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between the elements of a chunk object and the form of data/elems.h. */
#ifndef CODEC_ELEMENTS_H
#define CODEC_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <codec/chunk.h>

/* Most bytes of an encoded chunk. */
#define ELEMENTS_ENCODED_MAX (UINT64_C(1) << 31)

/* in: all bytes of the chunk, after its filters were undone. out: empty before; after an error the
 * caller still releases it. -EIO if the bytes are not nelems elements of the type; -EOPNOTSUPP:
 * items of a sequence with large gaps; -ENOMEM. */
int elements_decode(const struct codec_chunk *c, const uint8_t *in, size_t n, struct elems *out,
		    struct err *err);
/* True if elements_decode() accepts the bytes, except for references and gaps. Needs no memory. */
bool elements_fit(const struct dtype *t, uint64_t nelems, const uint8_t *in, size_t n);
/* out: empty before; after an error the caller still releases it. -EIO: `in` is not nelems valid
 * elements; -EOPNOTSUPP: region references, or items of a sequence with large gaps; -EFBIG;
 * -ENOMEM. */
int elements_encode(const struct codec_encode *c, const struct elems *in, struct bytes *out,
		    struct err *err);
/* True if the elements have no slots and no gaps, and the members of compounds are in the order of
 * their offsets: then both forms are the same bytes. */
bool elements_are_packed(const struct dtype *t);

#endif
