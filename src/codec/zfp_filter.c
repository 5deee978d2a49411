/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter 32013, zfp (LLNL/H5Z-ZFP). The parameters of the filter, u32 each:
 *
 *   [0]    versions of the writer
 *   [1] …  a header of zfp as little-endian numbers: "zfp" and the version of the codec, the type
 *          and the shape of the chunk, and the four limits of a block
 *
 * A big-endian machine stores the header with its bytes swapped. Elements are stored as they are in
 * the memory of the writer.
 *
 * A chunk is the stream of blocks without a header. A block has 4 elements in each dimension, also
 * at the border, where the rest of it is not used.
 *
 * libzfp never checks whether the stream has ended. So the blocks are decoded one by one, with room
 * for the longest block after the input, and the position is compared with the input after each.
 * The library writes into a block of this file only, and keeps no state between calls.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <zfp.h>

#include "undo.h"

enum {
	DIMS = 4,
	EDGE = 4,				 /* elements of a block in one dimension */
	BLOCK_ELEMS = EDGE * EDGE * EDGE * EDGE, /* at most */
	ELEM_MAX = 8,				 /* bytes */
	/* A block takes at most 32,768 bits for its limits (ZFP_HEADER_FULL has 15 bits for each),
	 * and decodes at most two bits for each bit of its elements, besides its exponent. */
	BLOCK_ROOM = (1 << 15) / 8 + 2 * BLOCK_ELEMS * ELEM_MAX + 64,
	HEADER_PARAMS_MIN = 3,
	HEADER_PARAMS_MAX = 8, /* 148 bits, and what the library may read behind them */
	MAGIC = 'z' | 'f' << 8 | 'p' << 16,
	MAGIC_MASK = 0xffffff,
};

union block {
	int32_t i32[BLOCK_ELEMS];
	int64_t i64[BLOCK_ELEMS];
	float f32[BLOCK_ELEMS];
	double f64[BLOCK_ELEMS];
	uint8_t bytes[BLOCK_ELEMS * ELEM_MAX];
};

typedef void decode_fn(zfp_stream *z, union block *b);

/* A function for each type and number of dimensions, because those of the library differ in the
 * types of their arguments and, between versions, of their results. */
#define DECODER(type, member, dims)                                                                \
	static void decode_##type##_##dims(zfp_stream *z, union block *b)                          \
	{                                                                                          \
		zfp_decode_block_##type##_##dims(z, b->member);                                    \
	}
#define DECODERS(type, member)                                                                     \
	DECODER(type, member, 1)                                                                   \
	DECODER(type, member, 2)                                                                   \
	DECODER(type, member, 3)                                                                   \
	DECODER(type, member, 4)
#define ROW(type)                                                                                  \
	{                                                                                          \
		decode_##type##_1, decode_##type##_2, decode_##type##_3, decode_##type##_4         \
	}

DECODERS(int32, i32)
DECODERS(int64, i64)
DECODERS(float, f32)
DECODERS(double, f64)

static decode_fn *const decoders[][DIMS] = {
	[zfp_type_int32] = ROW(int32),
	[zfp_type_int64] = ROW(int64),
	[zfp_type_float] = ROW(float),
	[zfp_type_double] = ROW(double),
};

static void close_zfp(zfp_stream **z)
{
	if (*z)
		zfp_stream_close(*z);
}

static void close_bits(bitstream **b)
{
	if (*b)
		stream_close(*b);
}

/* A chunk: its shape, the fastest dimension first. */
struct chunk {
	decode_fn *decode;
	uint32_t elem_size;
	uint32_t dims;
	uint64_t shape[DIMS]; /* 1 for each dimension that it does not have */
	uint64_t size;	      /* bytes */
	bool is_swapped;      /* a big-endian machine has written it */
};

/* Returns the elements of a block in a dimension. */
static uint64_t edge_of(const struct chunk *c, uint32_t dim)
{
	return dim < c->dims ? EDGE : 1;
}

static int shape_of(const struct undo *u, const zfp_field *f, struct chunk *c, struct err *err)
{
	const size_t shape[DIMS] = {f->nx, f->ny, f->nz, f->nw};
	bool ok = f->type >= zfp_type_int32 && f->type <= zfp_type_double;
	c->elem_size = ok ? (uint32_t)zfp_type_size(f->type) : 0;
	c->size = c->elem_size;
	for (uint32_t i = 0; i < DIMS; i++) {
		if (shape[i] > 0)
			c->dims = i + 1;
		c->shape[i] = shape[i] ? shape[i] : 1;
		ok = ok && mul_u64(c->size, c->shape[i], &c->size);
	}
	if (!ok || c->dims == 0)
		return err_set(err, -EIO, "zfp: the header has no type or shape");
	if (c->elem_size != u->elem_size)
		return err_set(err, -EIO,
			       "zfp: elements of %u bytes, the dataset has elements of %u",
			       c->elem_size, u->elem_size);
	if (c->size > u->limit)
		return err_set(err, -EIO, "zfp: a chunk of %llu bytes, at most %llu are expected",
			       (unsigned long long)c->size, (unsigned long long)u->limit);
	c->decode = decoders[f->type][c->dims - 1];
	return 0;
}

/* Reads the header in the parameters. *z gets the limits of a block. */
static int read_header(const struct undo *u, zfp_stream *z, struct chunk *c, struct err *err)
{
	uint64_t header[HEADER_PARAMS_MAX] = {0};
	zfp_field field = {.type = zfp_type_none};
	uint32_t magic = undo_param(u, 1, 0);
	if (u->f->nparams <= HEADER_PARAMS_MIN)
		return err_set(err, -EIO, "zfp: %u parameters", u->f->nparams);
	c->is_swapped = (__builtin_bswap32(magic) & MAGIC_MASK) == MAGIC;
	if (c->is_swapped)
		magic = __builtin_bswap32(magic);
	if ((magic & MAGIC_MASK) != MAGIC)
		return err_set(err, -EIO, "zfp: the parameters have no header");
	if (magic >> 24 != zfp_codec_version)
		return err_set(err, -EOPNOTSUPP,
			       "zfp: version %u of the codec is not built in, only %u", magic >> 24,
			       zfp_codec_version);
	for (uint32_t i = 0; i < HEADER_PARAMS_MAX; i++) {
		const uint32_t v = undo_param(u, i + 1, 0);
		header[i / 2] |= (uint64_t)(c->is_swapped ? __builtin_bswap32(v) : v) << i % 2 * 32;
	}
	bitstream *bits __attribute__((cleanup(close_bits))) = stream_open(header, sizeof(header));
	if (!bits)
		return err_errno(err, -ENOMEM, "zfp");
	zfp_stream_set_bit_stream(z, bits);
	const size_t got = zfp_read_header(z, &field, ZFP_HEADER_FULL);
	zfp_stream_set_bit_stream(z, NULL);
	if (got == 0)
		return err_set(err, -EIO, "zfp: the header in the parameters is damaged");
	return shape_of(u, &field, c, err);
}

/* Copies those elements of a block that lie in the chunk. */
static void copy_block(const struct chunk *c, const union block *b, const uint64_t *at,
		       uint8_t *out)
{
	uint64_t n[DIMS], row = 0;
	for (uint32_t i = 0; i < DIMS; i++)
		n[i] = min_u64(edge_of(c, i), c->shape[i] - at[i]);
	const size_t bytes = n[0] * c->elem_size, step = edge_of(c, 0) * c->elem_size;
	for (uint64_t w = 0; w < edge_of(c, 3); w++)
		for (uint64_t z = 0; z < edge_of(c, 2); z++)
			for (uint64_t y = 0; y < edge_of(c, 1); y++, row++) {
				if (w >= n[3] || z >= n[2] || y >= n[1])
					continue;
				const uint64_t line =
					((at[3] + w) * c->shape[2] + at[2] + z) * c->shape[1] +
					at[1] + y;
				memcpy(out + (line * c->shape[0] + at[0]) * c->elem_size,
				       b->bytes + row * step, bytes);
			}
}

/* Moves to the next block. Returns false after the last one. */
static bool next_block(const struct chunk *c, uint64_t *at)
{
	for (uint32_t i = 0; i < c->dims; i++) {
		at[i] += EDGE;
		if (at[i] < c->shape[i])
			return true;
		at[i] = 0;
	}
	return false;
}

/* Decodes the blocks of a stream of n bytes, after which there is room for one more block. */
static int decode_blocks(const struct chunk *c, zfp_stream *z, bitstream *bits, size_t n,
			 uint8_t *out, struct err *err)
{
	uint64_t at[DIMS] = {0};
	union block b;
	do {
		const uint64_t before = stream_rtell(bits);
		c->decode(z, &b);
		assert(stream_rtell(bits) - before <= BLOCK_ROOM * 8);
		if (stream_rtell(bits) > (uint64_t)n * 8)
			return err_set(err, -EIO, "zfp: %zu bytes end within a block", n);
		copy_block(c, &b, at, out);
	} while (next_block(c, at));
	return 0;
}

static void swap_elements(uint8_t *p, uint64_t n, uint32_t elem_size)
{
	for (uint64_t at = 0; at < n; at += elem_size)
		for (uint32_t i = 0; i < elem_size / 2; i++) {
			const uint8_t first = p[at + i];
			p[at + i] = p[at + elem_size - 1 - i];
			p[at + elem_size - 1 - i] = first;
		}
}

static int decode(const struct chunk *c, zfp_stream *z, const uint8_t *in, size_t n,
		  struct bytes *out, struct err *err)
{
	struct bytes padded auto_bytes = {0};
	/* The library reads whole words. */
	const size_t whole = align_u64(n, sizeof(uint64_t));
	if (bytes_append(&padded, in, n) || bytes_append_zero(&padded, whole - n + BLOCK_ROOM) ||
	    bytes_reserve(out, c->size))
		return err_errno(err, -ENOMEM, "zfp");
	bitstream *bits __attribute__((cleanup(close_bits))) =
		stream_open(padded.data, whole + BLOCK_ROOM);
	if (!bits)
		return err_errno(err, -ENOMEM, "zfp");
	zfp_stream_set_bit_stream(z, bits);
	const int rc = decode_blocks(c, z, bits, n, out->data, err);
	out->len = rc ? 0 : c->size;
	if (!rc && c->is_swapped)
		swap_elements(out->data, c->size, c->elem_size);
	return rc;
}

int undo_zfp(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	zfp_stream *z __attribute__((cleanup(close_zfp))) = zfp_stream_open(NULL);
	struct chunk c = {0};
	if (!z)
		return err_errno(err, -ENOMEM, "zfp");
	const int rc = read_header(u, z, &c, err);
	return rc ? rc : decode(&c, z, in, n, out, err);
}
