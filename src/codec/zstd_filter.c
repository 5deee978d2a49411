/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zstandard (filter 32015): a frame of RFC 8878. Most encoders write the decoded size into the
 * header of the frame. A frame without a decoded size is decoded piece by piece.
 */
#include "undo.h"

#include <errno.h>
#include <zstd.h>

static int damaged(size_t n, size_t zrc, struct err *err)
{
	return err_set(err, -EIO, "zstd: damaged frame of %zu bytes: %s", n,
		       ZSTD_getErrorName(zrc));
}

static int too_long(const struct undo *u, size_t n, struct err *err)
{
	return err_set(err, -EIO, "zstd: %zu bytes decode to more than %llu", n,
		       (unsigned long long)u->limit);
}

static int decode_known(const uint8_t *in, size_t n, uint64_t size, struct bytes *out,
			struct err *err)
{
	const int rc = bytes_reserve(out, size ? (size_t)size : 1);
	if (rc)
		return err_errno(err, rc, "zstd");
	const size_t got = ZSTD_decompress(out->data, (size_t)size, in, n);
	if (ZSTD_isError(got) || got != size)
		return damaged(n, got, err);
	out->len = got;
	return 0;
}

static void free_stream(ZSTD_DStream **z)
{
	ZSTD_freeDStream(*z);
}

static int decode_unknown(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out,
			  struct err *err)
{
	ZSTD_DStream *z __attribute__((cleanup(free_stream))) = ZSTD_createDStream();
	ZSTD_inBuffer from = {.src = in, .size = n};
	size_t zrc = 1;
	if (!z)
		return err_errno(err, -ENOMEM, "zstd");
	while (zrc != 0) {
		const int rc = out->len == out->cap ? undo_grow(out, u->limit) : 0;
		if (rc)
			return err_errno(err, rc, "zstd");
		const size_t read = from.pos;
		ZSTD_outBuffer to = {.dst = out->data, .size = out->cap, .pos = out->len};
		zrc = ZSTD_decompressStream(z, &to, &from);
		if (ZSTD_isError(zrc))
			return damaged(n, zrc, err);
		if (to.pos > u->limit)
			return too_long(u, n, err);
		if (zrc != 0 && to.pos == out->len && from.pos == read)
			return err_set(err, -EIO, "zstd: frame of %zu bytes is truncated", n);
		out->len = to.pos;
	}
	return 0;
}

int undo_zstd(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	const unsigned long long size = ZSTD_getFrameContentSize(in, n);
	if (size == ZSTD_CONTENTSIZE_ERROR)
		return err_set(err, -EIO, "zstd: %zu bytes are not a frame", n);
	if (size == ZSTD_CONTENTSIZE_UNKNOWN)
		return decode_unknown(u, in, n, out, err);
	if (size > u->limit)
		return too_long(u, n, err);
	return decode_known(in, n, size, out, err);
}
