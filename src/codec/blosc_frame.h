/* SPDX-License-Identifier: Apache-2.0 */
/* Blosc 1 frames: recognise, check, decode. */
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
	uint32_t nbytes;    /* decoded */
	uint32_t blocksize; /* decoded bytes of a block */
};

/* True when an object of object_size bytes that begins with head has the form of a Blosc 1 frame.
 * n < BLOSC_FRAME_HEADER: false. */
bool blosc_frame_parse(const uint8_t *head, size_t n, uint64_t object_size, struct blosc_frame *f);
/* Decodes a whole frame into out (empty before). -EIO damaged or more than limit bytes;
 * -EOPNOTSUPP a compressor that libblosc was built without; -ENOMEM. */
int blosc_frame_decode(const struct blosc_frame *f, const uint8_t *in, size_t n, uint64_t limit,
		       struct bytes *out, struct err *err);

#endif
