/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of Zarr arrays: bytes that other programs stored, each codec in each kind of chain, and
 * hostile bytes. A chunk decodes to exactly the planned size, or it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <blosc.h>
#include <bzlib.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <base/checksum.h>

#include "array_support.h"
#include "filter_support.h"

enum { N = 4000, SIZE = 4, ELEMS = N / SIZE };

static const struct codec_array_step zlib_ = {.codec = CODEC_ZLIB}, gzip_ = {.codec = CODEC_GZIP},
				     zstd_ = {.codec = CODEC_ZSTD}, lz4_ = {.codec = CODEC_LZ4},
				     bz2_ = {.codec = CODEC_BZ2}, blosc_ = {.codec = CODEC_BLOSC},
				     crc_ = {.codec = CODEC_CRC32C},
				     shuffle_ = {.codec = CODEC_SHUFFLE, .elem_size = SIZE};

static uint8_t plain[2 * N];

static int setup(void **state)
{
	uint32_t x = 7;
	for (size_t i = 0; i < sizeof(plain); i++) {
		x = x * 1664525u + 1013904223u;
		plain[i] = i % 4 == 0 ? (uint8_t)(x >> 30) : i % 4 == 1 ? (uint8_t)(i / 100) : 0;
	}
	return array_support_setup();
}

static int teardown(void **state)
{
	array_support_teardown();
	return 0;
}

/* ---- encoders ---- */

static struct bytes room(size_t n)
{
	struct bytes b = {0};
	assert_int_equal(bytes_reserve(&b, n), 0);
	return b;
}

static struct bytes deflated(const void *data, size_t n, int window_bits)
{
	struct bytes b = room(n + 1000);
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (z_const Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)n;
	z.next_out = b.data;
	z.avail_out = (uInt)b.cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	b.len = b.cap - z.avail_out;
	deflateEnd(&z);
	return b;
}

static struct bytes as_zlib(const void *data, size_t n)
{
	return deflated(data, n, MAX_WBITS);
}

static struct bytes as_gzip(const void *data, size_t n)
{
	return deflated(data, n, 16 + MAX_WBITS);
}

static struct bytes zstd_frame(const void *data, size_t n, int with_size)
{
	struct bytes b = room(ZSTD_compressBound(n));
	ZSTD_CCtx *z = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, with_size);
	b.len = ZSTD_compress2(z, b.data, b.cap, data, n);
	assert_false(ZSTD_isError(b.len));
	ZSTD_freeCCtx(z);
	return b;
}

static struct bytes as_zstd(const void *data, size_t n)
{
	return zstd_frame(data, n, 1);
}

static struct bytes as_zstd_stream(const void *data, size_t n)
{
	return zstd_frame(data, n, 0);
}

static struct bytes as_bz2(const void *data, size_t n)
{
	unsigned int len = (unsigned int)n + 1000;
	struct bytes b = room(len);
	assert_int_equal(BZ2_bzBuffToBuffCompress((char *)b.data, &len, (char *)(uintptr_t)data,
						  (unsigned int)n, 1, 0, 0),
			 BZ_OK);
	b.len = len;
	return b;
}

static struct bytes as_blosc(const void *data, size_t n)
{
	struct bytes b = room(n + BLOSC_MAX_OVERHEAD);
	const int len =
		blosc_compress_ctx(5, BLOSC_SHUFFLE, SIZE, n, data, b.data, b.cap, "lz4", 0, 1);
	assert_true(len > 0);
	b.len = (size_t)len;
	return b;
}

static void put_u32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

static struct bytes as_lz4(const void *data, size_t n)
{
	struct bytes b = room(4 + (size_t)LZ4_compressBound((int)n));
	put_u32(b.data, (uint32_t)n);
	const int len =
		LZ4_compress_default(data, (char *)b.data + 4, (int)n, LZ4_compressBound((int)n));
	assert_true(len > 0);
	b.len = 4 + (size_t)len;
	return b;
}

static struct bytes as_crc32c(const void *data, size_t n)
{
	struct bytes b = room(n + 4);
	memcpy(b.data, data, n);
	put_u32(b.data + n, checksum_crc32c(data, n, 0));
	b.len = n + 4;
	return b;
}

static struct bytes as_shuffle(const void *data, size_t n)
{
	struct bytes b = room(n);
	const uint8_t *from = data;
	for (size_t i = 0; i < n / SIZE; i++)
		for (size_t k = 0; k < SIZE; k++)
			b.data[k * (n / SIZE) + i] = from[i * SIZE + k];
	memcpy(b.data + n / SIZE * SIZE, from + n / SIZE * SIZE, n % SIZE);
	b.len = n;
	return b;
}

typedef struct bytes encode_fn(const void *data, size_t n);

static const struct {
	const char *name;
	const struct codec_array_step *step;
	encode_fn *encode;
	bool several; /* streams may follow each other */
} codecs[] = {
	{"zlib", &zlib_, as_zlib, false},
	{"gzip", &gzip_, as_gzip, true},
	{"zstd", &zstd_, as_zstd, true},
	{"zstd without its size", &zstd_, as_zstd_stream, true},
	{"bz2", &bz2_, as_bz2, true},
	{"blosc", &blosc_, as_blosc, false},
	{"lz4", &lz4_, as_lz4, false},
	{"crc32c", &crc_, as_crc32c, false},
	{"shuffle", &shuffle_, as_shuffle, false},
};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]), COMPRESSORS = 7 };

/* ---- stored by other programs ---- */

static void stored_by_others(void **state)
{
	const uint64_t two_three[] = {2, 3}, three[] = {2, 3, 2};
	const uint32_t order_f[] = {1, 0}, order_201[] = {2, 0, 1};
	const struct codec_array_step transposed = {.codec = CODEC_TRANSPOSE,
						    .elem_size = 4,
						    .rank = 2,
						    .shape = two_three,
						    .order = order_f};
	struct codec_array_step doubles = transposed, shuffled = shuffle_;
	doubles.elem_size = shuffled.elem_size = 8;
	const struct codec_array_step three_axes = {.codec = CODEC_TRANSPOSE,
						    .elem_size = 8,
						    .rank = 3,
						    .shape = three,
						    .order = order_201};
	const struct codec_array_step big = {.codec = CODEC_WIDEN, .big_endian = true};
	const struct codec_array_step little = {.codec = CODEC_WIDEN};
	const struct {
		const char *name;
		uint32_t n;
		struct codec_array_step steps[3];
		uint32_t elem_size, shown;
		uint64_t nelems;
		const char *stored, *plain;
	} cases[] = {
		{"two members of gzip",
		 1,
		 {gzip_},
		 4,
		 4,
		 6,
		 "1f8b080034fd006b02ff63606060600462262006007a0e761d0c000000"
		 "1f8b080034fd006b02ff636660606001625620060057eadfbf0c000000",
		 "000000000100000002000000030000000400000005000000"},
		{"a member of gzip with a name",
		 1,
		 {gzip_},
		 4,
		 4,
		 6,
		 "1f8b080800ca9a3b02ff6f726967206e616d652e62696e00636060606004"
		 "6226206606621620660562003df80c8518000000",
		 "000000000100000002000000030000000400000005000000"},
		{"crc32c of zarr-python",
		 1,
		 {crc_},
		 4,
		 4,
		 6,
		 "0000000001000000020000000300000004000000050000002813a486",
		 "000000000100000002000000030000000400000005000000"},
		{"zstd of zarr-python, half precision",
		 2,
		 {zstd_, little},
		 2,
		 4,
		 2,
		 "28b52ffd2004210000003c003c",
		 "0000803f0000803f"},
		{"complex of half precision",
		 1,
		 {little},
		 4,
		 8,
		 2,
		 "003c0040004200c4",
		 "0000803f000000400000404000"
		 "0080c0"},
		{"blosc of numcodecs, big-endian half precision",
		 2,
		 {blosc_, big},
		 2,
		 4,
		 3,
		 "02013302060000000600000016000000be0000007e00",
		 "bfc00000000000007fc00000"},
		{"order F",
		 1,
		 {transposed},
		 4,
		 4,
		 6,
		 "000000000700000001000000080000000200000009000000",
		 "000000000100000002000000070000000800000009000000"},
		{"order F, zlib and shuffle of zarr-python 2",
		 3,
		 {zlib_, shuffled, doubles},
		 8,
		 8,
		 6,
		 "785e6370b07770706090f9a0c0a0c4400400006c08028e",
		 "00000000000000003ff00000000000004000000000000000"
		 "401c00000000000040200000000000004022000000000000"},
		{"three axes of zarr-python 3",
		 2,
		 {zstd_, three_axes},
		 8,
		 8,
		 12,
		 "28b52ffd20602d0100f0000005000a00140019001e00010006000b001500"
		 "1a001f000000000000000b5402000301",
		 "0000000000000000010000000000000005000000000000000600000000000000"
		 "0a000000000000000b0000000000000014000000000000001500000000000000"
		 "19000000000000001a000000000000001e000000000000001f00000000000000"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct codec_plan plan;
		assert_int_equal(codec_plan_array(&plan, array_type(cases[i].shown),
						  cases[i].elem_size, cases[i].nelems,
						  cases[i].steps, cases[i].n),
				 0);
		struct bytes stored = from_hex(cases[i].stored), want = from_hex(cases[i].plain);
		expect_chunk(cases[i].name, &plan.chain, &stored, want.data, want.len);
		bytes_release(&stored);
		bytes_release(&want);
	}
}

/* ---- each codec ---- */

static void append(struct bytes *b, struct bytes more)
{
	assert_int_equal(bytes_append(b, more.data, more.len), 0);
	bytes_release(&more);
}

static void plan_of(struct codec_plan *plan, const struct codec_array_step *steps, uint32_t n)
{
	assert_int_equal(codec_plan_array(plan, array_type(SIZE), SIZE, ELEMS, steps, n), 0);
}

/* Cut and changed bytes never decode to another number of bytes. */
static void damage(const char *name, const struct codec_step *step, const struct bytes *stored)
{
	struct codec_plan plan;
	plan_of(&plan, &step->array, 1);
	for (size_t n = 0; n < stored->len; n += 1 + n / 50) {
		const struct bytes part = {.data = stored->data, .len = n};
		expect_refused(name, &plan.chain, &part, -EIO, "");
	}
	for (size_t bit = 0; bit < 8 * stored->len; bit += 1 + bit / 100) {
		stored->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect_whole_or_error(&plan.chain, stored);
		stored->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void each_codec(void **state)
{
	for (size_t i = 0; i < CODECS; i++) {
		struct codec_plan plan;
		plan_of(&plan, codecs[i].step, 1);
		struct bytes stored = codecs[i].encode(plain, N);
		expect_chunk(codecs[i].name, &plan.chain, &stored, plain, N);
		damage(codecs[i].name, &plan.steps[0], &stored);
		append(&stored, codecs[i].encode("", 1)); /* another byte */
		expect_refused(codecs[i].name, &plan.chain, &stored, -EIO, "");
		bytes_release(&stored);
		stored = codecs[i].encode(plain, N);
		assert_int_equal(bytes_append(&stored, "b", 1), 0);
		expect_refused(codecs[i].name, &plan.chain, &stored, -EIO, "");
		assert_int_equal(bytes_append(&stored, "ehind", 5), 0);
		expect_refused(codecs[i].name, &plan.chain, &stored, -EIO, "");
		bytes_release(&stored);
	}
}

static void several_streams(void **state)
{
	static const size_t parts[] = {0, 1, 7, 900, 901, N};
	for (size_t i = 0; i < CODECS; i++) {
		struct codec_plan plan;
		plan_of(&plan, codecs[i].step, 1);
		struct bytes stored = {0};
		for (size_t k = 0; codecs[i].several && k + 1 < 6; k++)
			append(&stored,
			       codecs[i].encode(plain + parts[k], parts[k + 1] - parts[k]));
		if (codecs[i].several)
			expect_chunk(codecs[i].name, &plan.chain, &stored, plain, N);
		bytes_release(&stored);
	}
	/* Frames with and without a size, zeros behind a member of gzip. */
	struct codec_plan plan;
	plan_of(&plan, &zstd_, 1);
	struct bytes stored = as_zstd(plain, 1000);
	append(&stored, as_zstd_stream(plain + 1000, 1000));
	append(&stored, as_zstd(plain + 2000, N - 2000));
	expect_chunk("frames of both kinds", &plan.chain, &stored, plain, N);
	bytes_release(&stored);
	plan_of(&plan, &gzip_, 1);
	stored = as_gzip(plain, 1000);
	assert_int_equal(bytes_append_zero(&stored, 100), 0);
	append(&stored, as_gzip(plain + 1000, N - 1000));
	assert_int_equal(bytes_append_zero(&stored, 3), 0);
	expect_chunk("zeros behind a member", &plan.chain, &stored, plain, N);
	bytes_release(&stored);
}

/* Codecs in any order, the same one several times. */
static void chains_of_filters(void **state)
{
	uint32_t x = 1;
	for (unsigned int round = 0; round < 300; round++) {
		struct codec_array_step steps[6];
		struct bytes b = room(N);
		const uint32_t n = 2 + round % 5;
		memcpy(b.data, plain, N);
		b.len = N;
		for (uint32_t i = n; i-- > 0;) {
			x = x * 1664525u + 1013904223u;
			const size_t which = (x >> 16) % CODECS;
			struct bytes next = codecs[which].encode(b.data, b.len);
			bytes_release(&b);
			b = next;
			steps[i] = *codecs[which].step;
		}
		struct codec_plan plan;
		plan_of(&plan, steps, n);
		const struct codec_size size = codec_chunk_size(&plan.chain);
		assert_true(size.is_filtered && b.len <= size.most);
		assert_true(size.exact == CODEC_UNKNOWN || size.exact == b.len);
		expect_chunk("chain", &plan.chain, &b, plain, N);
		bytes_release(&b);
	}
}

/* An element of the shuffle may be another one than that of the array, and leave a rest. */
static void shuffle_of_other_elements(void **state)
{
	struct codec_array_step step = shuffle_;
	step.elem_size = 3;
	struct codec_plan plan;
	struct bytes stored = {.data = (uint8_t[]){1, 4, 2, 5, 3, 6, 7, 8}, .len = 8};
	const uint8_t want[] = {1, 2, 3, 4, 5, 6, 7, 8};
	assert_int_equal(codec_plan_array(&plan, array_type(4), 4, 2, &step, 1), 0);
	expect_chunk("shuffle", &plan.chain, &stored, want, 8);
	step.elem_size = 9;
	assert_int_equal(codec_plan_array(&plan, array_type(4), 4, 2, &step, 1), 0);
	expect_chunk("only a rest", &plan.chain, &stored, stored.data, 8);
}

/* ---- hostile bytes ---- */

static void bombs(void **state)
{
	enum { LARGE = 5 << 20 };
	uint8_t *zeros = test_calloc(1, LARGE);
	for (size_t i = 0; i < COMPRESSORS; i++) {
		const struct codec_array_step twice[] = {*codecs[i].step, *codecs[i].step};
		struct bytes bomb = codecs[i].encode(zeros, LARGE);
		struct codec_plan one, two;
		plan_of(&one, twice, 1);
		plan_of(&two, twice, 2);
		expect_refused(codecs[i].name, &one.chain, &bomb, -EIO, "4000");
		/* Between two compressors, at most a few times the size of the chunk. */
		assert_in_range(two.steps[0].largest, N + 1, 2 * N);
		expect_refused(codecs[i].name, &two.chain, &bomb, -EIO, "");
		bytes_release(&bomb);
	}
	test_free(zeros);
	struct codec_array_step many[FILTER_MAX];
	for (uint32_t i = 0; i < FILTER_MAX; i++)
		many[i] = zlib_;
	struct codec_plan plan;
	plan_of(&plan, many, FILTER_MAX);
	assert_true(plan.steps[0].largest <= 8 * N + (64 << 10));
	assert_true(codec_chunk_size(&plan.chain).most <= 12 * N + (160 << 10));
}

/* A frame of 1000 to 65,000 bytes has its size, minus 256, in the bytes 5 and 6. */
static void false_size_of_a_frame(void **state)
{
	enum { AT = 5 };
	struct codec_plan plan;
	plan_of(&plan, &zstd_, 1);
	for (int more = -1; more <= 1; more += 2) {
		struct bytes b = as_zstd(plain, N);
		assert_int_equal(b.data[AT] | b.data[AT + 1] << 8, N - 256);
		b.data[AT] = (uint8_t)(b.data[AT] + more);
		expect_refused("false size", &plan.chain, &b, -EIO,
			       more > 0 ? "decode to more than 4000" : "damaged frame");
		bytes_release(&b);
		b = as_zstd(plain, N + more);
		b.data[AT] = (uint8_t)(b.data[AT] - more);
		expect_refused("the size of the chunk, but not of the frame", &plan.chain, &b, -EIO,
			       more > 0 ? "decode to more than 4000" : "damaged frame");
		bytes_release(&b);
	}
}

/* A frame that states a window of 2^41 bytes needs no memory for it. */
static void window_of_a_frame(void **state)
{
	struct codec_plan plan;
	plan_of(&plan, &zstd_, 1);
	struct bytes b = as_zstd_stream(plain, N);
	assert_int_equal(b.data[4] & 0x20, 0);
	b.data[5] = 0xf8;
	expect_whole_or_error(&plan.chain, &b);
	bytes_release(&b);
}

static void malformed(void **state)
{
	static const struct {
		const char *name;
		const struct codec_array_step *step;
		const char *stored, *word;
	} cases[] = {
		{"zlib: nothing", &zlib_, "", "truncated"},
		{"zlib: another method", &zlib_, "7901", "damaged"},
		{"gzip: nothing", &gzip_, "", "truncated"},
		{"gzip: a zlib stream", &gzip_, "789c030000000001", "damaged"},
		{"zstd: nothing", &zstd_, "", "not a frame"},
		{"zstd: other bytes", &zstd_, "0102030405060708", "not a frame"},
		{"bz2: nothing", &bz2_, "", "truncated"},
		{"bz2: other bytes", &bz2_, "0102030405060708", "not a valid stream"},
		{"blosc: nothing", &blosc_, "", "not a Blosc 1 frame"},
		{"blosc: of Blosc 2", &blosc_, "05010004100000001000000020000000",
		 "not a Blosc 1 frame"},
		{"lz4: nothing", &lz4_, "", "no block with its size"},
		{"lz4: no block", &lz4_, "a00f0000", "state 4000"},
		{"lz4: 4 GiB", &lz4_, "ffffffff1f00000000", "state 4294967295, at most 4000"},
		{"lz4: more than so few bytes decode to", &lz4_, "a00f00001f00000000",
		 "state 4000"},
		{"lz4: one byte too many", &lz4_, "a10f0000", "state 4001, at most 4000"},
		{"lz4: damaged", &lz4_, "10000000ffffff", "damaged block of 3 bytes for 16"},
		{"crc32c: nothing", &crc_, "", "has 0 bytes, its shape needs 4004"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct codec_plan plan;
		plan_of(&plan, cases[i].step, 1);
		struct bytes stored = from_hex(cases[i].stored);
		expect_refused(cases[i].name, &plan.chain, &stored, -EIO, cases[i].word);
		bytes_release(&stored);
	}
	struct codec_plan plan;
	plan_of(&plan, &crc_, 1);
	struct bytes stored = as_crc32c(plain, N);
	stored.data[N / 2] ^= 1;
	expect_refused("crc32c", &plan.chain, &stored, -EIO, "crc32c does not match");
	bytes_release(&stored);
}

/* Each byte of a Blosc header with each value. Fields that say how long something is, and versions,
 * must be right. The others may yield other bytes, but never another number of them. */
static void header_of_a_blosc_frame(void **state)
{
	enum { HEADER = 16, FLAGS = 2, TYPESIZE = 3, BLOCKSIZE = 8, CBYTES = 12 };
	struct codec_plan plan;
	plan_of(&plan, &blosc_, 1);
	struct bytes b = as_blosc(plain, N);
	for (size_t at = 0; at < HEADER; at++) {
		const uint8_t right = b.data[at];
		for (unsigned int v = 0; v < 256; v++) {
			const bool free =
				at == FLAGS || at == TYPESIZE || (at >= BLOCKSIZE && at < CBYTES);
			b.data[at] = (uint8_t)v;
			if (v != right && !free)
				expect_refused("header", &plan.chain, &b, -EIO, "");
			else
				expect_whole_or_error(&plan.chain, &b);
		}
		b.data[at] = right;
	}
	bytes_release(&b);
}

/* Chunks that are too short or too long, as their codecs have them. */
static void wrong_lengths(void **state)
{
	static const size_t lengths[] = {0, 1, N - 1, N + 1, 2 * N};
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		char word[80];
		snprintf(word, sizeof(word), "chunk has %zu bytes, its shape needs 4000",
			 lengths[k]);
		struct codec_plan plan;
		plan_of(&plan, NULL, 0);
		const struct bytes raw = {.data = plain, .len = lengths[k]};
		expect_refused("raw", &plan.chain, &raw, -EIO, word);
		for (size_t i = 0; i < CODECS; i++) {
			plan_of(&plan, codecs[i].step, 1);
			struct bytes b = lengths[k] ? codecs[i].encode(plain, lengths[k])
						    : (struct bytes){0};
			const bool is_short = lengths[k] > 0 && lengths[k] < N;
			const bool sum = codecs[i].step == &crc_;
			expect_refused(codecs[i].name, &plan.chain, &b, -EIO,
				       sum	  ? "its shape needs 4004"
				       : is_short ? word
						  : "");
			bytes_release(&b);
		}
	}
}

/* The block of no bytes has one byte. */
static void lz4_of_nothing(void **state)
{
	struct codec_plan plan;
	assert_int_equal(codec_plan_array(&plan, array_type(SIZE), SIZE, 0, &lz4_, 1), 0);
	struct bytes stored = from_hex("0000000000");
	expect_chunk("lz4 of nothing", &plan.chain, &stored, "", 0);
	bytes_release(&stored);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stored_by_others),
		cmocka_unit_test(each_codec),
		cmocka_unit_test(several_streams),
		cmocka_unit_test(chains_of_filters),
		cmocka_unit_test(shuffle_of_other_elements),
		cmocka_unit_test(bombs),
		cmocka_unit_test(false_size_of_a_frame),
		cmocka_unit_test(window_of_a_frame),
		cmocka_unit_test(malformed),
		cmocka_unit_test(header_of_a_blosc_frame),
		cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(lz4_of_nothing),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
