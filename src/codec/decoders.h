/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders that filters of HDF5 files and codecs of arrays share. Each of them decodes the n bytes
 * at `in` into `out`, which is empty before the call, and belongs to the caller also after an
 * error. They fail with -EIO if the bytes are damaged or decode to more than `limit` bytes, and
 * with -ENOMEM. They are pure; any thread may call them.
 */
#ifndef CODEC_DECODERS_H
#define CODEC_DECODERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

/* Decodes bzip2 streams. If `several` is true, they follow each other up to the end. Otherwise
 * there is one stream, and bytes after it are ignored. */
int bzip2_decode(const uint8_t *in, size_t n, uint64_t limit, bool several, struct bytes *out,
		 struct err *err);
/* Decodes frames of RFC 8878, which follow each other up to the end, with or without a stated size.
 */
int zstd_decode(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, struct err *err);

#endif
