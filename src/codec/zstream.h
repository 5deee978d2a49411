/* SPDX-License-Identifier: Apache-2.0 */
/* zlib streams: inflates them with a limit, deflates, and writes streams without compression.
 * gzip members are only inflated. */
#ifndef CODEC_ZSTREAM_H
#define CODEC_ZSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

#include "step_bytes.h"

/* Returns true if the first two bytes are a zlib header without a preset dictionary (RFC 1950,
 * 2.2). */
bool zstream_looks_like(const uint8_t *in, size_t n);
/* Inflates one stream into out, which is empty before the call, and belongs to the caller also
 * after an error. Stops as soon as the output is longer than limit bytes. *left becomes the number
 * of bytes of `in` after the stream. Fails with -EIO if the stream is damaged, truncated, or over
 * the limit, and with -ENOMEM. */
int zstream_inflate(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, size_t *left,
		    struct err *err);
/* Does the same with b: its bytes become those of the stream, with their checksum. */
int zstream_undo(struct step_bytes *b, uint64_t limit, size_t *left, struct err *err);

/* Inflates gzip members (RFC 1952), one after the other, into out, under the same rules. Zeros
 * behind a member are ignored, as gzip and Python ignore them. Fails with -EIO also if there is no
 * member, or if anything else is behind the last one. */
int zstream_gunzip(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, struct err *err);

/* Does the same as zstream_inflate() without keeping the output. *size becomes its length in bytes.
 * Takes at most 4 MiB of memory. */
int zstream_measure(const uint8_t *in, size_t n, uint64_t limit, uint64_t *size, size_t *left,
		    struct err *err);

/* Deflates n bytes, at most 2^31, and appends the stream to out. level is 0 to 9. Fails with
 * -ENOMEM. */
int zstream_deflate(const uint8_t *in, size_t n, int level, struct bytes *out, struct err *err);

/* Returns the size of a stream of stored blocks that holds n bytes, or UINT64_MAX on overflow. */
uint64_t zstream_stored_size(uint64_t n);
/* Writes n bytes as a stream of stored blocks that ends at `end` (exclusive). src must not overlap
 * the stream, except that it may be the n bytes before end. `adler` is the checksum of the bytes,
 * or NULL if it is not known. Returns the start of the stream. */
uint8_t *zstream_store(uint8_t *end, const uint8_t *src, size_t n, const uint32_t *adler);
/* Writes the `len` bytes from `at` on of such a stream of the n bytes at src, whose checksum is
 * `adler`. */
void zstream_stored_read(const uint8_t *src, size_t n, uint32_t adler, uint64_t at, uint8_t *out,
			 size_t len);
/* Returns the adler32 (RFC 1950, 8.2) of n bytes. */
uint32_t zstream_adler32(const uint8_t *bytes, size_t n);

#endif
