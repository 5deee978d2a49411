/* SPDX-License-Identifier: Apache-2.0 */
/* Bitshuffle with LZ4, the form in which HSDS stores a chunk whose pipeline has bitshuffle. */
#ifndef CODEC_BITSHUFFLE_H
#define CODEC_BITSHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

/* True if the bytes begin with a header that states `total` decoded bytes. */
bool bitshuffle_looks_like(const uint8_t *in, size_t n, uint64_t total);
/* Most bytes to which `total` bytes can be encoded. UINT64_MAX on overflow. */
uint64_t bitshuffle_bound(uint64_t total);
/* Decodes elements of elem_size bytes, `total` bytes in all, into out, which is empty before and
 * the caller's also after an error. -EIO: damaged; -ENOMEM. */
int bitshuffle_decode(const uint8_t *in, size_t n, size_t elem_size, uint64_t total,
		      struct bytes *out, struct err *err);
/* The reverse, in the blocks of HSDS. n: a multiple of elem_size, which is not 0. -EOPNOTSUPP: such
 * a block is too large; -ENOMEM. */
int bitshuffle_encode(const uint8_t *in, size_t n, size_t elem_size, struct bytes *out,
		      struct err *err);

#endif
