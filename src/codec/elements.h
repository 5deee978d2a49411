/* SPDX-License-Identifier: Apache-2.0 */
/* From the elements of a stored chunk to elements in file form (data/elems.h). */
#ifndef CODEC_ELEMENTS_H
#define CODEC_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include <codec/chunk.h>

/* in: all bytes of the decoded chunk. out: empty before, unspecified after an error. -EIO when the
 * bytes are not nelems elements of the type, -ENOMEM. */
int elements_decode(const struct codec_chunk *c, const uint8_t *in, size_t n, struct elems *out,
		    struct err *err);

#endif
