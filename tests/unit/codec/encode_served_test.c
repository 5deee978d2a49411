/* SPDX-License-Identifier: Apache-2.0 */
/* Chunk objects in the form in which the service stores them: Blosc frames and bitshuffle. The
 * decoders of this program and of numcodecs, which the service uses, read them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <codec/chunk.h>

#include "decode_elems.h"

enum { ELEMS = 5000, HEADER = 16 };

static struct arena *arena;
static const struct dtype *i32, *text;

static int setup(void **state)
{
	arena = arena_new(1 << 20);
	i32 = dtype_integer(arena, 4, true, false, NULL);
	text = dtype_vlen_string(arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	return i32 && text ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(arena);
	return 0;
}

/* Elements that can be compressed, or random ones. */
static struct elems elements(size_t n, bool random)
{
	struct elems e = {0};
	uint32_t x = 7;
	assert_int_equal(bytes_append_zero(&e.fixed, n), 0);
	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		e.fixed.data[i] = random ? (uint8_t)(x >> 24) : i % 4 ? 0 : (uint8_t)(i / 100);
	}
	return e;
}

static int encode(const struct dtype *t, uint64_t n, const struct service_filters *served,
		  const struct elems *in, struct bytes *out, struct err *err)
{
	static const struct pipeline none;
	struct codec_plan plan;
	const struct codec_encode c = {.chain = &plan.chain};
	codec_plan_object(&plan, t, n, &none, OBJECT_SHUFFLED, served);
	return codec_chunk_encode(&c, in, out, err);
}

/* The filters that a dataset with such chunks records. */
static struct pipeline recorded(const struct service_filters *served)
{
	struct pipeline p = {0};
	if (served->shuffle != SERVED_SHUFFLE_NONE)
		p.f[p.n++].id =
			served->shuffle == SERVED_SHUFFLE_BYTE ? FILTER_SHUFFLE : FILTER_BITSHUFFLE;
	if (served->compressor)
		p.f[p.n++].id = FILTER_DEFLATE;
	return p;
}

/* Encodes and decodes; returns the object. Releases in. */
static struct bytes round_trip(const struct dtype *t, uint64_t n,
			       const struct service_filters *served, struct elems *in)
{
	const struct pipeline p = recorded(served);
	struct codec_plan plan;
	const struct codec_chunk c = {.chain = &plan.chain, .max_bytes = 1 << 24};
	struct bytes object = {0}, copy = {0};
	struct elems back;
	struct err err = ERR_INIT;
	codec_plan_object(&plan, t, n, &p, OBJECT_SHUFFLED, NULL);
	if (encode(t, n, served, in, &object, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(bytes_append(&copy, object.data, object.len), 0);
	if (decode_elems(&c, &copy, &back, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(back.fixed.len, in->fixed.len);
	if (!t->has_vlen)
		assert_memory_equal(back.fixed.data, in->fixed.data, in->fixed.len);
	bytes_release(&copy);
	elems_release(&back);
	elems_release(in);
	return object;
}

static void frames(void **state)
{
	static const struct {
		const char *compressor;
		uint8_t codec;
	} cases[] = {{"blosclz", 0}, {"lz4", 1}, {"lz4hc", 1}, {"zlib", 3}, {"zstd", 4}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t level = 0; level <= 9; level++)
			for (int shuffle = 0; shuffle < 2; shuffle++) {
				const struct service_filters served = {
					.compressor = cases[i].compressor,
					.level = level,
					.shuffle = shuffle ? SERVED_SHUFFLE_BYTE
							   : SERVED_SHUFFLE_NONE};
				struct elems e = elements(4 * ELEMS, level == 1);
				struct bytes b = round_trip(i32, ELEMS, &served, &e);
				const bool stored = b.data[2] & 2;
				assert_int_equal(b.data[0], 2);
				assert_int_equal(b.data[1], 1);
				assert_int_equal(b.data[2] >> 5, cases[i].codec);
				assert_int_equal(b.data[2] & 5, shuffle);
				assert_int_equal(b.data[3], 1);
				assert_int_equal(stored, level < 2);
				assert_true(stored ? b.len == HEADER + 4 * ELEMS
						   : b.len < 2 * ELEMS);
				bytes_release(&b);
			}
}

/* The service stores such chunks as they are. */
static void shuffle_without_a_compressor(void **state)
{
	const struct service_filters served = {.shuffle = SERVED_SHUFFLE_BYTE};
	const struct service_filters none = {0};
	struct elems e = elements(4 * ELEMS, false), same = elements(4 * ELEMS, false);
	struct bytes b = round_trip(i32, ELEMS, &served, &e);
	struct bytes c = round_trip(i32, ELEMS, &none, &same);
	assert_int_equal(b.len, 4 * ELEMS);
	assert_int_equal(c.len, 4 * ELEMS);
	assert_memory_equal(b.data, c.data, b.len);
	bytes_release(&b);
	bytes_release(&c);
}

static void variable_length_is_not_shuffled(void **state)
{
	for (int shuffle = 0; shuffle < 3; shuffle++)
		for (int compressed = 0; compressed < 2; compressed++) {
			const struct service_filters served = {
				.compressor = compressed ? "zlib" : NULL,
				.level = 5,
				.shuffle = (enum service_shuffle)shuffle};
			struct elems e = {0};
			uint8_t slot[DTYPE_VLEN_SIZE];
			uint64_t offset;
			assert_int_equal(elems_heap_add(&e, "abc", 3, &offset), 0);
			elems_put_vlen(slot, 3, offset);
			assert_int_equal(bytes_append(&e.fixed, slot, sizeof(slot)), 0);
			struct bytes b = round_trip(text, 1, &served, &e);
			assert_int_equal(b.len, compressed ? HEADER + 7 : 7);
			assert_memory_equal(b.data + (compressed ? HEADER : 0), "\3\0\0\0abc", 7);
			if (compressed)
				assert_int_equal(b.data[2] & 5, 0);
			bytes_release(&b);
		}
}

/* Blocks of 2,048 elements; the last ones that do not fill eight stay as they are. */
static void bitshuffle(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 4, 8, 100};
	static const uint32_t counts[] = {1, 7, 8, 9, 2047, 2048, 2049, 2056, 5001};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
			for (int compressed = 0; compressed < 2; compressed++) {
				const struct dtype *t = dtype_opaque(arena, sizes[s], "", NULL);
				const struct service_filters served = {
					.compressor = compressed ? "lz4" : NULL,
					.level = 5,
					.shuffle = SERVED_SHUFFLE_BIT};
				const uint32_t total = sizes[s] * counts[n];
				struct elems e = elements(total, n % 2);
				struct bytes b = round_trip(t, counts[n], &served, &e);
				uint8_t header[12] = {0};
				for (int i = 0; i < 4; i++) {
					header[4 + i] = (uint8_t)(total >> (24 - 8 * i));
					header[8 + i] = (uint8_t)(2048 * sizes[s] >> (24 - 8 * i));
				}
				if (!compressed)
					assert_memory_equal(b.data, header, sizeof(header));
				else
					assert_int_equal(b.data[2] & 5, 0);
				bytes_release(&b);
			}
}

static void refuse(uint64_t n, const struct service_filters *served, struct elems *e, int code,
		   const char *word)
{
	struct bytes out = {0};
	struct err err = ERR_INIT;
	assert_int_equal(encode(i32, n, served, e, &out, &err), code);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" instead of \"%s\"", err.msg, word);
	assert_null(out.data);
}

static void refused(void **state)
{
	const struct service_filters lzf = {.refused = "lzf"};
	const struct service_filters unknown = {.compressor = "fancy"};
	const struct service_filters zlib = {.compressor = "zlib"};
	struct elems e = elements(4 * ELEMS, false);
	refuse(ELEMS, &lzf, &e, -EOPNOTSUPP, "\"lzf\"");
	refuse(ELEMS, &unknown, &e, -EOPNOTSUPP, "\"fancy\" is not built in");
	refuse(ELEMS + 1, &zlib, &e, -EIO, "are not 5001 elements");
	elems_release(&e);
	/* The size is checked before any element is read: these have no memory. */
	struct elems huge = {.fixed = {.len = (size_t)1 << 31}};
	refuse(1 << 29, &zlib, &huge, -EFBIG, "too large for Blosc");
}

static bool python_runs(const char *program, const char *path)
{
	char command[512];
	snprintf(command, sizeof(command), "/usr/bin/python3 -c '%s' '%s' 2>/dev/null", program,
		 path);
	return system(command) == 0;
}

static void numcodecs_reads_frames(void **state)
{
	static const char *const names[] = {"blosclz", "lz4", "lz4hc", "zlib", "zstd"};
	static const char program[] =
		"import sys, numcodecs\n"
		"data = numcodecs.Blosc().decode(open(sys.argv[1], \"rb\").read())\n"
		"want = bytes(0 if i % 4 else i // 100 % 256 for i in range(20000))\n"
		"sys.exit(bytes(data) != want)";
	if (!python_runs("import numcodecs", ""))
		skip();
	for (size_t i = 0; i < 2 * sizeof(names) / sizeof(names[0]); i++) {
		const struct service_filters served = {.compressor = names[i / 2],
						       .level = 5,
						       .shuffle = i % 2 ? SERVED_SHUFFLE_BYTE
									: SERVED_SHUFFLE_NONE};
		char path[] = "/tmp/frame-XXXXXX";
		struct elems e = elements(4 * ELEMS, false);
		struct bytes b = round_trip(i32, ELEMS, &served, &e);
		const int fd = mkstemp(path);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, b.data, b.len), b.len);
		close(fd);
		assert_true(python_runs(program, path));
		unlink(path);
		bytes_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames),
		cmocka_unit_test(shuffle_without_a_compressor),
		cmocka_unit_test(variable_length_is_not_shuffled),
		cmocka_unit_test(bitshuffle),
		cmocka_unit_test(refused),
		cmocka_unit_test(numcodecs_reads_frames),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
