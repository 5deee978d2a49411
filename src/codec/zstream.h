/* SPDX-License-Identifier: Apache-2.0 */
/* zlib streams: bounded inflating, and deflating without compression. */
#ifndef CODEC_ZSTREAM_H
#define CODEC_ZSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

/* The first two bytes are a zlib header without a preset dictionary (RFC 1950, 2.2). */
bool zstream_looks_like(const uint8_t *in, size_t n);
/* Inflates one stream into out (empty before), at most limit bytes: stops as soon as there is one
 * more. *left: bytes of in behind the stream. -EIO damaged, cut off, or over the limit; -ENOMEM. */
int zstream_inflate(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, size_t *left,
		    struct err *err);

/* Bytes of n bytes as a stream of stored blocks. UINT64_MAX when it overflows. */
uint64_t zstream_stored_size(uint64_t n);
/* Lays n bytes down as a stream of stored blocks that ends at `end` (exclusive). src may lie
 * anywhere outside the result, or be the n bytes in front of end. Returns its first byte. */
uint8_t *zstream_store(uint8_t *end, const uint8_t *src, size_t n);

#endif
