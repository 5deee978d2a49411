/* SPDX-License-Identifier: Apache-2.0 */
/* Bitshuffle with LZ4, as HSDS stores a chunk whose pipeline records bitshuffle. */
#ifndef CODEC_BITSHUFFLE_H
#define CODEC_BITSHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

/* in begins with a header that announces total bytes. */
bool bitshuffle_looks_like(const uint8_t *in, size_t n, uint64_t total);
/* An encoded chunk of total bytes is never longer. UINT64_MAX when it overflows. */
uint64_t bitshuffle_bound(uint64_t total);
/* Decodes total bytes of elements of elem_size bytes into out (empty before). -EIO, -ENOMEM. */
int bitshuffle_decode(const uint8_t *in, size_t n, size_t elem_size, uint64_t total,
		      struct bytes *out, struct err *err);

#endif
