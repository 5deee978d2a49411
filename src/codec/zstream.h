/* SPDX-License-Identifier: Apache-2.0 */
/* zlib streams: inflating with a limit, deflating, and writing without compression. */
#ifndef CODEC_ZSTREAM_H
#define CODEC_ZSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

/* True if the first two bytes are a zlib header without a preset dictionary (RFC 1950, 2.2). */
bool zstream_looks_like(const uint8_t *in, size_t n);
/* Inflates one stream into out, which is empty before and the caller's also after an error. Stops
 * as soon as the output is longer than limit bytes. *left: number of bytes of in after the stream.
 * -EIO: damaged, truncated, or over the limit; -ENOMEM. */
int zstream_inflate(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, size_t *left,
		    struct err *err);

/* The same, but the output is not kept: *size is its length. */
int zstream_measure(const uint8_t *in, size_t n, uint64_t limit, uint64_t *size, size_t *left,
		    struct err *err);

/* Appends a stream of n bytes, at most 2^31, to out. level: 0 to 9. -ENOMEM. */
int zstream_deflate(const uint8_t *in, size_t n, int level, struct bytes *out, struct err *err);

/* Size of a stream of stored blocks that holds n bytes. UINT64_MAX on overflow. */
uint64_t zstream_stored_size(uint64_t n);
/* Writes n bytes as a stream of stored blocks that ends at `end` (exclusive). src must not overlap
 * the stream, except that it may be the n bytes before end. Returns the start of the stream. */
uint8_t *zstream_store(uint8_t *end, const uint8_t *src, size_t n);

#endif
