/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares codec/zstream.c, which uses libdeflate, with zlib.
 *
 *   +0  u8  what to do, modulo 4
 *             0, 1: the bytes are a zlib stream, or gzip members
 *             2, 3: zlib deflates the bytes to a zlib stream, or to a gzip member
 *   +1  u8  level, modulo 10
 *   +2  u8  bits 0-2: strategy, modulo 5; bits 3-5: window of 9 to 15 bits, modulo 7;
 *           bit 6: the first half of the bytes is a dictionary
 *   +3  u8  so many bytes at the end of the stream are cut off; of more than 128, bytes are added
 *   +4      the bytes
 *
 * What zlib inflates has the same bytes, and as many bytes are left behind it. What zlib refuses is
 * refused for the same reason. There is one exception: libdeflate accepts some descriptions of
 * codes that zlib calls damaged, but only if the checksum of the output is right. The limit is
 * exact. zlib also inflates what zstream.c deflates.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include <codec/zstream.h>

#include "require.h"

enum { HEADER = 4, MOST = 1 << 18, LEVELS = 10, STRATEGIES = 5, WINDOWS = 7, GZIP = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum verdict { FINE, TRUNCATED, DAMAGED, TOO_LONG };

/* Inflates with zlib alone. *left is the number of bytes behind the last stream. */
static enum verdict inflate_plainly(const uint8_t *in, size_t n, bool gzip, uint8_t *out,
				    size_t *out_n, size_t *left)
{
	z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)in,
		      .avail_in = (uInt)n,
		      .next_out = out,
		      .avail_out = MOST + 1};
	int rc;
	require(inflateInit2(&z, gzip ? GZIP + MAX_WBITS : MAX_WBITS) == Z_OK);
	while ((rc = inflate(&z, Z_NO_FLUSH)) == Z_STREAM_END && gzip) {
		while (z.avail_in > 0 && *z.next_in == 0) {
			z.next_in++;
			z.avail_in--;
		}
		if (z.avail_in == 0)
			break;
		inflateReset(&z);
	}
	*out_n = MOST + 1 - z.avail_out;
	*left = z.avail_in;
	inflateEnd(&z);
	if (*out_n > MOST)
		return TOO_LONG;
	return rc == Z_STREAM_END ? FINE : rc == Z_OK || rc == Z_BUF_ERROR ? TRUNCATED : DAMAGED;
}

static int inflate_here(const uint8_t *in, size_t n, bool gzip, uint64_t limit, struct bytes *out,
			size_t *left, struct err *err)
{
	*left = 0;
	return gzip ? zstream_gunzip(in, n, limit, out, err)
		    : zstream_inflate(in, n, limit, out, left, err);
}

static bool has_word(const struct err *err, const char *word)
{
	return strstr(err->msg, word) != NULL;
}

/* Checks the adler32 at the end of a zlib stream. */
static void require_checksum(const uint8_t *in, size_t n, size_t left, const struct bytes *out)
{
	const uint8_t *end = in + n - left;
	uint32_t stored = 0;
	for (int i = 4; i > 0; i--)
		stored = stored << 8 | *(end - i);
	const uLong adler = adler32(0, NULL, 0);
	require(stored == (out->len ? adler32(adler, out->data, (uInt)out->len) : adler));
}

static void expect_same(const uint8_t *in, size_t n, bool gzip, uint64_t limit,
			const uint8_t *plain, size_t plain_n, size_t plain_left)
{
	struct bytes out = {0};
	struct err err = ERR_INIT;
	size_t left;
	require(inflate_here(in, n, gzip, limit, &out, &left, &err) == 0);
	require(out.len == plain_n && left == plain_left);
	require(plain_n == 0 || memcmp(out.data, plain, plain_n) == 0);
	bytes_release(&out);
}

static void check(const uint8_t *in, size_t n, bool gzip)
{
	uint8_t *plain = malloc(MOST + 1);
	size_t plain_n, plain_left, left;
	struct bytes out = {0};
	struct err err = ERR_INIT;
	require(plain != NULL);
	const enum verdict verdict = inflate_plainly(in, n, gzip, plain, &plain_n, &plain_left);
	const int rc = inflate_here(in, n, gzip, MOST, &out, &left, &err);
	require(rc == 0 ? out.len <= MOST : rc == -EIO);
	if (rc == 0 && verdict == DAMAGED && !gzip)
		require_checksum(in, n, left, &out);
	else if (verdict == DAMAGED)
		require(gzip || has_word(&err, "is damaged"));
	else
		require((rc == 0) == (verdict == FINE));
	if (verdict == TRUNCATED)
		require(has_word(&err, "is truncated"));
	if (verdict == TOO_LONG)
		require(has_word(&err, "inflates to more than"));
	bytes_release(&out);
	if (verdict == FINE) {
		expect_same(in, n, gzip, plain_n, plain, plain_n, plain_left);
		expect_same(in, n, gzip, UINT64_MAX, plain, plain_n, plain_left);
	}
	if (verdict == FINE && plain_n > 0) {
		require(inflate_here(in, n, gzip, plain_n - 1, &out, &left, &err) == -EIO);
		require(has_word(&err, "inflates to more than"));
		bytes_release(&out);
	}
	free(plain);
}

/* Lets zlib deflate the bytes, and changes the end of the stream. */
static void check_deflated(const uint8_t *head, const uint8_t *x, size_t n, bool gzip)
{
	const int window = 9 + (head[2] >> 3 & 7) % WINDOWS;
	const bool dictionary = (head[2] & 0x40) != 0 && !gzip;
	z_stream z = {0};
	require(deflateInit2(&z, head[1] % LEVELS, Z_DEFLATED, window + (gzip ? GZIP : 0), 8,
			     (head[2] & 7) % STRATEGIES) == Z_OK);
	if (dictionary)
		require(deflateSetDictionary(&z, x, (uInt)(n / 2)) == Z_OK);
	const size_t room = deflateBound(&z, n) + UINT8_MAX;
	uint8_t *stream = calloc(1, room);
	require(stream != NULL);
	z.next_in = (z_const Bytef *)(uintptr_t)x;
	z.avail_in = (uInt)n;
	z.next_out = stream;
	z.avail_out = (uInt)room;
	require(deflate(&z, Z_FINISH) == Z_STREAM_END);
	size_t size = room - z.avail_out;
	deflateEnd(&z);
	size = head[3] > 128 ? size + head[3] - 128 : size > head[3] ? size - head[3] : 0;
	uint8_t *exact = malloc(size ? size : 1);
	require(exact != NULL);
	memcpy(exact, stream, size);
	check(exact, size, gzip);
	free(exact);
	free(stream);
}

static void check_deflate(int level, const uint8_t *x, size_t n)
{
	uint8_t *plain = malloc(n + 1);
	uLongf got = n + 1;
	struct bytes out = {0};
	require(plain && zstream_deflate(x, n, level, &out, NULL) == 0);
	require(zstream_looks_like(out.data, out.len));
	require(uncompress(plain, &got, out.data, out.len) == Z_OK && got == n);
	require(n == 0 || memcmp(plain, x, n) == 0);
	bytes_release(&out);
	free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEADER || size > MOST)
		return 0;
	const uint8_t *x = data + HEADER;
	const size_t n = size - HEADER;
	const bool gzip = data[0] & 1;
	if (data[0] & 2)
		check_deflated(data, x, n, gzip);
	else
		check(x, n, gzip);
	check_deflate(data[1] % LEVELS, x, n);
	return 0;
}
