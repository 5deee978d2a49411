/* SPDX-License-Identifier: Apache-2.0 */
/* What libdeflate refuses, zlib inflates or explains; what has no limit, zlib inflates. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <codec/zstream.h>

enum { N = 100000, GZIP = 16, HEADER_CRC = 16, LEVELS = 10 };

/* Numbers that a compressor makes smaller, but not much. */
static void fill(uint8_t *x, size_t n)
{
	uint32_t r = 1;
	for (size_t i = 0; i < n; i++) {
		r = r * 1664525 + 1013904223;
		x[i] = (uint8_t)(r >> 24 & (i % 4 ? 0x07 : 0x3f));
	}
}

static struct bytes deflated(const uint8_t *x, size_t n, int bits, gz_header *header)
{
	z_stream z = {0};
	struct bytes b = {0};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + bits, 8, Z_DEFAULT_STRATEGY),
			 Z_OK);
	if (header)
		assert_int_equal(deflateSetHeader(&z, header), Z_OK);
	assert_int_equal(bytes_reserve(&b, deflateBound(&z, n)), 0);
	z.next_in = (z_const Bytef *)(uintptr_t)x;
	z.avail_in = (uInt)n;
	z.next_out = b.data;
	z.avail_out = (uInt)b.cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	b.len = b.cap - z.avail_out;
	deflateEnd(&z);
	return b;
}

static void expect_error(int rc, const struct err *err, const char *words)
{
	assert_int_equal(rc, -EIO);
	assert_string_equal(err->msg, words);
}

static void inflate_and_compare(const struct bytes *in, uint64_t limit, const uint8_t *x, size_t n,
				size_t behind)
{
	struct bytes out auto_bytes = {0};
	size_t left = 0;
	assert_int_equal(zstream_inflate(in->data, in->len, limit, &out, &left, NULL), 0);
	assert_int_equal(out.len, n);
	assert_int_equal(left, behind);
	assert_memory_equal(out.data, x, n);
}

static void limits(void **state)
{
	static uint8_t x[N];
	struct bytes out auto_bytes = {0};
	struct err err = ERR_INIT;
	size_t left;
	(void)state;
	fill(x, N);
	struct bytes b auto_bytes = deflated(x, N, 0, NULL);
	assert_int_equal(bytes_append(&b, "xyz", 3), 0);
	static const uint64_t fine[] = {N,	   N + 1, 1 << 28, (1 << 28) + 1, UINT64_MAX - 1,
					UINT64_MAX};
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		inflate_and_compare(&b, fine[i], x, N, 3);
	expect_error(zstream_inflate(b.data, b.len, N - 1, &out, &left, &err), &err,
		     "zlib stream inflates to more than 99999 bytes");
	bytes_release(&out);
	expect_error(zstream_inflate(b.data, b.len, 0, &out, &left, &err), &err,
		     "zlib stream inflates to more than 0 bytes");
}

/* Without a limit, the room of 16 MiB grows. */
static void no_limit(void **state)
{
	enum { LARGE = 40 << 20 };
	uint8_t *zeros = test_calloc(1, LARGE);
	struct bytes b auto_bytes = deflated(zeros, LARGE, 0, NULL);
	(void)state;
	inflate_and_compare(&b, UINT64_MAX, zeros, LARGE, 0);
	inflate_and_compare(&b, LARGE, zeros, LARGE, 0);
	test_free(zeros);
}

/* One byte of the stream has another value. */
static void expect_damage(const struct bytes *b, size_t at, uint8_t value, const char *words)
{
	struct bytes out auto_bytes = {0}, bad auto_bytes = {0};
	struct err err = ERR_INIT;
	size_t left;
	assert_int_equal(bytes_append(&bad, b->data, b->len), 0);
	bad.data[at] = value;
	expect_error(zstream_inflate(bad.data, bad.len, N, &out, &left, &err), &err, words);
}

/* What is measured is not kept, also if it is too large to be inflated at once. */
static void measured(void **state)
{
	enum { LARGE = 5 << 20 };
	uint8_t *x = test_calloc(1, LARGE);
	struct err err = ERR_INIT;
	uint64_t size = 0;
	size_t left = 0;
	(void)state;
	fill(x, N);
	struct bytes b auto_bytes = deflated(x, N, 0, NULL);
	struct bytes large auto_bytes = deflated(x, LARGE, 0, NULL);
	assert_int_equal(bytes_append(&b, "xyz", 3), 0);
	for (uint64_t limit = N; limit < UINT64_MAX / 2; limit = 2 * limit + 1) {
		assert_int_equal(zstream_measure(b.data, b.len, limit, &size, &left, &err), 0);
		assert_int_equal(size, N);
		assert_int_equal(left, 3);
	}
	assert_int_equal(zstream_measure(large.data, large.len, LARGE, &size, &left, &err), 0);
	assert_int_equal(size, LARGE);
	assert_int_equal(left, 0);
	expect_error(zstream_measure(b.data, b.len, N - 1, &size, &left, &err), &err,
		     "zlib stream inflates to more than 99999 bytes");
	expect_error(zstream_measure(b.data, 100, N, &size, &left, &err), &err,
		     "zlib stream of 100 bytes is truncated");
	test_free(x);
}

static void truncated_and_damaged(void **state)
{
	static uint8_t x[N];
	struct err err = ERR_INIT;
	(void)state;
	fill(x, N);
	struct bytes b auto_bytes = deflated(x, N, 0, NULL);
	const size_t cuts[] = {0, 1, 2, 3, b.len / 2, b.len - 5, b.len - 4, b.len - 1};
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct bytes out auto_bytes = {0};
		char words[64];
		size_t left;
		snprintf(words, sizeof(words), "zlib stream of %zu bytes is truncated", cuts[i]);
		expect_error(zstream_inflate(b.data, cuts[i], N, &out, &left, &err), &err, words);
	}
	expect_damage(&b, 0, 0x79, "zlib stream is damaged: incorrect header check");
	expect_damage(&b, 2, 0x07, "zlib stream is damaged: invalid block type");
	expect_damage(&b, b.len - 1, (uint8_t)~b.data[b.len - 1],
		      "zlib stream is damaged: incorrect data check");
}

static void a_dictionary(void **state)
{
	static const uint8_t stream[] = {0x78, 0xbb, 0, 0, 0, 1, 3, 0, 0, 0, 0, 1};
	struct bytes out auto_bytes = {0};
	struct err err = ERR_INIT;
	size_t left;
	(void)state;
	expect_error(zstream_inflate(stream, sizeof(stream), N, &out, &left, &err), &err,
		     "zlib stream is damaged: bad data");
}

static void gunzip_and_compare(const struct bytes *in, uint64_t limit, const uint8_t *x, size_t n)
{
	struct bytes out auto_bytes = {0};
	struct err err = ERR_INIT;
	assert_int_equal(zstream_gunzip(in->data, in->len, limit, &out, &err), 0);
	assert_int_equal(out.len, n);
	assert_memory_equal(out.data, x, n);
}

/* A member with a checksum of its header lies between two others. */
static void gzip_members(void **state)
{
	static uint8_t x[N];
	gz_header header = {.name = (Bytef *)(uintptr_t) "name", .hcrc = 1};
	struct bytes out auto_bytes = {0};
	struct err err = ERR_INIT;
	(void)state;
	fill(x, N);
	struct bytes b auto_bytes = deflated(x, 1000, GZIP, NULL);
	struct bytes middle auto_bytes = deflated(x + 1000, 5000, GZIP, &header);
	struct bytes last auto_bytes = deflated(x + 6000, N - 6000, GZIP, NULL);
	const size_t first = b.len;
	assert_int_equal(bytes_append(&b, middle.data, middle.len), 0);
	assert_int_equal(bytes_append_zero(&b, 7), 0);
	assert_int_equal(bytes_append(&b, last.data, last.len), 0);
	assert_int_equal(bytes_append_zero(&b, 3), 0);
	gunzip_and_compare(&b, N, x, N);
	gunzip_and_compare(&b, UINT64_MAX, x, N);
	expect_error(zstream_gunzip(b.data, b.len, 999, &out, &err), &err,
		     "gzip member inflates to more than 999 bytes");
	bytes_release(&out);
	expect_error(zstream_gunzip(b.data, b.len, 1000, &out, &err), &err,
		     "gzip member inflates to more than 1000 bytes");
	bytes_release(&out);
	expect_error(zstream_gunzip(b.data, b.len, N - 1, &out, &err), &err,
		     "gzip member inflates to more than 99999 bytes");
	bytes_release(&out);
	b.data[first + HEADER_CRC] ^= 1;
	expect_error(zstream_gunzip(b.data, b.len, N, &out, &err), &err,
		     "gzip member is damaged: header crc mismatch");
}

/* Each level is one of zlib: a larger one makes the stream smaller, and 0 does not compress. */
static void levels(void **state)
{
	static uint8_t x[N];
	size_t sizes[LEVELS];
	(void)state;
	fill(x, N);
	for (int level = 0; level < LEVELS; level++) {
		struct bytes b auto_bytes = {0};
		assert_int_equal(bytes_append(&b, "before", 6), 0);
		assert_int_equal(zstream_deflate(x, N, level, &b, NULL), 0);
		assert_memory_equal(b.data, "before", 6);
		const struct bytes stream = {.data = b.data + 6, .len = b.len - 6};
		inflate_and_compare(&stream, N, x, N, 0);
		sizes[level] = stream.len;
	}
	assert_int_equal(sizes[0], zstream_stored_size(N));
	assert_true(sizes[1] < N * 2 / 3 && sizes[6] <= sizes[1] && sizes[9] <= sizes[6]);
	assert_true(sizes[9] < sizes[1]);
}

static void nothing(void **state)
{
	struct bytes b auto_bytes = {0}, out auto_bytes = {0};
	size_t left = 1;
	(void)state;
	assert_int_equal(zstream_deflate(NULL, 0, 4, &b, NULL), 0);
	assert_int_equal(zstream_inflate(b.data, b.len, 0, &out, &left, NULL), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits),	cmocka_unit_test(no_limit),
		cmocka_unit_test(measured),	cmocka_unit_test(truncated_and_damaged),
		cmocka_unit_test(a_dictionary), cmocka_unit_test(gzip_members),
		cmocka_unit_test(levels),	cmocka_unit_test(nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
