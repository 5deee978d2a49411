/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a chunk to elements as they are in memory. */
#ifndef SUPPORT_DECODE_ELEMS_H
#define SUPPORT_DECODE_ELEMS_H

#include <codec/chunk.h>

/* As codec_chunk_decode(). The elements may not come shuffled. */
static inline int decode_elems(const struct codec_chunk *c, struct bytes *stored, struct elems *out,
			       struct err *err)
{
	struct chunk_data data;
	const int rc = codec_chunk_decode(c, stored, &data, err);
	*out = data.elems;
	return rc;
}

#endif
