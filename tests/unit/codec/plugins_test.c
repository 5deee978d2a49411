/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of plug-ins: LZ4, Zstandard, bzip2, Blosc, bitshuffle; chunks that their libraries encode
 * in the registered layouts, and damaged ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <blosc.h>
#include <bzlib.h>
#include <lz4.h>
#include <zstd.h>

#include "filter_support.h"

enum { MOST = 40000 };

static uint8_t plain[MOST];

static int setup(void **state)
{
	uint32_t x = 7;
	for (size_t i = 0; i < MOST; i++) {
		x = x * 1664525u + 1013904223u;
		plain[i] = i % 4 == 0 ? (uint8_t)(x >> 30) : i % 4 == 1 ? (uint8_t)(i / 100) : 0;
	}
	return 0;
}

static void add(struct bytes *b, const void *data, size_t n)
{
	assert_int_equal(bytes_append(b, data, n), 0);
}

static void add_be(struct bytes *b, uint64_t v, unsigned int n)
{
	while (n-- > 0) {
		const uint8_t byte = (uint8_t)(v >> (8 * n));
		add(b, &byte, 1);
	}
}

/* ---- encoders, written from the descriptions of the formats, not from the decoders ---- */

static struct bytes as_lz4(const uint8_t *data, size_t n, size_t block)
{
	struct bytes b = {0};
	add_be(&b, n, 8);
	add_be(&b, block, 4);
	for (size_t at = 0; at < n; at += block) {
		const size_t size = n - at < block ? n - at : block;
		static char packed[2 * MOST];
		const int len = LZ4_compress_default((const char *)data + at, packed, (int)size,
						     sizeof(packed));
		assert_true(len > 0);
		const bool smaller = (size_t)len < size;
		add_be(&b, smaller ? (size_t)len : size, 4);
		add(&b, smaller ? (const void *)packed : data + at, smaller ? (size_t)len : size);
	}
	return b;
}

static struct bytes as_zstd(const uint8_t *data, size_t n, bool with_size)
{
	struct bytes b = {0};
	ZSTD_CCtx *z = ZSTD_createCCtx();
	assert_int_equal(bytes_reserve(&b, ZSTD_compressBound(n)), 0);
	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, with_size);
	b.len = ZSTD_compress2(z, b.data, b.cap, data, n);
	assert_false(ZSTD_isError(b.len));
	ZSTD_freeCCtx(z);
	return b;
}

static struct bytes as_bzip2(uint8_t *data, size_t n)
{
	struct bytes b = {0};
	unsigned int len = (unsigned int)n + 1000;
	assert_int_equal(bytes_reserve(&b, len), 0);
	assert_int_equal(BZ2_bzBuffToBuffCompress((char *)b.data, &len, (char *)data,
						  (unsigned int)n, 1, 0, 0),
			 BZ_OK);
	b.len = len;
	return b;
}

static struct bytes as_blosc(const uint8_t *data, size_t n, size_t typesize, const char *codec)
{
	struct bytes b = {0};
	assert_int_equal(bytes_reserve(&b, n + BLOSC_MAX_OVERHEAD), 0);
	const int len =
		blosc_compress_ctx(5, BLOSC_SHUFFLE, typesize, n, data, b.data, b.cap, codec, 0, 1);
	assert_true(len > 0);
	b.len = (size_t)len;
	return b;
}

/* inside: 0 none, 2 LZ4, 3 Zstandard. block: elements. */
static struct bytes as_bitshuffle(const uint8_t *data, size_t n, size_t size, size_t block,
				  uint32_t inside)
{
	struct bytes b = {0};
	size_t elems = n / size;
	if (inside) {
		add_be(&b, n, 8);
		add_be(&b, block * size, 4);
	}
	while (elems >= 8) {
		const size_t count = elems < block ? elems / 8 * 8 : block;
		uint8_t *bits = test_calloc(count, size);
		for (size_t e = 0; e < count; e++)
			for (size_t bit = 0; bit < size * 8; bit++)
				if (data[e * size + bit / 8] >> (bit % 8) & 1)
					bits[bit * count / 8 + e / 8] |= (uint8_t)(1 << (e % 8));
		static char packed[2 * MOST];
		size_t len = 0;
		if (inside == 2)
			len = (size_t)LZ4_compress_default((char *)bits, packed,
							   (int)(count * size), sizeof(packed));
		else if (inside == 3)
			len = ZSTD_compress(packed, sizeof(packed), bits, count * size, 3);
		if (inside)
			add_be(&b, len, 4);
		add(&b, inside ? (const void *)packed : bits, inside ? len : count * size);
		test_free(bits);
		data += count * size;
		elems -= count;
	}
	add(&b, data, elems * size);
	return b;
}

/* ---- tests ---- */

/* Every shorter input fails, and flipped bits do no harm. Consumes b. */
static void check(const char *name, const struct pipeline *p, uint32_t elem_size, struct bytes b,
		  size_t n)
{
	expect_bytes(name, p, elem_size, &b, plain, n);
	for (size_t len = 0; len < b.len; len += 1 + len / 50)
		expect_failure(name, p, elem_size, b.data, len, n, -EIO, "");
	for (size_t bit = 0; bit < 8 * b.len; bit += 1 + bit / 100) {
		struct bytes out = {0};
		uint8_t *in = exact(b.data, b.len);
		in[bit / 8] ^= (uint8_t)(1 << bit % 8);
		codec_hdf5_decode(p, 0, elem_size, in, b.len, n, &out, NULL);
		assert_true(out.len <= n);
		bytes_release(&out);
		test_free(in);
	}
	bytes_release(&b);
}

static void lz4(void **state)
{
	const struct pipeline p = one_filter(FILTER_LZ4, 0, NULL);
	static const size_t blocks[] = {1, 7, 64, 1000, MOST, 1 << 30};
	for (size_t i = 0; i < 6; i++)
		check("lz4", &p, 4, as_lz4(plain, 1000, blocks[i]), 1000);
	check("lz4, long", &p, 4, as_lz4(plain, MOST, 16384), MOST);
}

static void zstd(void **state)
{
	const struct pipeline p = one_filter(FILTER_ZSTD, 0, NULL);
	check("zstd", &p, 4, as_zstd(plain, MOST, true), MOST);
	check("zstd without its size", &p, 4, as_zstd(plain, MOST, false), MOST);
	check("zstd of 1 byte", &p, 4, as_zstd(plain, 1, true), 1);
}

/* More than the first allocation, of unknown size. */
static void large(void **state)
{
	enum { LARGE = 5 << 20 };
	const struct pipeline zs = one_filter(FILTER_ZSTD, 0, NULL);
	const struct pipeline bz = one_filter(FILTER_BZIP2, 0, NULL);
	uint8_t *zeros = test_calloc(1, LARGE);
	struct bytes b = as_zstd(zeros, LARGE, false);
	expect_bytes("zstd", &zs, 1, &b, zeros, LARGE);
	expect_failure("zstd bomb", &zs, 1, b.data, b.len, 1000, -EIO, "more than 1000");
	bytes_release(&b);
	b = as_zstd(zeros, LARGE, true);
	expect_failure("zstd bomb", &zs, 1, b.data, b.len, 1000, -EIO, "more than 1000");
	bytes_release(&b);
	b = as_bzip2(zeros, LARGE);
	expect_bytes("bzip2", &bz, 1, &b, zeros, LARGE);
	expect_failure("bzip2 bomb", &bz, 1, b.data, b.len, 1000, -EIO, "more than 1000");
	bytes_release(&b);
	test_free(zeros);
}

static void bzip2(void **state)
{
	const struct pipeline p = one_filter(FILTER_BZIP2, 0, NULL);
	check("bzip2", &p, 4, as_bzip2(plain, 3000), 3000);
	struct bytes b = as_bzip2(plain, 100);
	add(&b, "behind", 6);
	expect_bytes("bytes after the stream", &p, 4, &b, plain, 100);
	bytes_release(&b);
}

static void blosc(void **state)
{
	static const char *const codecs[] = {"blosclz", "lz4", "lz4hc", "zlib", "zstd"};
	const struct pipeline p = one_filter(FILTER_BLOSC, 0, NULL);
	for (size_t i = 0; i < 5; i++) {
		check(codecs[i], &p, 4, as_blosc(plain, 4000, 4, codecs[i]), 4000);
		struct bytes b = as_blosc(plain, 4000, 3, codecs[i]);
		add(&b, "behind", 6);
		expect_bytes("bytes after the frame", &p, 4, &b, plain, 4000);
		b.data[12]++;
		b.len -= 6;
		expect_failure("more bytes than there are", &p, 4, b.data, b.len, 4000, -EIO,
			       "not a Blosc 1 frame");
		bytes_release(&b);
	}
}

static void bitshuffle(void **state)
{
	static const uint32_t inside[] = {0, 2, 3};
	static const uint32_t blocks[] = {8, 64, 1024, 0};
	static const uint32_t sizes[] = {1, 2, 3, 4, 8, 16};
	for (size_t i = 0; i < 3 * 4 * 6; i++) {
		const uint32_t size = sizes[i % 6], block = blocks[i / 6 % 4];
		const uint32_t real = block ? block : 8192 / size / 8 * 8;
		for (size_t elems = 1000; elems < 1009; elems += 1 + i % 3) {
			const uint32_t params[] = {0, 4, size, block, inside[i / 24], 0};
			const struct pipeline p = one_filter(FILTER_BITSHUFFLE, 5, params);
			struct bytes b =
				as_bitshuffle(plain, elems * size, size, real, inside[i / 24]);
			expect_bytes("bitshuffle", &p, size, &b, plain, elems * size);
			bytes_release(&b);
		}
	}
	const uint32_t params[] = {0, 4, 4, 0, 3};
	const struct pipeline zs = one_filter(FILTER_BITSHUFFLE, 5, params);
	check("bitshuffle with Zstandard", &zs, 4, as_bitshuffle(plain, 2000, 4, 64, 3), 2000);
	/* No elements, and fewer than a block, of a size that would take much memory. */
	const uint32_t huge[] = {0, 4, UINT32_MAX, 0, 0};
	const struct pipeline none = one_filter(FILTER_BITSHUFFLE, 5, huge);
	expect_bytes("nothing", &none, 4, &(struct bytes){0}, "", 0);
	/* Old files have fewer parameters, and no compressor. */
	const struct pipeline old = one_filter(FILTER_BITSHUFFLE, 3, params);
	struct bytes b = as_bitshuffle(plain, 2000, 4, 2048, 0);
	expect_bytes("bitshuffle without a block size", &old, 4, &b, plain, 2000);
	bytes_release(&b);
}

static void malformed(void **state)
{
	static const struct {
		const char *name;
		uint32_t id, n;
		uint32_t params[5];
		const char *stored;
		int code;
		const char *word;
	} cases[] = {
		{"lz4: header truncated",
		 FILTER_LZ4,
		 0,
		 {0},
		 "0000000000000010000000",
		 -EIO,
		 "no valid header"},
		{"lz4: blocks of 0 bytes",
		 FILTER_LZ4,
		 0,
		 {0},
		 "000000000000001000000000",
		 -EIO,
		 "no valid header"},
		{"lz4: more than the chunk",
		 FILTER_LZ4,
		 0,
		 {0},
		 "000000000000001100000010",
		 -EIO,
		 "state 17, at most 16"},
		{"lz4: 2^64 - 1 bytes",
		 FILTER_LZ4,
		 0,
		 {0},
		 "ffffffffffffffff00000010",
		 -EIO,
		 "at most 16"},
		{"lz4: block truncated",
		 FILTER_LZ4,
		 0,
		 {0},
		 "00000000000000100000001000000010aa",
		 -EIO,
		 "a block states 16 bytes"},
		{"lz4: length of a block",
		 FILTER_LZ4,
		 0,
		 {0},
		 "000000000000001000000010ffffffffaa",
		 -EIO,
		 "a block states 4294967295"},
		{"lz4: damaged block",
		 FILTER_LZ4,
		 0,
		 {0},
		 "00000000000000100000001000000001ff",
		 -EIO,
		 "damaged block"},
		{"zstd: not a frame",
		 FILTER_ZSTD,
		 0,
		 {0},
		 "0102030405060708",
		 -EIO,
		 "8 bytes are not a frame"},
		{"zstd: nothing", FILTER_ZSTD, 0, {0}, "", -EIO, "not a frame"},
		{"bzip2: not a stream",
		 FILTER_BZIP2,
		 0,
		 {0},
		 "0102030405060708",
		 -EIO,
		 "not a valid stream"},
		{"bzip2: nothing", FILTER_BZIP2, 0, {0}, "", -EIO, "truncated"},
		{"blosc: nothing", FILTER_BLOSC, 0, {0}, "", -EIO, "not a Blosc 1 frame"},
		{"blosc: a Blosc 2 frame",
		 FILTER_BLOSC,
		 0,
		 {0},
		 "05010004100000001000000020000000",
		 -EIO,
		 "not a Blosc 1 frame"},
		{"bitshuffle: elements of 0 bytes",
		 FILTER_BITSHUFFLE,
		 3,
		 {0, 4, 0},
		 "00",
		 -EIO,
		 "elements of 0 bytes"},
		{"bitshuffle: unknown compressor",
		 FILTER_BITSHUFFLE,
		 5,
		 {0, 4, 4, 0, 1},
		 "00",
		 -EOPNOTSUPP,
		 "compressor 1 is not built in"},
		{"bitshuffle: part of an element",
		 FILTER_BITSHUFFLE,
		 3,
		 {0, 4, 4},
		 "0000000000",
		 -EIO,
		 "5 bytes in elements of 4"},
		{"bitshuffle: blocks of 12 elements",
		 FILTER_BITSHUFFLE,
		 4,
		 {0, 4, 1, 12},
		 "00000000",
		 -EIO,
		 "blocks of 12 elements"},
		{"bitshuffle: header truncated",
		 FILTER_BITSHUFFLE,
		 5,
		 {0, 4, 4, 0, 2},
		 "0000000000000010000000",
		 -EIO,
		 "the header states"},
		{"bitshuffle: more than the chunk",
		 FILTER_BITSHUFFLE,
		 5,
		 {0, 4, 4, 0, 3},
		 "000000000000001400000000",
		 -EIO,
		 "states 20 bytes, the chunk has 16"},
		{"bitshuffle: blocks of part of an element",
		 FILTER_BITSHUFFLE,
		 5,
		 {0, 4, 4, 0, 2},
		 "000000000000001000000003",
		 -EIO,
		 "no multiple of 8 elements"},
		{"bitshuffle: damaged frame",
		 FILTER_BITSHUFFLE,
		 5,
		 {0, 4, 1, 0, 3},
		 "00000000000000080000000000000001ff",
		 -EIO,
		 "damaged Zstandard frame"},
		{"bitshuffle: bytes after the end",
		 FILTER_BITSHUFFLE,
		 5,
		 {0, 4, 1, 0, 2},
		 "0000000000000001000000000102",
		 -EIO,
		 "bytes after the last element"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pipeline p = one_filter(cases[i].id, cases[i].n, cases[i].params);
		struct bytes stored = from_hex(cases[i].stored);
		expect_failure(cases[i].name, &p, 1, stored.data, stored.len, 16, cases[i].code,
			       cases[i].word);
		bytes_release(&stored);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lz4),	     cmocka_unit_test(zstd),  cmocka_unit_test(large),
		cmocka_unit_test(bzip2),     cmocka_unit_test(blosc), cmocka_unit_test(bitshuffle),
		cmocka_unit_test(malformed),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
