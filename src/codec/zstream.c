/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib streams (RFC 1950) of deflate data (RFC 1951). The stored form (RFC 1951, 3.2.4) is:
 *
 *   +0  u8      0x78: deflate, 32 KiB window
 *   +1  u8      0x01: no dictionary, fastest, check bits
 *   then for each block of at most 65,535 bytes
 *   +0  u8      bit 0: last block; bits 1-2: 0 = stored
 *   +1  u16 LE  LEN
 *   +3  u16 LE  ~LEN
 *   +5          LEN bytes
 *   then
 *   +0  u32 BE  adler32 of all bytes
 *
 * The length of a stored stream depends on n alone. A stream of 0 bytes has one empty block.
 * gzip members (RFC 1952) are only inflated. The functions are pure and keep no state between
 * calls.
 */
#include "zstream.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include <base/emit.h>

enum {
	BLOCK_MAX = 65535,
	BLOCK_HEADER = 5,
	STREAM_HEADER = 2,
	STREAM_TRAILER = 4,
	INFLATE_RATIO = 1032,	  /* one byte of deflate data decodes to at most this many */
	INFLATE_SLACK = 64,	  /* bytes for the last bits of a stream */
	INFLATE_FIRST = 16 << 20, /* first allocation; pages that are not touched cost nothing */
	MEASURE_BYTES = 64 << 10, /* inflated at once from a stream whose bytes are not kept */
	GZIP_WINDOW_BITS = 16 + MAX_WBITS,
};

bool zstream_looks_like(const uint8_t *in, size_t n)
{
	return n >= STREAM_HEADER && (in[0] & 0x0f) == Z_DEFLATED && in[0] >> 4 <= 7 &&
	       (in[1] & 0x20) == 0 && (in[0] << 8 | in[1]) % 31 == 0;
}

static void inflate_cleanup(z_stream **z)
{
	inflateEnd(*z);
}

/* Makes room for more output, but never for more than `most` bytes in all. Fails with -ENOMEM. */
static int grow(struct bytes *out, uint64_t most)
{
	const uint64_t more = min_u64(max_u64(out->len, INFLATE_FIRST), most - out->len);
	if (more > SIZE_MAX)
		return -ENOMEM;
	return bytes_reserve(out, (size_t)more);
}

/* An input that is being inflated, and its output. */
struct inflating {
	const char *what; /* a zlib stream or a gzip member, for messages */
	const uint8_t *in;
	size_t n, used;
	uint64_t limit;
	struct bytes *out;
};

static int inflate_error(const char *what, int zrc, const z_stream *z, size_t n, struct err *err)
{
	if (zrc == Z_MEM_ERROR)
		return err_errno(err, -ENOMEM, "zlib");
	if (zrc == Z_BUF_ERROR)
		return err_set(err, -EIO, "%s of %zu bytes is truncated", what, n);
	return err_set(err, -EIO, "%s is damaged: %s", what, z->msg ? z->msg : "bad data");
}

static int over_limit(const char *what, uint64_t limit, struct err *err)
{
	return err_set(err, -EIO, "%s inflates to more than %llu bytes", what,
		       (unsigned long long)limit);
}

/* Returns the most bytes to make room for. This is one more than the limit, so that a longer output
 * is noticed, but never more than n bytes can decode to. */
static uint64_t most_room(size_t n, uint64_t limit)
{
	uint64_t possible = 0;
	if (!mul_u64(n, INFLATE_RATIO, &possible) || !add_u64(possible, INFLATE_SLACK, &possible))
		possible = UINT64_MAX;
	return min_u64(limit == UINT64_MAX ? limit : limit + 1, possible);
}

/* Inflates one stream, and moves i->used behind it. */
static int inflate_one(struct inflating *i, z_stream *z, struct err *err)
{
	const uint64_t most = most_room(i->n, i->limit);
	struct bytes *out = i->out;
	int zrc = Z_OK;
	while (zrc != Z_STREAM_END) {
		if (out->len == out->cap) {
			int rc = out->len < most ? grow(out, most) : 0;
			if (rc)
				return err_errno(err, rc, "%s of %zu bytes", i->what, i->n);
		}
		uInt room = (uInt)min_u64(min_u64(out->cap, most) - out->len, UINT_MAX);
		uInt feed = (uInt)min_u64(i->n - i->used, UINT_MAX);
		z->next_in = (z_const Bytef *)(uintptr_t)(i->in + i->used);
		z->avail_in = feed;
		z->next_out = out->data + out->len;
		z->avail_out = room;
		zrc = inflate(z, Z_NO_FLUSH);
		i->used += feed - z->avail_in;
		out->len += room - z->avail_out;
		if (out->len > i->limit)
			return over_limit(i->what, i->limit, err);
		if (zrc != Z_OK && zrc != Z_STREAM_END)
			return inflate_error(i->what, zrc, z, i->n, err);
	}
	return 0;
}

int zstream_inflate(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, size_t *left,
		    struct err *err)
{
	struct inflating i = {"zlib stream", in, n, 0, limit, out};
	z_stream stream = {0};
	if (inflateInit(&stream) != Z_OK)
		return err_errno(err, -ENOMEM, "zlib");
	z_stream *z __attribute__((cleanup(inflate_cleanup))) = &stream;
	const int rc = inflate_one(&i, z, err);
	*left = n - i.used;
	return rc;
}

int zstream_gunzip(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, struct err *err)
{
	struct inflating i = {"gzip member", in, n, 0, limit, out};
	z_stream stream = {0};
	if (inflateInit2(&stream, GZIP_WINDOW_BITS) != Z_OK)
		return err_errno(err, -ENOMEM, "zlib");
	z_stream *z __attribute__((cleanup(inflate_cleanup))) = &stream;
	int rc;
	do {
		rc = inflate_one(&i, z, err);
		while (i.used < n && in[i.used] == 0)
			i.used++;
		inflateReset(z);
	} while (rc == 0 && i.used < n);
	return rc;
}

int zstream_measure(const uint8_t *in, size_t n, uint64_t limit, uint64_t *size, size_t *left,
		    struct err *err)
{
	uint8_t window[MEASURE_BYTES];
	z_stream stream = {0};
	if (inflateInit(&stream) != Z_OK)
		return err_errno(err, -ENOMEM, "zlib");
	z_stream *z __attribute__((cleanup(inflate_cleanup))) = &stream;
	size_t used = 0;
	int zrc = Z_OK;
	for (*size = 0; zrc != Z_STREAM_END;) {
		const uInt feed = (uInt)min_u64(n - used, UINT_MAX);
		z->next_in = (z_const Bytef *)(uintptr_t)(in + used);
		z->avail_in = feed;
		z->next_out = window;
		z->avail_out = sizeof(window);
		zrc = inflate(z, Z_NO_FLUSH);
		used += feed - z->avail_in;
		*size += sizeof(window) - z->avail_out;
		if (*size > limit)
			return over_limit("zlib stream", limit, err);
		if (zrc != Z_OK && zrc != Z_STREAM_END)
			return inflate_error("zlib stream", zrc, z, n, err);
	}
	*left = n - used;
	return 0;
}

static void deflate_cleanup(z_stream **z)
{
	deflateEnd(*z);
}

int zstream_deflate(const uint8_t *in, size_t n, int level, struct bytes *out, struct err *err)
{
	z_stream stream = {0};
	if (deflateInit(&stream, level) != Z_OK)
		return err_errno(err, -ENOMEM, "zlib");
	z_stream *z __attribute__((cleanup(deflate_cleanup))) = &stream;
	const uLong bound = deflateBound(z, n);
	if (bound > UINT_MAX || bytes_reserve(out, bound))
		return err_errno(err, -ENOMEM, "zlib stream of %zu bytes", n);
	z->next_in = (z_const Bytef *)(uintptr_t)in;
	z->avail_in = (uInt)n;
	z->next_out = out->data + out->len;
	z->avail_out = (uInt)bound;
	/* The output has room for the whole stream, so one call ends it. */
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return err_set(err, -EIO, "zlib cannot deflate %zu bytes", n);
	out->len += bound - z->avail_out;
	return 0;
}

uint64_t zstream_stored_size(uint64_t n)
{
	uint64_t blocks = n ? div_up_u64(n, BLOCK_MAX) : 1;
	uint64_t size = blocks * BLOCK_HEADER + STREAM_HEADER + STREAM_TRAILER;
	return add_u64(size, n, &size) ? size : UINT64_MAX;
}

uint8_t *zstream_store(uint8_t *end, const uint8_t *src, size_t n)
{
	size_t size = (size_t)zstream_stored_size(n);
	uint8_t *out = end - size;
	struct emit e = emit_to(out, size);
	emit_u8(&e, 0x78);
	emit_u8(&e, 0x01);
	uLong adler = adler32(0, NULL, 0);
	do {
		/* If src is the n bytes before end, each block moves towards the front by at least
		 * 4 bytes. So its header never overwrites bytes that have not been moved yet. */
		size_t len = n < BLOCK_MAX ? n : BLOCK_MAX;
		adler = adler32(adler, src, (uInt)len);
		emit_u8(&e, n == len);
		emit_u16(&e, (uint16_t)len);
		emit_u16(&e, (uint16_t)~len);
		memmove(out + e.pos, src, len);
		e.pos += len;
		src += len;
		n -= len;
	} while (n > 0);
	for (int shift = 24; shift >= 0; shift -= 8)
		emit_u8(&e, (uint8_t)(adler >> shift));
	return out;
}
