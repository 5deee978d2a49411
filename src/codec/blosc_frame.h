/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises, checks, decodes and encodes Blosc 1 frames. */
#ifndef CODEC_BLOSC_FRAME_H
#define CODEC_BLOSC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

enum { BLOSC_FRAME_HEADER = 16 };

struct blosc_frame {
	uint8_t flags;
	uint8_t typesize;
	uint32_t nbytes;    /* decoded size */
	uint32_t blocksize; /* decoded size of a block */
};

/* Returns true if an object of object_size bytes that begins with the n bytes of head looks like a
 * Blosc 1 frame. Returns false if n < BLOSC_FRAME_HEADER. */
bool blosc_frame_parse(const uint8_t *head, size_t n, uint64_t object_size, struct blosc_frame *f);
/* Decodes a whole frame into out, which is empty before the call, and belongs to the caller also
 * after an error. Fails with -EIO if the frame is damaged or has more than limit bytes, with
 * -EOPNOTSUPP if libblosc was built without the compressor, and with -ENOMEM. */
int blosc_frame_decode(const struct blosc_frame *f, const uint8_t *in, size_t n, uint64_t limit,
		       struct bytes *out, struct err *err);
/* Encodes n bytes as the service does, with typesize 1, into out, which is empty before the call,
 * and belongs to the caller also after an error. `compressor` is its name in Blosc. level is 0 to
 * 9. `shuffled` sets the flag of byte shuffle, which changes nothing if typesize is 1. Fails with
 * -EFBIG if a frame cannot hold as many bytes, with -EOPNOTSUPP if libblosc was built without the
 * compressor, and with -ENOMEM. */
int blosc_frame_encode(const char *compressor, int level, bool shuffled, const uint8_t *in,
		       size_t n, struct bytes *out, struct err *err);

#endif
