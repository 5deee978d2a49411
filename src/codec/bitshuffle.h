/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes bitshuffle with LZ4, the form in which HSDS stores a chunk whose pipeline has
 * bitshuffle. */
#ifndef CODEC_BITSHUFFLE_H
#define CODEC_BITSHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

/* Returns true if the bytes begin with a header that states `total` decoded bytes. */
bool bitshuffle_looks_like(const uint8_t *in, size_t n, uint64_t total);
/* Returns the most bytes to which `total` bytes can be encoded, or UINT64_MAX on overflow. */
uint64_t bitshuffle_bound(uint64_t total);
/* Decodes elements of elem_size bytes, `total` bytes in all, into out. out is empty before the
 * call, and belongs to the caller also after an error. Fails with -EIO if the bytes are damaged,
 * and with -ENOMEM. */
int bitshuffle_decode(const uint8_t *in, size_t n, size_t elem_size, uint64_t total,
		      struct bytes *out, struct err *err);
/* Does the reverse, in the blocks of HSDS. n is a multiple of elem_size, which is not 0. Fails with
 * -EOPNOTSUPP if elements are so large that LZ4 cannot compress a block, and with -ENOMEM. */
int bitshuffle_encode(const uint8_t *in, size_t n, size_t elem_size, struct bytes *out,
		      struct err *err);

#endif
