/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blosc 1 frames (c-blosc, README_CHUNK_FORMAT.rst). HSDS 0.6 and later store compressed chunks as
 * such frames:
 *
 *   +0  u8      version of the format: 2
 *   +1  u8      version of the compressor's format: 1 for all of them
 *   +2  u8      flags: 0x01 byte shuffle, 0x02 stored (data at +16), 0x04 bit shuffle,
 *               0x10 blocks not split, bits 5-7 compressor
 *   +3  u8      typesize; HSDS always writes 1
 *   +4  u32 LE  nbytes: decoded size
 *   +8  u32 LE  blocksize: decoded size of a block
 *   +12 u32 LE  cbytes, the whole frame
 *   +16         int32 LE offset of each block, then the blocks
 *
 * The header is checked before libblosc reads the frame, so a frame that states too large a size
 * costs no memory. libblosc checks the offsets and lengths of blocks and undoes both kinds of
 * shuffle. (Byte shuffle with typesize 1 changes nothing, but bit shuffle does.) One thread decodes
 * and encodes. The _ctx functions share no state between threads.
 */
#include "blosc_frame.h"

#include <blosc.h>
#include <errno.h>

#include <base/cursor.h>

#include "undo.h"

enum {
	FRAME_VERSION = 2,
	FRAME_VERSION_COMPRESSOR = 1,
	FRAME_FLAG_STORED = 0x02,
	FRAME_CODEC_SHIFT = 5,
	FRAME_AT_CBYTES = 12,
};

_Static_assert(BLOSC_FRAME_HEADER == BLOSC_MIN_HEADER_LENGTH, "Blosc 1 header");
_Static_assert(FRAME_VERSION == BLOSC_VERSION_FORMAT, "Blosc 1 format version");

/* libblosc's compressors by the format number of a frame. */
static const int codec_of_format[] = {BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_SNAPPY, BLOSC_ZLIB,
				      BLOSC_ZSTD};
enum { FORMATS = sizeof(codec_of_format) / sizeof(codec_of_format[0]) };

bool blosc_frame_parse(const uint8_t *head, size_t n, uint64_t object_size, struct blosc_frame *f)
{
	struct cursor c = cursor_of(head, n);
	uint8_t version = cur_u8(&c);
	uint8_t version_compressor = cur_u8(&c);
	f->flags = cur_u8(&c);
	f->typesize = cur_u8(&c);
	f->nbytes = cur_u32(&c);
	f->blocksize = cur_u32(&c);
	uint32_t cbytes = cur_u32(&c);
	return cur_ok(&c) && version == FRAME_VERSION &&
	       version_compressor == FRAME_VERSION_COMPRESSOR && f->typesize > 0 &&
	       cbytes == object_size;
}

static int check(const struct blosc_frame *f, const uint8_t *in, size_t n, uint64_t limit,
		 struct err *err)
{
	if (f->nbytes > limit)
		return err_set(err, -EIO, "Blosc frame states %u bytes, at most %llu are expected",
			       f->nbytes, (unsigned long long)limit);
	if (f->nbytes > 0 && (f->blocksize == 0 || f->blocksize > f->nbytes))
		return err_set(err, -EIO, "Blosc frame of %u bytes has impossible blocks of %u",
			       f->nbytes, f->blocksize);
	size_t nbytes = 0;
	if (blosc_cbuffer_validate(in, n, &nbytes) < 0 || nbytes != f->nbytes)
		return err_set(err, -EIO, "Blosc frame: the header is damaged");
	unsigned int format = f->flags >> FRAME_CODEC_SHIFT;
	const char *name = NULL;
	if (f->flags & FRAME_FLAG_STORED)
		return 0;
	if (format >= FORMATS || blosc_compcode_to_compname(codec_of_format[format], &name) < 0)
		return err_set(err, -EOPNOTSUPP, "Blosc frame: compressor %u is not built in",
			       format);
	return 0;
}

int blosc_frame_decode(const struct blosc_frame *f, const uint8_t *in, size_t n, uint64_t limit,
		       struct bytes *out, struct err *err)
{
	int rc = check(f, in, n, limit, err);
	if (rc)
		return rc;
	/* libblosc requires a destination even for 0 bytes. */
	rc = bytes_reserve(out, f->nbytes ? f->nbytes : 1);
	if (rc)
		return err_errno(err, rc, "Blosc frame of %u bytes", f->nbytes);
	int got = blosc_decompress_ctx(in, out->data, f->nbytes, 1);
	if (got < 0 || (uint32_t)got != f->nbytes)
		return err_set(err, -EIO,
			       "Blosc frame of %zu bytes is damaged; it should decode to %u", n,
			       f->nbytes);
	out->len = f->nbytes;
	return 0;
}

int blosc_frame_encode(const char *compressor, int level, bool shuffled, const uint8_t *in,
		       size_t n, struct bytes *out, struct err *err)
{
	enum { TYPESIZE = 1, THREADS = 1, ANY_BLOCK = 0 };
	const int shuffle = shuffled ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE;
	if (n > BLOSC_MAX_BUFFERSIZE)
		return err_set(err, -EFBIG, "a chunk of %zu bytes is too large for Blosc", n);
	if (blosc_compname_to_compcode(compressor) < 0)
		return err_set(err, -EOPNOTSUPP, "compressor \"%s\" is not built in", compressor);
	const int rc = bytes_reserve(out, n + BLOSC_MAX_OVERHEAD);
	if (rc)
		return err_errno(err, rc, "Blosc frame of %zu bytes", n);
	const int len = blosc_compress_ctx(level, shuffle, TYPESIZE, n, in, out->data,
					   n + BLOSC_MAX_OVERHEAD, compressor, ANY_BLOCK, THREADS);
	if (len <= 0)
		return err_set(err, -ENOMEM, "Blosc cannot encode %zu bytes with %s", n,
			       compressor);
	out->len = (size_t)len;
	bytes_trim(out);
	return 0;
}

/* Undoes filter 32001, whose chunk is a frame. Bytes after the frame are ignored, as by the
 * plug-in. */
int undo_blosc(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out,
	       struct err *err)
{
	struct blosc_frame f;
	struct cursor c = cursor_of(in, n);
	cur_skip(&c, FRAME_AT_CBYTES);
	const uint32_t cbytes = cur_u32(&c);
	if (!cur_ok(&c) || cbytes > n || !blosc_frame_parse(in, n, cbytes, &f))
		return err_set(err, -EIO, "blosc: %zu bytes are not a Blosc 1 frame", n);
	return blosc_frame_decode(&f, in, cbytes, u->limit, out, err);
}
