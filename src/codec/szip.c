/* SPDX-License-Identifier: Apache-2.0 */
/*
 * szip (filter 4): the Rice coder of CCSDS 121.0-B, decoded by libaec. HDF5 writes:
 *
 *   +0  u32 LE  bytes decoded
 *   +4          szip stream
 *
 * The filter parameters are: 0 option mask, 1 pixels per block, 2 bits per pixel, 3 pixels per
 * scanline. Pixels of 32 and 64 bits are coded as byte planes, in pixels of 8 bits. A scanline
 * whose length is not a multiple of a block is padded to one.
 *
 * The decoder calls aec_buffer_decode() and not libaec's emulation of szlib, because the emulation
 * does not report a stream that ends too early, and returns memory that it has never written.
 */
#include "undo.h"

#include <errno.h>
#include <libaec.h>
#include <stdbool.h>
#include <string.h>

#include <base/cursor.h>
#include <data/shuffle.h>

enum { PARAMS = 4, HEADER = 4, BITS_SMALL = 24, BLOCK_MAX = 32, SCANLINE_MAX = 4096 };
enum { OPTION_MSB = 16, OPTION_NEAREST = 32 };

struct coding {
	uint32_t options, block, scanline; /* pixels */
	uint32_t bits;			   /* of a coded pixel */
	size_t pixel;			   /* bytes of a coded pixel */
	size_t planes;			   /* number of byte planes; 1 if there are none */
};

static bool read_params(const struct undo *u, struct coding *k)
{
	const uint32_t *p = u->f->params;
	if (u->f->nparams < PARAMS)
		return false;
	const uint32_t bits = p[2];
	const bool in_planes = bits == 32 || bits == 64;
	*k = (struct coding){.options = p[0],
			     .block = p[1],
			     .scanline = p[3],
			     .bits = in_planes ? 8 : bits,
			     .planes = in_planes ? bits / 8 : 1};
	k->pixel = k->bits <= 8 ? 1 : k->bits <= 16 ? 2 : 4;
	return k->block >= 2 && k->block <= BLOCK_MAX && k->block % 2 == 0 &&
	       k->scanline >= k->block && k->scanline <= SCANLINE_MAX && k->bits >= 1 &&
	       k->bits <= BITS_SMALL;
}

/* Decodes exactly `size` bytes to out. */
static int decode_stream(const struct coding *k, const uint8_t *in, size_t n, uint8_t *out,
			 size_t size, struct err *err)
{
	struct aec_stream s = {
		.next_in = in,
		.avail_in = n,
		.next_out = out,
		.avail_out = size,
		.bits_per_sample = k->bits,
		.block_size = k->block,
		.rsi = (k->scanline + k->block - 1) / k->block,
		.flags = (k->options & OPTION_MSB ? AEC_DATA_MSB : 0u) |
			 (k->options & OPTION_NEAREST ? AEC_DATA_PREPROCESS : 0u),
	};
	const int rc = aec_buffer_decode(&s);
	if (rc == AEC_MEM_ERROR)
		return err_errno(err, -ENOMEM, "szip");
	if (rc != AEC_OK || s.avail_out > 0)
		return err_set(err, -EIO, "szip: damaged stream of %zu bytes", n);
	return 0;
}

/* Decodes the scanlines with their padding, and removes it. `size` is the number of bytes without
 * it. */
static int decode_padded(const struct coding *k, const uint8_t *in, size_t n, struct bytes *out,
			 size_t size, struct err *err)
{
	const size_t line = k->scanline * k->pixel;
	const size_t padded = (k->scanline + k->block - 1) / k->block * k->block * k->pixel;
	const size_t lines = (size + line - 1) / line;
	/* A scanline has at least one block, so the size with padding is less than twice the size
	 * without it, plus one scanline. */
	int rc = bytes_reserve(out, lines * padded);
	if (rc)
		return err_errno(err, rc, "szip");
	rc = decode_stream(k, in, n, out->data, lines * padded, err);
	for (size_t i = 1; i < lines && rc == 0; i++)
		memmove(out->data + i * line, out->data + i * padded, line);
	out->len = size;
	return rc;
}

static int decode(const struct coding *k, const uint8_t *in, size_t n, struct bytes *out,
		  size_t size, struct err *err)
{
	if (k->scanline % k->block != 0)
		return decode_padded(k, in, n, out, size, err);
	int rc = bytes_reserve(out, size);
	if (rc)
		return err_errno(err, rc, "szip");
	out->len = size;
	return decode_stream(k, in, n, out->data, size, err);
}

int undo_szip(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	struct bytes planes auto_bytes = {0};
	struct cursor c = cursor_of(in, n);
	const uint32_t size = cur_u32(&c);
	struct coding k;
	if (!read_params(u, &k))
		return err_set(err, -EIO, "szip: invalid parameters");
	if (!cur_ok(&c) || size > u->limit || size % (k.pixel * k.planes) != 0)
		return err_set(err, -EIO, "szip: %zu bytes state %u, at most %llu are expected", n,
			       size, (unsigned long long)u->limit);
	if (size == 0)
		return 0;
	if (k.planes == 1)
		return decode(&k, in + HEADER, n - HEADER, out, size, err);
	int rc = decode(&k, in + HEADER, n - HEADER, &planes, size, err);
	if (rc)
		return rc;
	rc = bytes_reserve(out, size);
	if (rc)
		return err_errno(err, rc, "szip");
	unshuffle_bytes(out->data, planes.data, size, k.planes);
	out->len = size;
	return 0;
}
