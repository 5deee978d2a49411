/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes Zstandard, frames of RFC 8878. Most encoders write the decoded size into the header of a
 * frame. Those that write piece by piece do not know it. A frame without this size decodes to at
 * most BLOCK_MAX bytes for each BLOCK_MIN of its own bytes. So the room for the output is known
 * before the first byte is decoded, and a frame needs no memory for the window that it states.
 * Filter 32015 has one frame; bytes after a frame without a size are ignored.
 */
#include "decoders.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "undo.h"

enum { BLOCK_MAX = 128 << 10, BLOCK_MIN = 3 };

static int damaged(size_t n, size_t zrc, struct err *err)
{
	return err_set(err, -EIO, "zstd: damaged frame of %zu bytes: %s", n,
		       ZSTD_getErrorName(zrc));
}

static int too_long(uint64_t limit, size_t n, struct err *err)
{
	return err_set(err, -EIO, "zstd: %zu bytes decode to more than %llu", n,
		       (unsigned long long)limit);
}

/* How many bytes frames decode to. `stated` is the sum of those that state it, and `bound` the most
 * that the others can decode to. */
struct sizes {
	uint64_t stated, bound;
};

/* Adds the frame at `in`. *len becomes its length in bytes. */
static int add_frame(const uint8_t *in, size_t n, uint64_t limit, struct sizes *s, size_t *len,
		     struct err *err)
{
	const unsigned long long size = ZSTD_getFrameContentSize(in, n);
	uint64_t more;
	if (size == ZSTD_CONTENTSIZE_ERROR)
		return err_set(err, -EIO, "zstd: %zu bytes are not a frame", n);
	if (size != ZSTD_CONTENTSIZE_UNKNOWN && size > limit - s->stated)
		return too_long(limit, n, err);
	*len = ZSTD_findFrameCompressedSize(in, n);
	if (ZSTD_isError(*len))
		return damaged(n, *len, err);
	if (size != ZSTD_CONTENTSIZE_UNKNOWN)
		s->stated += size;
	else if (!mul_u64(*len / BLOCK_MIN + 1, BLOCK_MAX, &more) ||
		 !add_u64(s->bound, more, &s->bound))
		s->bound = UINT64_MAX;
	return 0;
}

static uint64_t room_for(const struct sizes *s, uint64_t limit)
{
	return s->stated + min_u64(s->bound, limit - s->stated);
}

/* Decodes frames to at most `most` bytes, for which it makes room. */
static int decode(const uint8_t *in, size_t n, uint64_t most, uint64_t limit, struct bytes *out,
		  struct err *err)
{
	const int rc = most > SIZE_MAX ? -ENOMEM : bytes_reserve(out, most ? (size_t)most : 1);
	if (rc)
		return err_errno(err, rc, "zstd");
	const size_t got = ZSTD_decompress(out->data, (size_t)most, in, n);
	if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall &&
	    most == limit)
		return too_long(limit, n, err);
	if (ZSTD_isError(got))
		return damaged(n, got, err);
	out->len = got;
	return 0;
}

int zstd_decode(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, struct err *err)
{
	struct sizes all = {0};
	size_t at = 0, len = 0;
	int rc;
	do {
		rc = add_frame(in + at, n - at, limit, &all, &len, err);
		at += len;
	} while (rc == 0 && at < n);
	return rc ? rc : decode(in, n, room_for(&all, limit), limit, out, err);
}

int undo_zstd(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	struct sizes one = {0};
	size_t len = 0;
	const int rc = add_frame(in, n, u->limit, &one, &len, err);
	if (rc)
		return rc;
	return decode(in, one.bound ? len : n, room_for(&one, u->limit), u->limit, out, err);
}
