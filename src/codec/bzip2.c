/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes bzip2 streams, which state no size. Filter 307 has one stream; bytes after it are
 * ignored. */
#include "decoders.h"

#include <bzlib.h>
#include <errno.h>
#include <limits.h>

#include "undo.h"

static void end_stream(bz_stream **z)
{
	BZ2_bzDecompressEnd(*z);
}

static int failed(int code, size_t n, struct err *err)
{
	if (code == BZ_MEM_ERROR)
		return err_errno(err, -ENOMEM, "bzip2");
	return err_set(err, -EIO, "bzip2: %zu bytes are not a valid stream (error %d)", n, code);
}

/* Decodes the stream at z->next_in, and moves z->next_in behind it. n is the size of the whole
 * input, for messages. */
static int decode_one(bz_stream *z, size_t n, uint64_t limit, struct bytes *out, struct err *err)
{
	int code = BZ_OK;
	while (code != BZ_STREAM_END) {
		const int rc = out->len == out->cap ? undo_grow(out, limit) : 0;
		if (rc)
			return err_errno(err, rc, "bzip2");
		const unsigned int room = (unsigned int)min_u64(out->cap - out->len, UINT_MAX);
		z->next_out = (char *)out->data + out->len;
		z->avail_out = room;
		code = BZ2_bzDecompress(z);
		out->len += room - z->avail_out;
		if (code != BZ_OK && code != BZ_STREAM_END)
			return failed(code, n, err);
		if (out->len > limit)
			return err_set(err, -EIO, "bzip2: %zu bytes decode to more than %llu", n,
				       (unsigned long long)limit);
		if (code == BZ_OK && z->avail_in == 0 && z->avail_out > 0)
			return err_set(err, -EIO, "bzip2: stream of %zu bytes is truncated", n);
	}
	return 0;
}

int bzip2_decode(const uint8_t *in, size_t n, uint64_t limit, bool several, struct bytes *out,
		 struct err *err)
{
	const uint8_t *end = in + n;
	int rc = n > UINT_MAX ? -EIO : 0;
	if (rc)
		return err_set(err, rc, "bzip2: %zu bytes are too many for a chunk", n);
	do {
		bz_stream stream = {0};
		const int code = BZ2_bzDecompressInit(&stream, 0, 0);
		if (code != BZ_OK)
			return failed(code, n, err);
		bz_stream *z __attribute__((cleanup(end_stream))) = &stream;
		z->next_in = (char *)(uintptr_t)in;
		z->avail_in = (unsigned int)(end - in);
		rc = decode_one(z, n, limit, out, err);
		in = end - z->avail_in;
	} while (rc == 0 && several && in < end);
	return rc;
}

int undo_bzip2(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out,
	       struct err *err)
{
	return bzip2_decode(in, n, u->limit, false, out, err);
}
