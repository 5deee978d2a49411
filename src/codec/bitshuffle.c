/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bitshuffle form (HSDS 2023-11 to 2024-09, the layout of the bitshuffle HDF5 filter with
 * LZ4):
 *
 *   +0  u64 BE  bytes decoded
 *   +8  u32 BE  bytes of a block, decoded
 *   +12         blocks, then the remaining elements
 *
 *   block:      +0 u32 BE  bytes of the LZ4 block
 *               +4         LZ4 block
 *
 * The number of elements in a block is a multiple of 8. The last block may have fewer, again a
 * multiple of 8. Up to 7 elements remain; they follow the last block as they are. In a block of N
 * elements, after LZ4, bit j of byte k of all elements is stored together: N / 8 bytes at offset
 * (k * 8 + j) * N / 8, with the first element in the lowest bit.
 */
#include "bitshuffle.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>

#include <base/cursor.h>

enum {
	HEADER = 12,
	BLOCK_MULTIPLE = 8,	    /* elements */
	BLOCK_DEFAULT_BYTES = 8192, /* if the header has 0 */
	BLOCK_DEFAULT_ELEMS = 128,  /* but at least so many elements */
	LZ4_RATIO = 255,	    /* no byte of LZ4 decodes to more bytes */
	BOUND_FACTOR = 4,	    /* worst case: a block of 8 bytes takes 4 + 8 + 8/255 + 16 */
};

bool bitshuffle_looks_like(const uint8_t *in, size_t n, uint64_t total)
{
	struct cursor c = cursor_of(in, n);
	uint64_t stated = cur_u64be(&c);
	cur_u32be(&c);
	return cur_ok(&c) && stated == total;
}

uint64_t bitshuffle_bound(uint64_t total)
{
	uint64_t bound = 0;
	return mul_u64(total, BOUND_FACTOR, &bound) && add_u64(bound, HEADER, &bound) ? bound
										      : UINT64_MAX;
}

/* Transposes a matrix of 8 x 8 bits: bit c of byte r becomes bit r of byte c. */
static uint64_t transpose8(uint64_t x)
{
	uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaULL;
	x ^= t ^ (t << 7);
	t = (x ^ (x >> 14)) & 0x0000cccc0000ccccULL;
	x ^= t ^ (t << 14);
	t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ULL;
	return x ^ t ^ (t << 28);
}

/* count: number of elements, a multiple of 8. */
static void unshuffle_bits(uint8_t *to, const uint8_t *from, size_t count, size_t elem_size)
{
	size_t row = count / 8; /* bytes that hold one bit of all elements */
	for (size_t k = 0; k < elem_size; k++) {
		for (size_t i = 0; i < row; i++) {
			uint64_t x = 0;
			for (size_t j = 0; j < 8; j++)
				x |= (uint64_t)from[(k * 8 + j) * row + i] << (8 * j);
			x = transpose8(x);
			for (size_t e = 0; e < 8; e++)
				to[(i * 8 + e) * elem_size + k] = (uint8_t)(x >> (8 * e));
		}
	}
}

static size_t default_block(size_t elem_size)
{
	size_t elems = BLOCK_DEFAULT_BYTES / elem_size / BLOCK_MULTIPLE * BLOCK_MULTIPLE;
	return elems < BLOCK_DEFAULT_ELEMS ? BLOCK_DEFAULT_ELEMS : elems;
}

/* Decodes a block of count elements at the cursor. bits: scratch memory of the block's size. */
static int decode_block(struct cursor *c, uint8_t *to, uint8_t *bits, size_t count,
			size_t elem_size, struct err *err)
{
	size_t size = count * elem_size;
	uint32_t len = cur_u32be(c);
	const uint8_t *lz4 = cur_bytes(c, len);
	if (!lz4 || len > INT32_MAX || size > INT32_MAX)
		return err_set(err, -EIO,
			       "bitshuffle: a block states %u bytes, more than the chunk has", len);
	int got = LZ4_decompress_safe((const char *)lz4, (char *)bits, (int)len, (int)size);
	if (got < 0 || (size_t)got != size)
		return err_set(err, -EIO, "bitshuffle: damaged LZ4 block");
	unshuffle_bits(to, bits, count, elem_size);
	return 0;
}

static int decode_blocks(struct cursor *c, uint8_t *to, uint64_t total, size_t elem_size,
			 size_t block, struct err *err)
{
	uint64_t left = total / elem_size;
	auto_free uint8_t *bits = malloc(min_u64(block, left) * elem_size + 1);
	if (!bits)
		return err_errno(err, -ENOMEM, "bitshuffle");
	while (left >= BLOCK_MULTIPLE) {
		size_t count = (size_t)min_u64(block, left / BLOCK_MULTIPLE * BLOCK_MULTIPLE);
		int rc = decode_block(c, to, bits, count, elem_size, err);
		if (rc)
			return rc;
		to += count * elem_size;
		left -= count;
	}
	size_t tail = (size_t)left * elem_size;
	const uint8_t *plain = cur_bytes(c, tail);
	if (!plain || cur_left(c) > 0)
		return err_set(err, -EIO, "bitshuffle: %s",
			       plain ? "bytes after the last element" : "the chunk is truncated");
	memcpy(to, plain, tail);
	return 0;
}

int bitshuffle_decode(const uint8_t *in, size_t n, size_t elem_size, uint64_t total,
		      struct bytes *out, struct err *err)
{
	struct cursor c = cursor_of(in, n);
	uint64_t stated = cur_u64be(&c);
	uint32_t block_bytes = cur_u32be(&c);
	if (!cur_ok(&c) || stated != total || elem_size == 0 || total % elem_size != 0)
		return err_set(err, -EIO,
			       "bitshuffle: the header states %llu bytes, the chunk has %llu",
			       (unsigned long long)stated, (unsigned long long)total);
	size_t block = block_bytes ? block_bytes / elem_size : default_block(elem_size);
	if (block == 0 || block % BLOCK_MULTIPLE != 0)
		return err_set(err, -EIO,
			       "bitshuffle: blocks of %u bytes have no multiple of 8 elements of "
			       "%zu bytes",
			       block_bytes, elem_size);
	/* So few bytes cannot decode to `total`: do not allocate memory for a false size. */
	if (total / LZ4_RATIO > n || total > SIZE_MAX - 1)
		return err_set(err, -EIO, "bitshuffle: %zu bytes cannot decode to %llu", n,
			       (unsigned long long)total);
	int rc = bytes_reserve(out, (size_t)total + 1);
	if (rc)
		return err_errno(err, rc, "bitshuffle");
	rc = decode_blocks(&c, out->data, total, elem_size, block, err);
	if (rc == 0)
		out->len = (size_t)total;
	return rc;
}
