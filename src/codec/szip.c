/* SPDX-License-Identifier: Apache-2.0 */
/*
 * szip (filter 4): the Rice coder of CCSDS 121.0-B, decoded by libaec. HDF5 writes
 *
 *   +0  u32 LE  bytes decoded
 *   +4          szip stream
 *
 * The filter parameters are: 0 option mask, 1 pixels per block, 2 bits per pixel, 3 pixels per
 * scanline. libaec divides by some of them and allocates memory by others, so they are checked
 * against the limits of szip first.
 */
#include "undo.h"

#include <errno.h>
#include <stdbool.h>
#include <szlib.h>

#include <base/cursor.h>

enum { PARAMS = 4, HEADER = 4, BITS_SMALL = 24, BLOCK_MAX = 32, SCANLINE_MAX = 4096 };

static bool is_valid(const struct undo *u, SZ_com_t *s)
{
	const uint32_t *p = u->f->params;
	if (u->f->nparams < PARAMS)
		return false;
	const uint32_t block = p[1], bits = p[2], scanline = p[3];
	*s = (SZ_com_t){.options_mask = (int)(p[0] & INT32_MAX),
			.pixels_per_block = (int)(block & INT32_MAX),
			.bits_per_pixel = (int)(bits & INT32_MAX),
			.pixels_per_scanline = (int)(scanline & INT32_MAX)};
	return block >= 2 && block <= BLOCK_MAX && block % 2 == 0 && scanline >= block &&
	       scanline <= SCANLINE_MAX &&
	       ((bits >= 1 && bits <= BITS_SMALL) || bits == 32 || bits == 64);
}

/* Bytes of a pixel in the decoded bytes. */
static size_t pixel_size(const SZ_com_t *s)
{
	const int bits = s->bits_per_pixel;
	return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

int undo_szip(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	struct cursor c = cursor_of(in, n);
	const uint32_t size = cur_u32(&c);
	SZ_com_t s;
	if (!is_valid(u, &s))
		return err_set(err, -EIO, "szip: invalid parameters");
	if (!cur_ok(&c) || size > u->limit || size % pixel_size(&s) != 0)
		return err_set(err, -EIO, "szip: %zu bytes state %u, at most %llu are expected", n,
			       size, (unsigned long long)u->limit);
	if (size == 0)
		return 0;
	/* libaec may leave bytes unset if the stream is damaged. */
	int rc = bytes_append_zero(out, size);
	if (rc)
		return err_errno(err, rc, "szip");
	size_t got = size;
	rc = SZ_BufftoBuffDecompress(out->data, &got, in + HEADER, n - HEADER, &s);
	if (rc == SZ_MEM_ERROR)
		return err_errno(err, -ENOMEM, "szip");
	if (rc != SZ_OK || got != size)
		return err_set(err, -EIO, "szip: damaged stream of %zu bytes (error %d)", n, rc);
	return 0;
}
