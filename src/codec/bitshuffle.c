/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bitshuffle (filter 32008). If it has a compressor, LZ4 or Zstandard, the layout is the following.
 * HSDS 2023-11 to 2024-09 writes it, too, with LZ4.
 *
 *   +0  u64 BE  bytes decoded
 *   +8  u32 BE  bytes of a block, decoded
 *   +12         blocks, then the remaining elements
 *
 *   block:      +0 u32 BE  bytes of the compressed block
 *               +4         LZ4 block or Zstandard frame
 *
 * Without a compressor there is no header, and the blocks are not compressed.
 *
 * The number of elements in a block is a multiple of 8. The last block may have fewer elements,
 * again a multiple of 8. Up to 7 elements remain after it, which are stored unchanged. In a
 * decompressed block of N elements, bit j of byte k of all elements is stored together: N / 8 bytes
 * at offset (k * 8 + j) * N / 8, with the first element in the lowest bit.
 */
#include "bitshuffle.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <data/shuffle.h>

#include "undo.h"

enum {
	HEADER = 12,
	BLOCK_MULTIPLE = 8,	    /* elements */
	BLOCK_DEFAULT_BYTES = 8192, /* if the header has 0 */
	BLOCK_DEFAULT_ELEMS = 128,  /* the least number of elements in that case */
	LZ4_RATIO = 255,	    /* one byte of LZ4 decodes to at most this many */
	HSDS_BLOCK_ELEMS = 2048,    /* bit_shuffle_default_blocksize */
	BOUND_FACTOR = 4,	    /* worst case: a block of 8 bytes takes 4 + 8 + 8/255 + 16 */
};

/* How the blocks are compressed. The numbers are those of the filter's parameters. */
enum inside { INSIDE_NONE = 0, INSIDE_LZ4 = 2, INSIDE_ZSTD = 3 };

struct blocks {
	enum inside inside;
	size_t elem_size;
	size_t elems;	  /* in a block, a multiple of 8 */
	ZSTD_DCtx *zstd;  /* NULL unless needed */
	uint8_t *scratch; /* memory for a decompressed block */
	uint8_t *planes;  /* memory for a block, byte by byte */
	uint8_t *rows;	  /* memory for a byte of all elements of a block */
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

typedef uint64_t wide __attribute__((vector_size(16)));

/* Exchanges the bits of v[j] that the mask lacks with the bits of v[j + d] that the mask has. */
static inline __attribute__((always_inline)) void exchange(wide *v, unsigned int d, uint64_t mask)
{
#pragma GCC unroll 8
	for (unsigned int j = 0; j < 8; j++) {
		if (j & d)
			continue;
		const wide t = ((v[j] >> d) ^ v[j + d]) & mask;
		v[j + d] ^= t;
		v[j] ^= t << d;
	}
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

/* Transposes eight rows of `row` bytes: in each column, bit r of row j becomes bit j of row r. */
static void transpose_rows(uint8_t *to, const uint8_t *from, size_t row)
{
	size_t i = 0;
	for (; row - i >= sizeof(wide); i += sizeof(wide)) {
		wide v[8];
		for (size_t j = 0; j < 8; j++)
			memcpy(&v[j], from + j * row + i, sizeof(wide));
		exchange(v, 4, 0x0f0f0f0f0f0f0f0fULL);
		exchange(v, 2, 0x3333333333333333ULL);
		exchange(v, 1, 0x5555555555555555ULL);
		for (size_t j = 0; j < 8; j++)
			memcpy(to + j * row + i, &v[j], sizeof(wide));
	}
	for (; i < row; i++) {
		uint64_t x = 0;
		for (size_t j = 0; j < 8; j++)
			x |= (uint64_t)from[j * row + i] << (8 * j);
		x = transpose8(x);
		for (size_t j = 0; j < 8; j++)
			to[j * row + i] = (uint8_t)(x >> (8 * j));
	}
}

/* Undoes the shuffle of a block of `count` elements, a multiple of 8. It takes three steps, each of
 * which works on whole vectors: the first one brings the bits of eight elements together, the
 * second one byte k of all elements in order, the third one the bytes of each element. */
static void unshuffle_bits(const struct blocks *b, uint8_t *to, const uint8_t *from, size_t count)
{
	uint8_t *planes = b->elem_size == 1 ? to : b->planes;
	for (size_t k = 0; k < b->elem_size; k++) {
		transpose_rows(b->rows, from + k * count, count / 8);
		unshuffle_bytes(planes + k * count, b->rows, count, 8);
	}
	if (b->elem_size > 1)
		unshuffle_bytes(to, planes, count * b->elem_size, b->elem_size);
}

static size_t default_block(size_t elem_size)
{
	size_t elems = BLOCK_DEFAULT_BYTES / elem_size / BLOCK_MULTIPLE * BLOCK_MULTIPLE;
	return elems < BLOCK_DEFAULT_ELEMS ? BLOCK_DEFAULT_ELEMS : elems;
}

static int decompress_lz4(const uint8_t *in, uint32_t len, uint8_t *bits, size_t size)
{
	if (len > INT32_MAX || size > INT32_MAX)
		return -1;
	const int got = LZ4_decompress_safe((const char *)in, (char *)bits, (int)len, (int)size);
	return got >= 0 && (size_t)got == size ? 0 : -1;
}

static int decompress_zstd(ZSTD_DCtx *z, const uint8_t *in, uint32_t len, uint8_t *bits,
			   size_t size)
{
	const size_t got = ZSTD_decompressDCtx(z, bits, size, in, len);
	return !ZSTD_isError(got) && got == size ? 0 : -1;
}

/* Decodes a block of count elements at the cursor. */
static int decode_block(const struct blocks *b, struct cursor *c, uint8_t *to, size_t count,
			struct err *err)
{
	const size_t size = count * b->elem_size;
	const uint32_t len = b->inside == INSIDE_NONE ? 0 : cur_u32be(c);
	const uint8_t *bytes = cur_bytes(c, b->inside == INSIDE_NONE ? size : len);
	if (!bytes)
		return err_set(err, -EIO,
			       "bitshuffle: a block states %u bytes, more than the chunk has", len);
	if (b->inside == INSIDE_NONE) {
		unshuffle_bits(b, to, bytes, count);
		return 0;
	}
	if (b->inside == INSIDE_LZ4 && decompress_lz4(bytes, len, b->scratch, size))
		return err_set(err, -EIO, "bitshuffle: damaged LZ4 block");
	if (b->inside == INSIDE_ZSTD && decompress_zstd(b->zstd, bytes, len, b->scratch, size))
		return err_set(err, -EIO, "bitshuffle: damaged Zstandard frame");
	unshuffle_bits(b, to, b->scratch, count);
	return 0;
}

static void blocks_release(struct blocks *b)
{
	ZSTD_freeDCtx(b->zstd);
	free(b->scratch);
	free(b->planes);
	free(b->rows);
}

static int blocks_prepare(struct blocks *b, uint64_t total, struct err *err)
{
	const size_t elems = (size_t)min_u64(b->elems, total / b->elem_size);
	if (elems < BLOCK_MULTIPLE)
		return 0;
	b->planes = malloc(elems * b->elem_size);
	b->rows = malloc(elems);
	b->scratch = b->inside == INSIDE_NONE ? NULL : malloc(elems * b->elem_size);
	b->zstd = b->inside == INSIDE_ZSTD ? ZSTD_createDCtx() : NULL;
	if (!b->planes || !b->rows || (b->inside != INSIDE_NONE && !b->scratch) ||
	    (b->inside == INSIDE_ZSTD && !b->zstd))
		return err_errno(err, -ENOMEM, "bitshuffle");
	return 0;
}

static int decode_blocks(const struct blocks *b, struct cursor *c, uint64_t total, uint8_t *to,
			 struct err *err)
{
	uint64_t left = total / b->elem_size;
	while (left >= BLOCK_MULTIPLE) {
		size_t count = (size_t)min_u64(b->elems, left / BLOCK_MULTIPLE * BLOCK_MULTIPLE);
		int rc = decode_block(b, c, to, count, err);
		if (rc)
			return rc;
		to += count * b->elem_size;
		left -= count;
	}
	size_t tail = (size_t)left * b->elem_size;
	const uint8_t *plain = cur_bytes(c, tail);
	if (!plain || cur_left(c) > 0)
		return err_set(err, -EIO, "bitshuffle: %s",
			       plain ? "bytes after the last element" : "the chunk is truncated");
	memcpy(to, plain, tail);
	return 0;
}

/* Decodes `total` bytes, a multiple of the element size. */
static int decode(struct blocks *b, struct cursor *c, uint64_t total, struct bytes *out,
		  struct err *err)
{
	int rc = total > SIZE_MAX - 1 ? -ENOMEM : bytes_reserve(out, (size_t)total + 1);
	if (rc)
		return err_errno(err, rc, "bitshuffle");
	rc = blocks_prepare(b, total, err);
	if (rc == 0)
		rc = decode_blocks(b, c, total, out->data, err);
	if (rc == 0)
		out->len = (size_t)total;
	blocks_release(b);
	return rc;
}

/* Returns the number of elements of a block of so many bytes, or 0 if that is no valid size. */
static size_t block_elems(uint32_t block_bytes, size_t elem_size)
{
	const size_t elems = block_bytes ? block_bytes / elem_size : default_block(elem_size);
	return elems % BLOCK_MULTIPLE == 0 ? elems : 0;
}

/* Reads the header and decodes the bytes that follow it. `total` is the expected size. If it is
 * UINT64_MAX, any size up to limit is accepted. */
static int decode_compressed(const uint8_t *in, size_t n, enum inside inside, size_t elem_size,
			     uint64_t total, uint64_t limit, struct bytes *out, struct err *err)
{
	struct cursor c = cursor_of(in, n);
	const uint64_t stated = cur_u64be(&c);
	const uint32_t block_bytes = cur_u32be(&c);
	const bool fits = total == UINT64_MAX ? stated <= limit : stated == total;
	if (!cur_ok(&c) || !fits || elem_size == 0 || stated % elem_size != 0)
		return err_set(err, -EIO,
			       "bitshuffle: the header states %llu bytes, the chunk has %llu",
			       (unsigned long long)stated,
			       (unsigned long long)(total == UINT64_MAX ? limit : total));
	struct blocks b = {.inside = inside, .elem_size = elem_size};
	b.elems = block_elems(block_bytes, elem_size);
	if (b.elems == 0)
		return err_set(err, -EIO,
			       "bitshuffle: blocks of %u bytes have no multiple of 8 elements of "
			       "%zu bytes",
			       block_bytes, elem_size);
	/* So few bytes cannot decode to `stated` bytes. Do not allocate memory for a false size. */
	if (inside == INSIDE_LZ4 && stated / LZ4_RATIO > n)
		return err_set(err, -EIO, "bitshuffle: %zu bytes cannot decode to %llu", n,
			       (unsigned long long)stated);
	return decode(&b, &c, stated, out, err);
}

int bitshuffle_decode(const uint8_t *in, size_t n, size_t elem_size, uint64_t total,
		      struct bytes *out, struct err *err)
{
	return decode_compressed(in, n, INSIDE_LZ4, elem_size, total, total, out, err);
}

/* ---- encoding ---- */

/* Does the reverse of unshuffle_bits(). */
static void shuffle_bits(const struct blocks *b, uint8_t *to, const uint8_t *from, size_t count)
{
	shuffle_bytes(b->planes, from, count * b->elem_size, b->elem_size);
	for (size_t k = 0; k < b->elem_size; k++) {
		shuffle_bytes(b->rows, b->planes + k * count, count, 8);
		transpose_rows(to + k * count, b->rows, count / 8);
	}
}

static int put_block(const struct blocks *b, const uint8_t *from, size_t count, struct bytes *out,
		     struct err *err)
{
	enum { LENGTH = 4 };
	const size_t size = count * b->elem_size;
	const int bound = LZ4_compressBound((int)size);
	shuffle_bits(b, b->scratch, from, count);
	if (bytes_reserve(out, LENGTH + (size_t)bound))
		return err_errno(err, -ENOMEM, "bitshuffle");
	const int len = LZ4_compress_default(
		(const char *)b->scratch, (char *)out->data + out->len + LENGTH, (int)size, bound);
	if (len <= 0)
		return err_errno(err, -ENOMEM, "bitshuffle: LZ4");
	struct emit e = emit_to(out->data + out->len, LENGTH);
	emit_u32(&e, __builtin_bswap32((uint32_t)len));
	out->len += LENGTH + (size_t)len;
	return 0;
}

static int put_blocks(const struct blocks *b, const uint8_t *in, size_t n, struct bytes *out,
		      struct err *err)
{
	size_t left = n / b->elem_size;
	while (left >= BLOCK_MULTIPLE) {
		const size_t count =
			left < b->elems ? left / BLOCK_MULTIPLE * BLOCK_MULTIPLE : b->elems;
		const int rc = put_block(b, in, count, out, err);
		if (rc)
			return rc;
		in += count * b->elem_size;
		left -= count;
	}
	return bytes_append(out, in, left * b->elem_size) ? err_errno(err, -ENOMEM, "bitshuffle")
							  : 0;
}

int bitshuffle_encode(const uint8_t *in, size_t n, size_t elem_size, struct bytes *out,
		      struct err *err)
{
	struct blocks b = {.inside = INSIDE_LZ4, .elem_size = elem_size, .elems = HSDS_BLOCK_ELEMS};
	uint8_t header[HEADER];
	if (elem_size > LZ4_MAX_INPUT_SIZE / HSDS_BLOCK_ELEMS)
		return err_set(err, -EOPNOTSUPP, "bitshuffle: elements of %zu bytes are too large",
			       elem_size);
	struct emit e = emit_to(header, sizeof(header));
	emit_u64(&e, __builtin_bswap64(n));
	emit_u32(&e, __builtin_bswap32((uint32_t)(HSDS_BLOCK_ELEMS * elem_size)));
	int rc = bytes_append(out, header, sizeof(header));
	if (rc)
		return err_errno(err, rc, "bitshuffle");
	rc = blocks_prepare(&b, n, err);
	if (rc == 0)
		rc = put_blocks(&b, in, n, out, err);
	blocks_release(&b);
	return rc;
}

int undo_bitshuffle(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out,
		    struct err *err)
{
	enum { PARAM_ELEM_SIZE = 2, PARAM_BLOCK = 3, PARAM_INSIDE = 4 };
	const uint32_t elem_size = undo_param(u, PARAM_ELEM_SIZE, u->elem_size);
	const uint32_t inside = undo_param(u, PARAM_INSIDE, INSIDE_NONE);
	if (elem_size == 0)
		return err_set(err, -EIO, "bitshuffle: elements of 0 bytes");
	if (inside == INSIDE_LZ4 || inside == INSIDE_ZSTD)
		return decode_compressed(in, n, (enum inside)inside, elem_size, UINT64_MAX,
					 u->limit, out, err);
	if (inside != INSIDE_NONE)
		return err_set(err, -EOPNOTSUPP, "bitshuffle: compressor %u is not built in",
			       inside);
	if (n > u->limit || n % elem_size != 0)
		return err_set(err, -EIO,
			       "bitshuffle: %zu bytes in elements of %u, at most %llu are expected",
			       n, elem_size, (unsigned long long)u->limit);
	const uint32_t elems = undo_param(u, PARAM_BLOCK, 0);
	struct blocks b = {.inside = INSIDE_NONE, .elem_size = elem_size};
	b.elems = elems ? elems : default_block(elem_size);
	if (b.elems % BLOCK_MULTIPLE != 0)
		return err_set(err, -EIO, "bitshuffle: blocks of %u elements", elems);
	struct cursor c = cursor_of(in, n);
	return decode(&b, &c, n, out, err);
}
