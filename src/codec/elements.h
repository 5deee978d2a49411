/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the elements of a chunk object to the form of data/elems.h. */
#ifndef CODEC_ELEMENTS_H
#define CODEC_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include <codec/chunk.h>

/* in: all bytes of the chunk, after its filters were undone. out: empty before; after an error the
 * caller still releases it. -EIO: the bytes are not nelems elements of the type; -ENOMEM. */
int elements_decode(const struct codec_chunk *c, const uint8_t *in, size_t n, struct elems *out,
		    struct err *err);

#endif
