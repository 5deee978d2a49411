/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements that stay shuffled, and checksums that are not computed again. For each chain, the slot
 * of the coded elements has the same bytes as the slot of the plain ones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <zlib.h>

#include <data/shuffle.h>
#include <codec/zstream.h>
#include "stored_encode.h"

enum { N = 70001, SIZE = 4, BYTES = N * SIZE, MORE = 10 };

static struct arena *arena;
static const struct dtype *i32, *gaps;
static uint8_t plain[BYTES + MORE];

static int setup(void **state)
{
	(void)state;
	arena = arena_new(1 << 20);
	i32 = dtype_integer(arena, SIZE, true, false, NULL);
	const struct dtype_member m[] = {{"a", 0, dtype_integer(arena, 2, true, false, NULL)},
					 {"b", 3, dtype_integer(arena, 1, true, false, NULL)}};
	gaps = dtype_compound(arena, 2, m, SIZE, NULL);
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(i % SIZE ? i / 5000 : i / 11 * 7);
	return gaps ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

static const uint32_t sizes[] = {2, SIZE};
static const struct pipeline gz = {1, {{.id = FILTER_DEFLATE}}},
			     shuffled_gz = {2, {{.id = FILTER_SHUFFLE}, {.id = FILTER_DEFLATE}}},
			     summed = {3,
				       {{.id = FILTER_SHUFFLE, .nparams = 1, .params = &sizes[1]},
					{.id = FILTER_DEFLATE},
					{.id = FILTER_FLETCHER32}}},
			     sum_first = {2, {{.id = FILTER_FLETCHER32}, {.id = FILTER_DEFLATE}}},
			     halves = {2,
				       {{.id = FILTER_SHUFFLE, .nparams = 1, .params = &sizes[0]},
					{.id = FILTER_DEFLATE}}},
			     shuffled = {1, {{.id = FILTER_SHUFFLE}}}, no_filter = {0};

/* The bytes of a chunk: a shuffle of elements of so many bytes, or none if that is 0; then
 * deflate. */
static struct bytes stored_as(size_t shuffle, size_t n, bool deflate)
{
	static uint8_t x[sizeof(plain)];
	struct bytes b = {0};
	if (shuffle)
		shuffle_bytes(x, plain, n, shuffle);
	else
		memcpy(x, plain, n);
	if (deflate)
		assert_int_equal(zstream_deflate(x, n, 1, &b, NULL), 0);
	else
		assert_int_equal(bytes_append(&b, x, n), 0);
	return b;
}

static size_t any_below(size_t n)
{
	static uint32_t r = 1;
	r = r * 1664525 + 1013904223;
	return (size_t)((uint64_t)r * n >> 32);
}

/* Reads the slot whole, and in pieces that begin and end anywhere. */
static void expect_bytes(const struct pipeline *p, const struct chunk_data *made,
			 const struct bytes *want)
{
	enum { PIECES = 60, ENDS = 12 };
	uint8_t *got = test_malloc(want->len + 1);
	slot_read(p, made, 0, got, want->len);
	assert_memory_equal(got, want->data, want->len);
	for (size_t i = 0; i < PIECES; i++) {
		const size_t block = i % 4 * 65540;
		const size_t at = i < PIECES / 2 ? any_below(want->len) : block + any_below(ENDS);
		const size_t len = any_below(i % 3 ? ENDS : want->len - at) + 1;
		const size_t n = len < want->len - at ? len : want->len - at;
		got[n] = 0x5a;
		slot_read(p, made, at, got, n);
		assert_memory_equal(got, want->data + at, n);
		assert_int_equal(got[n], 0x5a);
	}
	for (size_t at = want->len - ENDS; at < want->len; at++) {
		slot_read(p, made, at, got, want->len - at);
		assert_memory_equal(got, want->data + at, want->len - at);
	}
	test_free(got);
}

static void expect_slot(const struct pipeline *p, const struct chunk_data *given)
{
	struct chunk_data made = *given;
	struct bytes want auto_bytes = {0}, *bytes = &made.elems.fixed;
	const size_t size = (size_t)codec_stored_size(p, BYTES);
	assert_int_equal(bytes->len, BYTES);
	*bytes = (struct bytes){0};
	assert_int_equal(bytes_append(bytes, given->elems.fixed.data, BYTES), 0);
	assert_int_equal(bytes_append_zero(&want, size), 0);
	assert_int_equal(stored_encode(p, SIZE, plain, BYTES, want.data), 0);
	assert_int_equal(codec_slot_make(p, SIZE, &made, NULL), 0);
	assert_true(bytes->len == (codec_slot_is_deflated(p) ? BYTES : size) || p == &sum_first);
	expect_bytes(p, &made, &want);
	chunk_data_release(&made);
}

/* Decodes the chunk with and without permission to leave it shuffled. */
static void expect(const struct codec_chain *chain, uint32_t mask, const struct bytes *stored,
		   bool stays, bool has_adler, bool has_adler_if_plain)
{
	for (int accepts = 0; accepts < 2; accepts++) {
		struct bytes in = {0};
		struct chunk_data out;
		const struct codec_chunk c = {.chain = chain,
					      .filter_mask = mask,
					      .covered = N,
					      .accepts_shuffled = accepts};
		assert_int_equal(bytes_append(&in, stored->data, stored->len), 0);
		assert_int_equal(codec_chunk_decode(&c, &in, &out, NULL), 0);
		assert_int_equal(out.shuffled, accepts && stays ? SIZE : 0);
		assert_int_equal(out.has_adler, accepts ? has_adler : has_adler_if_plain);
		if (out.has_adler)
			assert_int_equal(out.adler32,
					 adler32(adler32(0, NULL, 0), out.elems.fixed.data, BYTES));
		expect_slot(&shuffled_gz, &out);
		expect_slot(&summed, &out);
		expect_slot(&shuffled, &out);
		expect_slot(&no_filter, &out);
		if (!out.shuffled) {
			expect_slot(&gz, &out);
			expect_slot(&sum_first, &out);
		}
		chunk_data_release(&out);
		bytes_release(&in);
	}
}

static void chunk_objects(void **state)
{
	struct codec_plan plan;
	(void)state;
	struct bytes of_bytes auto_bytes = stored_as(0, BYTES, true);
	struct bytes of_words auto_bytes = stored_as(SIZE, BYTES, true);
	struct bytes as_is auto_bytes = stored_as(0, BYTES, false);
	codec_plan_object(&plan, i32, N, &shuffled_gz, OBJECT_SHUFFLED, NULL);
	expect(&plan.chain, 0, &of_words, true, true, false);
	expect(&plan.chain, 0, &as_is, false, false, false);
	codec_plan_object(&plan, i32, N, &shuffled_gz, OBJECT_UNSHUFFLED, NULL);
	expect(&plan.chain, 0, &of_bytes, false, true, true);
	codec_plan_object(&plan, i32, N, &gz, OBJECT_SHUFFLED, NULL);
	expect(&plan.chain, 0, &of_bytes, false, true, true);
}

static void chunks_of_files(void **state)
{
	struct codec_plan plan;
	(void)state;
	struct bytes of_bytes auto_bytes = stored_as(0, BYTES, true);
	struct bytes of_halves auto_bytes = stored_as(2, BYTES, true);
	struct bytes of_words auto_bytes = stored_as(SIZE, BYTES, true);
	struct bytes words auto_bytes = stored_as(SIZE, BYTES, false);
	codec_plan_file(&plan, i32, N, gz.f, gz.n, false);
	expect(&plan.chain, 0, &of_bytes, false, true, true);
	codec_plan_file(&plan, i32, N, shuffled_gz.f, shuffled_gz.n, false);
	expect(&plan.chain, 0, &of_words, true, true, false);
	expect(&plan.chain, 1, &of_bytes, false, true, true); /* the mask excludes the shuffle */
	expect(&plan.chain, 2, &words, true, false, false);
	codec_plan_file(&plan, i32, N, halves.f, halves.n, false);
	expect(&plan.chain, 0, &of_halves, false, false, false);
	codec_plan_file(&plan, i32, N, shuffled.f, shuffled.n, false);
	expect(&plan.chain, 0, &words, true, false, false);
	struct bytes sum auto_bytes = {0};
	assert_int_equal(bytes_append_zero(&sum, (size_t)codec_stored_size(&sum_first, BYTES)), 0);
	assert_int_equal(stored_encode(&sum_first, SIZE, plain, BYTES, sum.data), 0);
	codec_plan_file(&plan, i32, N, sum_first.f, sum_first.n, false);
	expect(&plan.chain, 0, &sum, false, false, false);
}

/* A chunk of a file may have more bytes than its elements, or fewer. */
static void other_lengths(void **state)
{
	struct codec_plan plan;
	(void)state;
	struct bytes longer auto_bytes = stored_as(0, BYTES + MORE, true);
	codec_plan_file(&plan, i32, N, gz.f, gz.n, true);
	expect(&plan.chain, 0, &longer, false, false, false);
	struct bytes words auto_bytes = stored_as(SIZE, BYTES + SIZE, true);
	codec_plan_file(&plan, i32, N, shuffled_gz.f, shuffled_gz.n, true);
	expect(&plan.chain, 0, &words, false, false, false);
}

static void arrays(void **state)
{
	static const struct codec_array_step zlib[] = {{.codec = CODEC_ZLIB},
						       {.codec = CODEC_SHUFFLE, .elem_size = SIZE}},
					     halves_first[] = {
						     {.codec = CODEC_ZLIB},
						     {.codec = CODEC_SHUFFLE, .elem_size = 2}};
	struct codec_plan plan;
	(void)state;
	struct bytes of_words auto_bytes = stored_as(SIZE, BYTES, true);
	struct bytes of_halves auto_bytes = stored_as(2, BYTES, true);
	struct bytes words auto_bytes = stored_as(SIZE, BYTES, false);
	assert_int_equal(codec_plan_array(&plan, i32, SIZE, N, zlib, 2), 0);
	expect(&plan.chain, 0, &of_words, true, true, false);
	assert_int_equal(codec_plan_array(&plan, i32, SIZE, N, halves_first, 2), 0);
	expect(&plan.chain, 0, &of_halves, false, false, false);
	assert_int_equal(codec_plan_array(&plan, i32, SIZE, N, zlib + 1, 1), 0);
	expect(&plan.chain, 0, &words, true, false, false);
}

/* The stored elements of 3 bytes are shuffled, but those of the file have 4 bytes. */
static void elements_with_gaps(void **state)
{
	enum { PACKED = 3 };
	static uint8_t words[N * PACKED];
	struct codec_plan plan;
	struct bytes b auto_bytes = {0};
	struct chunk_data out;
	(void)state;
	shuffle_bytes(words, plain, sizeof(words), PACKED);
	assert_int_equal(zstream_deflate(words, sizeof(words), 1, &b, NULL), 0);
	codec_plan_object(&plan, gaps, N, &shuffled_gz, OBJECT_SHUFFLED, NULL);
	const struct codec_chunk c = {.chain = &plan.chain, .accepts_shuffled = true};
	assert_int_equal(codec_chunk_decode(&c, &b, &out, NULL), 0);
	assert_false(out.shuffled || out.has_adler);
	for (size_t i = 0; i < N; i++) {
		assert_memory_equal(out.elems.fixed.data + SIZE * i, plain + PACKED * i, 2);
		assert_int_equal(out.elems.fixed.data[SIZE * i + 3], plain[PACKED * i + 2]);
	}
	chunk_data_release(&out);
}

/* A slot of no bytes still has a block. */
static void an_empty_slot(void **state)
{
	struct chunk_data d = {0};
	uint8_t got[11];
	(void)state;
	assert_int_equal(codec_slot_make(&gz, 1, &d, NULL), 0);
	codec_stored_read(&d, 0, got, sizeof(got));
	assert_memory_equal(got, "\x78\x01\x01\0\0\xff\xff\0\0\0\x01", sizeof(got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunk_objects),      cmocka_unit_test(chunks_of_files),
		cmocka_unit_test(other_lengths),      cmocka_unit_test(arrays),
		cmocka_unit_test(elements_with_gaps), cmocka_unit_test(an_empty_slot),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
