/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding: every form in which HSDS has stored chunks, and damaged chunks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <blosc.h>
#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <zlib.h>

#include <codec/chunk.h>

#include "codec/bitshuffle.h"
#include "decode_elems.h"

enum { ELEMS = 1000, SIZE = 4, BYTES = ELEMS * SIZE };

struct fixture {
	struct arena *arena;
	const struct dtype *i32;
	const struct dtype *text; /* vlen string */
	uint8_t plain[BYTES];
};

static int setup(void **state)
{
	static struct fixture f;
	f.arena = arena_new(1 << 20);
	f.i32 = dtype_integer(f.arena, SIZE, true, false, NULL);
	f.text = dtype_vlen_string(f.arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	for (size_t i = 0; i < BYTES; i++)
		f.plain[i] = (uint8_t)(i % SIZE == 0   ? i / SIZE
				       : i % SIZE == 1 ? i / SIZE / 256
						       : 0);
	*state = &f;
	return f.arena && f.i32 && f.text ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(f->arena);
	return 0;
}

static struct pipeline pipeline_of(uint32_t a, uint32_t b, uint32_t c)
{
	struct pipeline p = {0};
	const uint32_t ids[] = {a, b, c};
	for (size_t i = 0; i < 3; i++)
		if (ids[i])
			p.f[p.n++].id = ids[i];
	return p;
}

/* ---- encoders, written from the descriptions of the formats, not from the decoder ---- */

static void add(struct bytes *b, const void *data, size_t n)
{
	assert_int_equal(bytes_append(b, data, n), 0);
}

static void add_be(struct bytes *b, uint64_t v, unsigned int n)
{
	while (n-- > 0) {
		uint8_t byte = (uint8_t)(v >> (8 * n));
		add(b, &byte, 1);
	}
}

static struct bytes as_is(const void *data, size_t n)
{
	struct bytes b = {0};
	add(&b, data, n);
	return b;
}

static struct bytes as_zlib(const uint8_t *data, size_t n)
{
	struct bytes b = {0};
	uLongf len = compressBound(n);
	assert_int_equal(bytes_reserve(&b, len), 0);
	assert_int_equal(compress2(b.data, &len, data, n, 6), Z_OK);
	b.len = len;
	return b;
}

static struct bytes as_blosc(const uint8_t *data, size_t n, int shuffle, const char *codec)
{
	struct bytes b = {0};
	assert_int_equal(bytes_reserve(&b, n + BLOSC_MAX_OVERHEAD), 0);
	int len = blosc_compress_ctx(5, shuffle, 1, n, data, b.data, n + BLOSC_MAX_OVERHEAD, codec,
				     0, 1);
	assert_true(len > 0);
	b.len = (size_t)len;
	return b;
}

static struct bytes as_shuffled(const uint8_t *data, size_t n, size_t size)
{
	struct bytes b = {0};
	assert_int_equal(bytes_append_zero(&b, n), 0);
	for (size_t i = 0; i < n; i++)
		b.data[i % size * (n / size) + i / size] = data[i];
	return b;
}

/* Shuffles bit by bit. block: number of elements, a multiple of 8. */
static struct bytes as_bitshuffle(const uint8_t *data, size_t n, size_t size, size_t block)
{
	struct bytes b = {0};
	size_t elems = n / size;
	add_be(&b, n, 8);
	add_be(&b, block * size, 4);
	while (elems >= 8) {
		size_t count = elems < block ? elems / 8 * 8 : block;
		uint8_t *bits = test_calloc(count, size);
		for (size_t e = 0; e < count; e++)
			for (size_t bit = 0; bit < size * 8; bit++)
				if (data[e * size + bit / 8] >> (bit % 8) & 1)
					bits[bit * count / 8 + e / 8] |= (uint8_t)(1 << (e % 8));
		char packed[65536];
		int len = LZ4_compress_default((char *)bits, packed, (int)(count * size),
					       sizeof(packed));
		assert_true(len > 0);
		add_be(&b, (uint64_t)len, 4);
		add(&b, packed, (size_t)len);
		test_free(bits);
		data += count * size;
		elems -= count;
	}
	add(&b, data, elems * size);
	return b;
}

/* ---- helpers ---- */

static int decode(const struct fixture *f, const struct pipeline *p, enum codec_object_form e,
		  struct bytes *stored, struct elems *out, struct err *err)
{
	struct codec_plan plan;
	const struct codec_chunk c = {.chain = &plan.chain};
	codec_plan_object(&plan, f->i32, ELEMS, p, e, NULL);
	return decode_elems(&c, stored, out, err);
}

static void expect_plain(const struct fixture *f, const struct pipeline *p,
			 enum codec_object_form e, struct bytes stored)
{
	struct elems out;
	struct err err = ERR_INIT;
	int rc = decode(f, p, e, &stored, &out, &err);
	if (rc)
		fail_msg("%s", err.msg);
	assert_int_equal(out.fixed.len, BYTES);
	assert_memory_equal(out.fixed.data, f->plain, BYTES);
	assert_int_equal(out.heap.len, 0);
	elems_release(&out);
	bytes_release(&stored);
}

static void expect_error(const struct fixture *f, const struct pipeline *p, struct bytes stored,
			 int code, const char *word)
{
	struct elems out;
	struct err err = ERR_INIT;
	int rc = decode(f, p, OBJECT_SHUFFLED, &stored, &out, &err);
	if (rc != code || !strstr(err.msg, word))
		fail_msg("%d \"%s\" instead of %d \"%s\"", rc, err.msg, code, word);
	assert_null(out.fixed.data);
	assert_null(out.heap.data);
	bytes_release(&stored);
}

/* ---- tests ---- */

static void plain_bytes_are_moved_not_copied(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = {0};
	struct bytes stored = as_is(f->plain, BYTES);
	const uint8_t *data = stored.data;
	struct elems out;
	assert_int_equal(decode(f, &p, false, &stored, &out, NULL), 0);
	assert_ptr_equal(out.fixed.data, data);
	assert_null(stored.data);
	elems_release(&out);
}

static void filters_that_are_only_recorded(void **state)
{
	struct fixture *f = *state;
	static const uint32_t ids[] = {FILTER_SHUFFLE,	   FILTER_FLETCHER32, FILTER_NBIT,
				       FILTER_SCALEOFFSET, FILTER_SZIP,	      FILTER_LZF,
				       FILTER_DEFLATE,	   FILTER_BITSHUFFLE};
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct pipeline p = pipeline_of(ids[i], 0, 0);
		expect_plain(f, &p, OBJECT_SHUFFLED, as_is(f->plain, BYTES));
	}
}

static void every_blosc_frame(void **state)
{
	struct fixture *f = *state;
	static const char *const codecs[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
	static const int shuffles[] = {BLOSC_NOSHUFFLE, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE};
	struct pipeline with[] = {pipeline_of(FILTER_DEFLATE, 0, 0),
				  pipeline_of(FILTER_SHUFFLE, FILTER_ZSTD, 0),
				  pipeline_of(FILTER_SHUFFLE, 0, 0), pipeline_of(0, 0, 0)};
	for (size_t i = 0; i < 6; i++)
		for (size_t s = 0; s < 3; s++)
			for (size_t k = 0; k < 4; k++)
				expect_plain(f, &with[k],
					     k % 2 ? OBJECT_UNSHUFFLED : OBJECT_SHUFFLED,
					     as_blosc(f->plain, BYTES, shuffles[s], codecs[i]));
}

static void zlib_and_shuffle_by_schema(void **state)
{
	struct fixture *f = *state;
	struct pipeline gz = pipeline_of(FILTER_DEFLATE, 0, 0);
	struct pipeline shuffled_gz = pipeline_of(FILTER_SHUFFLE, FILTER_DEFLATE, 0);
	expect_plain(f, &gz, OBJECT_SHUFFLED, as_zlib(f->plain, BYTES));
	expect_plain(f, &gz, OBJECT_UNSHUFFLED, as_zlib(f->plain, BYTES));
	expect_plain(f, &shuffled_gz, OBJECT_UNSHUFFLED, as_zlib(f->plain, BYTES));

	struct bytes shuffled = as_shuffled(f->plain, BYTES, SIZE);
	expect_plain(f, &shuffled_gz, OBJECT_SHUFFLED, as_zlib(shuffled.data, BYTES));
	bytes_release(&shuffled);
}

static void zlib_with_a_dropped_checksum(void **state)
{
	struct fixture *f = *state;
	struct pipeline gz = pipeline_of(FILTER_DEFLATE, 0, 0);
	struct bytes b = as_zlib(f->plain, BYTES);
	add(&b, "sum!", 4);
	expect_plain(f, &gz, OBJECT_SHUFFLED, b);
	b = as_zlib(f->plain, BYTES);
	add(&b, "junk!", 5);
	expect_error(f, &gz, b, -EIO, "after the zlib stream");
}

static void plain_that_looks_compressed(void **state)
{
	struct fixture *f = *state;
	struct fixture like = *f;
	struct pipeline gz = pipeline_of(FILTER_DEFLATE, 0, 0);
	memcpy(like.plain, "\x78\x9c", 2);
	expect_plain(&like, &gz, OBJECT_SHUFFLED, as_is(like.plain, BYTES));
	const uint8_t header[16] = {2, 1, 0x60,		1,	   1, 0, 0, 0, 1, 0,
				    0, 0, BYTES & 0xff, BYTES >> 8};
	memcpy(like.plain, header, sizeof(header));
	struct pipeline none = {0};
	expect_plain(&like, &none, OBJECT_SHUFFLED, as_is(like.plain, BYTES));
}

static void bitshuffle_forms(void **state)
{
	struct fixture *f = *state;
	struct pipeline alone = pipeline_of(FILTER_BITSHUFFLE, 0, 0);
	struct pipeline packed = pipeline_of(FILTER_BITSHUFFLE, FILTER_LZ4, 0);
	struct pipeline by_name = pipeline_of(FILTER_SHUFFLE, FILTER_LZ4, 0);
	by_name.f[0].name = "bitshuffle";
	static const size_t blocks[] = {8, 64, 512, 2048};
	for (size_t i = 0; i < 4; i++) {
		expect_plain(f, &alone, OBJECT_SHUFFLED,
			     as_bitshuffle(f->plain, BYTES, SIZE, blocks[i]));
		struct bytes b = as_bitshuffle(f->plain, BYTES, SIZE, blocks[i]);
		expect_plain(f, &packed, OBJECT_SHUFFLED,
			     as_blosc(b.data, b.len, BLOSC_NOSHUFFLE, "lz4"));
		expect_plain(f, &by_name, OBJECT_SHUFFLED,
			     as_blosc(b.data, b.len, BLOSC_NOSHUFFLE, "zstd"));
		bytes_release(&b);
	}
	/* Bitshuffle is recorded, but HSDS did not apply it: the frame has the plain bytes. */
	expect_plain(f, &packed, OBJECT_SHUFFLED,
		     as_blosc(f->plain, BYTES, BLOSC_BITSHUFFLE, "lz4"));
}

static void bitshuffle_with_a_rest(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = pipeline_of(FILTER_BITSHUFFLE, 0, 0);
	for (size_t elems = 1; elems < 40; elems++) {
		for (size_t size = 1; size <= 9; size++) {
			struct arena *a = arena_new(65536);
			struct codec_plan plan;
			const struct codec_chunk c = {.chain = &plan.chain};
			codec_plan_object(&plan, dtype_opaque(a, (uint32_t)size, "", NULL), elems,
					  &p, OBJECT_SHUFFLED, NULL);
			struct bytes b = as_bitshuffle(f->plain, elems * size, size, 16);
			struct elems out;
			assert_int_equal(decode_elems(&c, &b, &out, NULL), 0);
			assert_int_equal(out.fixed.len, elems * size);
			assert_memory_equal(out.fixed.data, f->plain, elems * size);
			elems_release(&out);
			bytes_release(&b);
			arena_free(a);
		}
	}
}

/* A header whose block size is 0 stands for 8192 bytes of elements, but at least 128 elements. */
static void bitshuffle_of_the_default_block_size(void **state)
{
	static const struct {
		size_t size, block; /* bytes of an element, elements of a block */
	} cases[] = {{1, 8192}, {4, 2048}, {3, 2728}, {63, 128}, {64, 128}, {65, 128}, {100, 128}};
	enum { MOST = 5 * 8192 + 3 };
	uint8_t *data = test_malloc(MOST);
	struct pipeline p = pipeline_of(FILTER_BITSHUFFLE, 0, 0);
	for (size_t i = 0; i < MOST; i++)
		data[i] = (uint8_t)(i * i >> 5);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct arena *a = arena_new(65536);
		const size_t elems = MOST / cases[i].size;
		const size_t n = elems * cases[i].size;
		struct codec_plan plan;
		const struct codec_chunk c = {.chain = &plan.chain};
		codec_plan_object(&plan, dtype_opaque(a, (uint32_t)cases[i].size, "", NULL), elems,
				  &p, OBJECT_SHUFFLED, NULL);
		struct bytes b = as_bitshuffle(data, n, cases[i].size, cases[i].block);
		struct err err = ERR_INIT;
		struct elems out;
		memset(b.data + 8, 0, 4);
		if (decode_elems(&c, &b, &out, &err))
			fail_msg("elements of %zu bytes: %s", cases[i].size, err.msg);
		assert_int_equal(out.fixed.len, n);
		assert_memory_equal(out.fixed.data, data, n);
		elems_release(&out);
		bytes_release(&b);
		arena_free(a);
	}
	test_free(data);
}

/* LZ4 expands a byte to 255 bytes at most. A header that claims more is refused before memory is
 * allocated for its claim. */
static void bitshuffle_allocates_nothing_for_a_false_size(void **state)
{
	enum { N = 100 };
	static const struct {
		uint64_t total;
		bool allocates;
	} cases[] = {{255 * N, true}, {255 * (N + 1), false}, {1 << 30, false}, {SIZE_MAX, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes stored = {0}, out = {0};
		struct err err = ERR_INIT;
		add_be(&stored, cases[i].total, 8);
		add_be(&stored, 8, 4);
		assert_int_equal(bytes_append_zero(&stored, N - stored.len), 0);
		assert_int_equal(bitshuffle_decode(stored.data, N, 1, cases[i].total, &out, &err),
				 -EIO);
		assert_int_equal(out.data != NULL, cases[i].allocates);
		assert_int_equal(strstr(err.msg, "cannot decode") == NULL, cases[i].allocates);
		bytes_release(&stored);
		bytes_release(&out);
	}
}

/* Each case overwrites byte `at` of a valid frame. */
static void damaged_frames(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = pipeline_of(FILTER_DEFLATE, 0, 0);
	static const struct {
		const char *name;
		size_t at;
		uint8_t value;
		int code;
		const char *word;
	} cases[] = {
		{"version 3", 0, 3, -EIO, "its shape needs"},
		{"version of the compressor 2", 1, 2, -EIO, "its shape needs"},
		{"compressor 7", 2, 0xe0, -EOPNOTSUPP, "compressor 7"},
		{"typesize 0", 3, 0, -EIO, "its shape needs"},
		{"more bytes than the chunk", 7, 0x70, -EIO, "at most 4000"},
		{"fewer bytes than the chunk", 5, 1, -EIO, ""},
		{"blocksize 0", 8, 0, -EIO, ""},
		{"blocksize over all bytes", 11, 0x7f, -EIO, "impossible blocks of"},
		{"length is not the object's", 12, 0, -EIO, ""},
		{"offset of the first block", 17, 0xff, -EIO, "damaged"},
		{"data", 26, 0x55, -EIO, "damaged"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = as_blosc(f->plain, BYTES, BLOSC_NOSHUFFLE, "zlib");
		b.data[cases[i].at] = cases[i].value;
		if (strcmp(cases[i].name, "blocksize 0") == 0)
			memset(b.data + 8, 0, 4);
		print_message("%s\n", cases[i].name);
		expect_error(f, &p, b, cases[i].code, cases[i].word);
	}
}

static void damaged_zlib(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = pipeline_of(FILTER_DEFLATE, 0, 0);
	struct bytes b = as_zlib(f->plain, BYTES);
	b.len -= 10;
	expect_error(f, &p, b, -EIO, "truncated");
	b = as_zlib(f->plain, BYTES);
	b.data[b.len - 1] ^= 1;
	expect_error(f, &p, b, -EIO, "incorrect data check");
	b = as_zlib(f->plain, BYTES - SIZE);
	expect_error(f, &p, b, -EIO, "3996 bytes, its shape needs 4000");
	uint8_t *bomb = test_calloc(1, 1 << 24);
	expect_error(f, &p, as_zlib(bomb, 1 << 24), -EIO, "more than 4000");
	expect_error(f, &p, as_blosc(bomb, 1 << 24, BLOSC_NOSHUFFLE, "zstd"), -EIO, "at most 4000");
	test_free(bomb);
}

static void damaged_bitshuffle(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = pipeline_of(FILTER_BITSHUFFLE, 0, 0);
	static const struct {
		const char *name;
		size_t at;
		uint8_t value;
		int cut;
		const char *word;
	} cases[] = {
		{"total is not the chunk's", 7, 1, 0, "its shape needs"},
		{"block of 4 elements", 11, 16, 0, "blocks of"},
		{"block shorter than an element", 11, 3, 0, "blocks of"},
		{"length of a block", 12, 0x7f, 0, "more than the chunk has"},
		{"LZ4 data", 16, 0x00, 0, "LZ4"},
		{"truncated", 0, 0, 1, ""},
		{"header only", 0, 0, 2, ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes b = as_bitshuffle(f->plain, BYTES, SIZE, 32);
		if (cases[i].cut)
			b.len = cases[i].cut == 1 ? b.len - 3 : 12;
		else
			b.data[cases[i].at] = cases[i].value;
		if (i == 1 || i == 2)
			b.data[10] = 0;
		print_message("%s\n", cases[i].name);
		expect_error(f, &p, b, -EIO, cases[i].word);
	}
	struct bytes b = as_bitshuffle(f->plain, BYTES, SIZE, 32);
	add(&b, "x", 1);
	expect_error(f, &p, b, -EIO, "after the last element");
}

static void wrong_lengths(void **state)
{
	struct fixture *f = *state;
	struct pipeline none = {0};
	struct pipeline lzf = pipeline_of(FILTER_LZF, 0, 0);
	expect_error(f, &none, as_is(f->plain, BYTES - 1), -EIO,
		     "3999 bytes, its shape needs 4000");
	expect_error(f, &none, as_is(f->plain, 0), -EIO, "0 bytes, its shape needs 4000");
	expect_error(f, &lzf, as_is(f->plain, BYTES - 1), -EOPNOTSUPP, "filter 32000");
	struct bytes stored = as_is(f->plain, BYTES);
	struct codec_plan plan;
	const struct codec_chunk c = {.chain = &plan.chain};
	codec_plan_object(&plan, f->i32, UINT64_MAX / 2, &none, OBJECT_SHUFFLED, NULL);
	struct elems out;
	assert_int_equal(decode_elems(&c, &stored, &out, NULL), -EIO);
	bytes_release(&stored);
}

/* The code for the first n bytes of an object; *decoded gets the size. */
static int size_of(const struct fixture *f, const struct pipeline *p, const void *head, size_t n,
		   uint64_t object_size, uint64_t max_bytes, uint64_t *decoded)
{
	struct codec_plan plan;
	const struct codec_chunk c = {.chain = &plan.chain, .max_bytes = max_bytes};
	codec_plan_object(&plan, f->text, 3, p, OBJECT_SHUFFLED, NULL);
	return codec_decoded_size(&c, head, n, object_size, decoded, NULL);
}

static void decoded_sizes(void **state)
{
	struct fixture *f = *state;
	struct pipeline none = {0};
	struct pipeline gz = pipeline_of(FILTER_DEFLATE, 0, 0);
	struct bytes frame = as_blosc(f->plain, BYTES, BLOSC_NOSHUFFLE, "zlib");
	struct bytes zlib = as_zlib(f->plain, BYTES);
	uint64_t n = 0;
	assert_int_equal(size_of(f, &gz, frame.data, 16, frame.len, 1 << 20, &n), 0);
	assert_int_equal(n, BYTES);
	assert_int_equal(size_of(f, &gz, frame.data, 16, frame.len, 3999, &n), -EFBIG);
	assert_int_equal(size_of(f, &gz, frame.data, 8, frame.len, 1 << 20, &n), -EAGAIN);
	assert_int_equal(size_of(f, &gz, zlib.data, 16, zlib.len, 1 << 20, &n), -EAGAIN);
	assert_int_equal(size_of(f, &gz, zlib.data, zlib.len, zlib.len, 1 << 20, &n), 0);
	assert_int_equal(n, BYTES);
	assert_int_equal(size_of(f, &gz, zlib.data, zlib.len, zlib.len, BYTES - 1, &n), -EIO);
	assert_int_equal(size_of(f, &none, zlib.data, 16, zlib.len, 1 << 20, &n), 0);
	assert_int_equal(n, zlib.len);
	assert_int_equal(size_of(f, &none, f->plain, 16, 12345, 12344, &n), -EFBIG);
	assert_int_equal(size_of(f, &none, f->plain, 16, 12345, 12345, &n), 0);
	assert_int_equal(n, 12345);
	assert_int_equal(size_of(f, &none, f->plain, 3, 3, 100, &n), 0);
	assert_int_equal(n, 3);
	bytes_release(&frame);
	bytes_release(&zlib);
}

/* The buffer for a zlib stream of unknown decoded size begins with 16 MiB, and grows. */
static void large_zlib_streams(void **state)
{
	enum { LARGE = 40 << 20 };
	struct fixture *f = *state;
	struct pipeline gz = pipeline_of(FILTER_DEFLATE, 0, 0);
	uint8_t *zeros = test_calloc(1, LARGE);
	struct bytes zlib = as_zlib(zeros, LARGE);
	uint64_t n = 0;
	assert_int_equal(size_of(f, &gz, zlib.data, zlib.len, zlib.len, LARGE, &n), 0);
	assert_int_equal(n, LARGE);
	bytes_release(&zlib);
	test_free(zeros);
}

/* The object of three strings, of which the first has n bytes. */
static struct bytes as_strings(uint32_t n, const uint8_t *first)
{
	static const uint8_t rest[] = {0, 0, 0, 0, 2, 0, 0, 0, 'd', 'e'};
	const uint8_t count[] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), 0};
	struct bytes b = as_is(count, sizeof(count));
	add(&b, first, n);
	add(&b, rest, sizeof(rest));
	return b;
}

/* Decodes three strings, and checks that the size agrees. *out is released by the caller. */
static int decode_strings(const struct fixture *f, enum codec_object_form e, struct bytes *stored,
			  struct elems *out)
{
	const struct pipeline gz = pipeline_of(FILTER_SHUFFLE, FILTER_DEFLATE, 0);
	struct codec_plan plan;
	const struct codec_chunk c = {.chain = &plan.chain, .max_bytes = 1 << 20};
	codec_plan_object(&plan, f->text, 3, &gz, e, NULL);
	uint64_t size = 0;
	const int sized =
		codec_decoded_size(&c, stored->data, stored->len, stored->len, &size, NULL);
	int rc = decode_elems(&c, stored, out, NULL);
	if (sized != rc)
		fail_msg("decoding gives %d, the size gives %d", rc, sized);
	for (uint64_t i = 0, left = size; !rc && i < 3; i++) {
		const uint64_t used = 4 + elems_get_vlen(out->fixed.data + 16 * i).count;
		assert_true(used <= left);
		left -= used;
		assert_true(i < 2 || left == 0);
	}
	return rc;
}

/* The counts of these first strings have the form of a zlib header. */
static void strings_that_look_compressed(void **state)
{
	struct fixture *f = *state;
	static const uint32_t lengths[] = {0x0178, 0x9c78, 0xda78, 0x5e78};
	for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		const uint32_t n = lengths[i / 2];
		const enum codec_object_form e = i % 2 ? OBJECT_UNSHUFFLED : OBJECT_SHUFFLED;
		uint8_t *text = test_malloc(n);
		memset(text, 'a', n);
		struct bytes b = as_strings(n, text);
		struct elems out;
		assert_int_equal(decode_strings(f, e, &b, &out), 0);
		assert_int_equal(elems_get_vlen(out.fixed.data).count, n);
		elems_release(&out);
		bytes_release(&b);
		/* One byte less, and it is neither. */
		b = as_strings(n, text);
		b.len--;
		assert_int_equal(decode_strings(f, e, &b, &out), -EIO);
		bytes_release(&b);
		test_free(text);
	}
}

/* A stream that is whole is taken as one, although it would be three strings as it is. */
static void a_stream_that_looks_like_strings(void **state)
{
	struct fixture *f = *state;
	enum { N = 0x0178, HEADER = 2, BLOCK = 5 };
	struct bytes plain = as_strings(3, (const uint8_t *)"abc");
	uint8_t text[N] = {0};
	struct bytes inner = {0};
	/* 78 01, then an empty block whose header begins with the other two bytes of the count. */
	static const uint8_t begin[] = {0x78, 0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0x01};
	const uint8_t len[] = {(uint8_t)plain.len, 0, (uint8_t)~plain.len, 0xff};
	add(&inner, begin, sizeof(begin));
	add(&inner, len, sizeof(len));
	add(&inner, plain.data, plain.len);
	add_be(&inner, adler32(adler32(0, NULL, 0), plain.data, (uInt)plain.len), 4);
	struct elems out;
	assert_int_equal(decode_strings(f, OBJECT_SHUFFLED, &inner, &out), 0);
	assert_int_equal(elems_get_vlen(out.fixed.data).count, 3);
	elems_release(&out);
	/* The same stream at the beginning of a string, whose bytes are behind it. */
	memcpy(text, inner.data + 4, inner.len - 4);
	struct bytes b = as_strings(N, text);
	assert_int_equal(decode_strings(f, OBJECT_SHUFFLED, &b, &out), 0);
	assert_int_equal(elems_get_vlen(out.fixed.data).count, N);
	elems_release(&out);
	bytes_release(&b);
	bytes_release(&inner);
	bytes_release(&plain);
}

static void variable_length_in_a_frame_or_a_stream(void **state)
{
	struct fixture *f = *state;
	struct pipeline gz = pipeline_of(FILTER_SHUFFLE, FILTER_DEFLATE, 0);
	static const uint8_t raw[] = {3, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 2, 0, 0, 0, 'd', 'e'};
	struct codec_plan plan;
	struct codec_chunk c = {.chain = &plan.chain};
	codec_plan_object(&plan, f->text, 3, &gz, OBJECT_SHUFFLED, NULL);
	for (int form = 0; form < 6; form++) {
		struct bytes b = form % 3 == 0 ? as_is(raw, sizeof(raw))
				 : form % 3 == 1
					 ? as_zlib(raw, sizeof(raw))
					 : as_blosc(raw, sizeof(raw), BLOSC_BITSHUFFLE, "lz4");
		struct elems out;
		c.max_bytes = form < 3 ? 17 : 16;
		int rc = decode_elems(&c, &b, &out, NULL);
		assert_int_equal(rc, form < 3 ? 0 : -EIO);
		if (rc == 0) {
			assert_int_equal(out.fixed.len, 48);
			assert_int_equal(elems_get_vlen(out.fixed.data).count, 3);
			assert_int_equal(elems_get_vlen(out.fixed.data + 16).count, 0);
			struct elems_vlen last = elems_get_vlen(out.fixed.data + 32);
			assert_int_equal(last.count, 2);
			assert_memory_equal(out.heap.data + last.offset, "de", 2);
		}
		elems_release(&out);
		bytes_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_bytes_are_moved_not_copied),
		cmocka_unit_test(filters_that_are_only_recorded),
		cmocka_unit_test(every_blosc_frame),
		cmocka_unit_test(zlib_and_shuffle_by_schema),
		cmocka_unit_test(zlib_with_a_dropped_checksum),
		cmocka_unit_test(plain_that_looks_compressed),
		cmocka_unit_test(bitshuffle_forms),
		cmocka_unit_test(bitshuffle_with_a_rest),
		cmocka_unit_test(bitshuffle_of_the_default_block_size),
		cmocka_unit_test(bitshuffle_allocates_nothing_for_a_false_size),
		cmocka_unit_test(damaged_frames),
		cmocka_unit_test(damaged_zlib),
		cmocka_unit_test(damaged_bitshuffle),
		cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(decoded_sizes),
		cmocka_unit_test(large_zlib_streams),
		cmocka_unit_test(variable_length_in_a_frame_or_a_stream),
		cmocka_unit_test(strings_that_look_compressed),
		cmocka_unit_test(a_stream_that_looks_like_strings),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
