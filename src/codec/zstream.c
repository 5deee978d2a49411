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
 * gzip members (RFC 1952) are only inflated.
 *
 * libdeflate inflates, deflates and computes checksums in less than half of zlib's time, but it
 * needs room for the whole output. So zlib inflates if no reasonable limit is known. zlib also
 * inflates again what libdeflate refuses, because it says what is wrong. Most of these inputs are
 * damaged, truncated or over the limit. The others are gzip members with a checksum of the header,
 * which libdeflate does not check. libdeflate accepts some descriptions of Huffman codes that zlib
 * refuses. The adler32 or CRC of such a stream is checked, too.
 *
 * The functions are pure and keep no state between calls. It takes a thousandth of the time of a
 * chunk to allocate a decompressor, so there is none for each thread.
 */
#include "zstream.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include <base/emit.h>

enum {
	BLOCK_MAX = 65535,
	BLOCK_HEADER = 5,
	STREAM_HEADER = 2,
	STREAM_TRAILER = 4,
	INFLATE_RATIO = 1032, /* one byte of deflate data decodes to at most this many */
	INFLATE_SLACK = 64,   /* bytes for the last bits of a stream */
	/* An output of at most so many bytes is allocated at once, otherwise first INFLATE_FIRST
	 * bytes. Pages that are not touched cost nothing. */
	INFLATE_WHOLE = 1 << 28,
	INFLATE_FIRST = 16 << 20,
	/* If the bytes of a stream are not kept, so many of them are inflated at a time, or all if
	 * there are no more than MEASURE_WHOLE. */
	MEASURE_BYTES = 64 << 10,
	MEASURE_WHOLE = 4 << 20,
	GZIP_WINDOW_BITS = 16 + MAX_WBITS,
	GZIP_FLAGS_AT = 3,
	GZIP_HEADER_CRC = 0x02,
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

struct format {
	const char *what; /* for messages */
	int window_bits;  /* of zlib */
	enum libdeflate_result (*decompress)(struct libdeflate_decompressor *d, const void *in,
					     size_t n, void *out, size_t room, size_t *used,
					     size_t *got);
};

static const struct format zlib_stream = {"zlib stream", MAX_WBITS, libdeflate_zlib_decompress_ex};
static const struct format gzip_member = {"gzip member", GZIP_WINDOW_BITS,
					  libdeflate_gzip_decompress_ex};

/* An input that is being inflated, and its output. */
struct inflating {
	const struct format *format;
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

/* Inflates the next stream with zlib, and moves i->used behind it. */
static int inflate_by_pieces(struct inflating *i, struct err *err)
{
	const char *what = i->format->what;
	const uint64_t most = most_room(i->n, i->limit);
	struct bytes *out = i->out;
	z_stream stream = {0};
	if (inflateInit2(&stream, i->format->window_bits) != Z_OK)
		return err_errno(err, -ENOMEM, "zlib");
	z_stream *z __attribute__((cleanup(inflate_cleanup))) = &stream;
	int zrc = Z_OK;
	while (zrc != Z_STREAM_END) {
		if (out->len == out->cap) {
			int rc = out->len < most ? grow(out, most) : 0;
			if (rc)
				return err_errno(err, rc, "%s of %zu bytes", what, i->n);
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
			return over_limit(what, i->limit, err);
		if (zrc != Z_OK && zrc != Z_STREAM_END)
			return inflate_error(what, zrc, z, i->n, err);
	}
	return 0;
}

static bool has_header_crc(const struct inflating *i)
{
	return i->format == &gzip_member && i->n - i->used > GZIP_FLAGS_AT &&
	       (i->in[i->used + GZIP_FLAGS_AT] & GZIP_HEADER_CRC) != 0;
}

static void decompressor_cleanup(struct libdeflate_decompressor **d)
{
	libdeflate_free_decompressor(*d);
}

/* Does the same with libdeflate. Returns false, and has no other effect than more room in the
 * output, if zlib must inflate the stream. */
static bool inflate_at_once(struct inflating *i)
{
	const uint64_t most = most_room(i->n, i->limit);
	struct bytes *out = i->out;
	size_t used = 0, got = 0;
	if (most > (uint64_t)INFLATE_WHOLE + 1 || most <= out->len || has_header_crc(i) ||
	    bytes_reserve(out, (size_t)most - out->len))
		return false;
	struct libdeflate_decompressor *d __attribute__((cleanup(decompressor_cleanup))) =
		libdeflate_alloc_decompressor();
	if (!d || i->format->decompress(d, i->in + i->used, i->n - i->used, out->data + out->len,
					(size_t)min_u64(most, i->limit) - out->len, &used, &got))
		return false;
	i->used += used;
	out->len += got;
	return true;
}

static int inflate_next(struct inflating *i, struct err *err)
{
	return inflate_at_once(i) ? 0 : inflate_by_pieces(i, err);
}

int zstream_inflate(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, size_t *left,
		    struct err *err)
{
	struct inflating i = {&zlib_stream, in, n, 0, limit, out};
	const int rc = inflate_next(&i, err);
	*left = n - i.used;
	return rc;
}

int zstream_undo(struct step_bytes *b, uint64_t limit, size_t *left, struct err *err)
{
	struct bytes plain auto_bytes = {0};
	const int rc = zstream_inflate(b->data, b->n, limit, &plain, left, err);
	if (rc)
		return rc;
	const uint8_t *trailer = b->data + b->n - *left - STREAM_TRAILER;
	uint32_t adler = 0;
	for (size_t i = 0; i < STREAM_TRAILER; i++)
		adler = adler << 8 | trailer[i];
	step_bytes_take(b, &plain);
	b->summed = b->n;
	b->adler32 = adler;
	return 0;
}

int zstream_gunzip(const uint8_t *in, size_t n, uint64_t limit, struct bytes *out, struct err *err)
{
	struct inflating i = {&gzip_member, in, n, 0, limit, out};
	int rc;
	do {
		rc = inflate_next(&i, err);
		while (i.used < n && in[i.used] == 0)
			i.used++;
	} while (rc == 0 && i.used < n);
	return rc;
}

int zstream_measure(const uint8_t *in, size_t n, uint64_t limit, uint64_t *size, size_t *left,
		    struct err *err)
{
	uint8_t window[MEASURE_BYTES];
	struct bytes whole auto_bytes = {0};
	struct inflating i = {&zlib_stream, in, n, 0, limit, &whole};
	z_stream stream = {0};
	if (limit <= MEASURE_WHOLE && inflate_at_once(&i)) {
		*size = whole.len;
		*left = n - i.used;
		return 0;
	}
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

static void compressor_cleanup(struct libdeflate_compressor **c)
{
	libdeflate_free_compressor(*c);
}

/* Returns the second byte of a stream, which says how it was deflated (RFC 1950, 2.2), as zlib sets
 * it. libdeflate sets another one for level 7. */
static uint8_t level_byte(int level)
{
	if (level < 2)
		return 0x01;
	return level < 6 ? 0x5e : level == 6 ? 0x9c : 0xda;
}

/* libdeflate's levels make streams about as small as those of zlib: for shuffled chunks up to a
 * tenth smaller, for fractions that are not shuffled up to 6 % larger. Level 4 has no advantage
 * over level 3, whose streams of shuffled chunks are smaller than those of zlib's level 4, and
 * which takes two thirds of the time. */
int zstream_deflate(const uint8_t *in, size_t n, int level, struct bytes *out, struct err *err)
{
	const int effort = level == 4 ? 3 : level;
	struct libdeflate_compressor *c __attribute__((cleanup(compressor_cleanup))) =
		libdeflate_alloc_compressor(effort);
	const size_t bound = c ? libdeflate_zlib_compress_bound(c, n) : 0;
	if (!c || bytes_reserve(out, bound))
		return err_errno(err, -ENOMEM, "zlib stream of %zu bytes", n);
	const size_t size = libdeflate_zlib_compress(c, in, n, out->data + out->len, bound);
	if (size == 0)
		return err_set(err, -EIO, "libdeflate cannot deflate %zu bytes", n);
	out->data[out->len + 1] = level_byte(level);
	out->len += size;
	return 0;
}

uint64_t zstream_stored_size(uint64_t n)
{
	uint64_t blocks = n ? div_up_u64(n, BLOCK_MAX) : 1;
	uint64_t size = blocks * BLOCK_HEADER + STREAM_HEADER + STREAM_TRAILER;
	return add_u64(size, n, &size) ? size : UINT64_MAX;
}

static void emit_header(struct emit *e)
{
	emit_u8(e, 0x78);
	emit_u8(e, 0x01);
}

static void emit_block_header(struct emit *e, size_t len, bool is_last)
{
	emit_u8(e, is_last);
	emit_u16(e, (uint16_t)len);
	emit_u16(e, (uint16_t)~len);
}

static void emit_trailer(struct emit *e, uint32_t adler)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		emit_u8(e, (uint8_t)(adler >> shift));
}

uint8_t *zstream_store(uint8_t *end, const uint8_t *src, size_t n, const uint32_t *adler)
{
	const uint32_t sum = adler ? *adler : zstream_adler32(src, n);
	size_t size = (size_t)zstream_stored_size(n);
	uint8_t *out = end - size;
	struct emit e = emit_to(out, size);
	emit_header(&e);
	do {
		/* If src is the n bytes before end, each block moves towards the front by at least
		 * 4 bytes. So its header never overwrites bytes that have not been moved yet. */
		size_t len = n < BLOCK_MAX ? n : BLOCK_MAX;
		emit_block_header(&e, len, n == len);
		if (len) /* otherwise src may be NULL */
			memmove(out + e.pos, src, len);
		e.pos += len;
		src += len;
		n -= len;
	} while (n > 0);
	emit_trailer(&e, sum);
	return out;
}

/* Copies bytes of a stored stream from `at` on, at most `len` and not beyond the header, the block
 * header, the block or the trailer in which `at` is. Returns how many. */
static size_t read_stored_part(const uint8_t *src, size_t n, uint32_t adler, uint64_t at,
			       uint8_t *out, size_t len)
{
	uint8_t bytes[BLOCK_HEADER];
	struct emit e = emit_to(bytes, sizeof(bytes));
	const uint64_t trailer = zstream_stored_size(n) - STREAM_TRAILER;
	const uint8_t *from = bytes;
	uint64_t skip = at, have = STREAM_HEADER;
	if (at < STREAM_HEADER) {
		emit_header(&e);
	} else if (at >= trailer) {
		emit_trailer(&e, adler);
		skip = at - trailer;
		have = STREAM_TRAILER;
	} else {
		const uint64_t block = (at - STREAM_HEADER) / (BLOCK_HEADER + BLOCK_MAX);
		const size_t start = (size_t)block * BLOCK_MAX;
		const size_t size = (size_t)min_u64(n - start, BLOCK_MAX);
		skip = (at - STREAM_HEADER) % (BLOCK_HEADER + BLOCK_MAX);
		have = BLOCK_HEADER;
		if (skip < BLOCK_HEADER) {
			emit_block_header(&e, size, start + size == n);
		} else {
			from = src + start;
			skip -= BLOCK_HEADER;
			have = size;
		}
	}
	len = (size_t)min_u64(len, have - skip);
	memcpy(out, from + skip, len);
	return len;
}

void zstream_stored_read(const uint8_t *src, size_t n, uint32_t adler, uint64_t at, uint8_t *out,
			 size_t len)
{
	while (len > 0) {
		const size_t got = read_stored_part(src, n, adler, at, out, len);
		at += got;
		out += got;
		len -= got;
	}
}

uint32_t zstream_adler32(const uint8_t *bytes, size_t n)
{
	return libdeflate_adler32(libdeflate_adler32(0, NULL, 0), bytes, n);
}
