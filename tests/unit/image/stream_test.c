/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of chunks before a reader needs them: within one read, and across datasets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <prefetch/sequential.h>

#include "plan.h"
#include "small_tree.h"
#include "stream.h"

static const struct chunk_list unlisted = {.listed = false};

static void read_all(struct small_tree *t, struct image_stream *s, uint64_t from, uint64_t to,
		     size_t piece)
{
	auto_free uint8_t *buf = malloc(piece);
	for (uint64_t at = from; at < to; at += piece)
		assert_int_equal(
			image_read(t->img, s, buf, min_u64(piece, to - at), at, NULL, NULL),
			min_u64(piece, to - at));
}

/* More chunks than one batch, and of two datasets. */
static void a_read_requests_all_of_its_chunks(void **state)
{
	enum { N = 300, CHUNK = 4096 };
	struct small_tree *t = *state;
	for (int i = 0; i < 2; i++)
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
	assert_int_equal(small_render(t, NULL), 0);
	const struct image_dataset *d = t->img->datasets;
	read_all(t, NULL, d[0].raw_addr, d[1].raw_addr + N * CHUNK, 2 * N * CHUNK);
	assert_int_equal(t->prefetches[1], N);
	assert_int_equal(t->prefetches[2], N);
}

static void a_read_may_end_in_the_first_byte_of_a_chunk(void **state)
{
	enum { N = 10, CHUNK = 4096 };
	struct small_tree *t = *state;
	small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
	assert_int_equal(small_render(t, NULL), 0);
	const uint64_t raw = t->img->datasets[0].raw_addr;
	read_all(t, NULL, raw, raw + 2 * CHUNK + 1, 2 * CHUNK + 1);
	assert_int_equal(t->prefetches[1], 3);
}

static void a_read_of_one_chunk_requests_no_other(void **state)
{
	enum { N = 10, CHUNK = 4096 };
	struct small_tree *t = *state;
	small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
	assert_int_equal(small_render(t, NULL), 0);
	const uint64_t raw = t->img->datasets[0].raw_addr;
	read_all(t, NULL, raw, raw + N * CHUNK, CHUNK);
	assert_int_equal(t->prefetches[1], 0);
}

/* Reads of one chunk each, from the metadata on: the first chunks of the last dataset are requested
 * before it is read. A program that begins with a dataset does not read the file sequentially. */
static void sequential_reads_prefetch_the_next_dataset(void **state)
{
	enum { N = 160, CHUNK = 64 << 10 }; /* 10 MiB: see SEQUENTIAL_MARGIN */
	for (int sequential = 0; sequential < 2; sequential++) {
		struct small_tree *t = *state;
		small_begin(t);
		for (int i = 0; i < 3; i++)
			small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
		assert_int_equal(small_render(t, NULL), 0);
		const struct image_dataset *d = t->img->datasets;
		struct image_stream *s = image_stream_new(t->img);
		read_all(t, s, sequential ? 0 : d[0].raw_addr, d[0].raw_addr, CHUNK);
		for (int i = 0; i < 2; i++)
			read_all(t, s, d[i].raw_addr, d[i].raw_addr + N * CHUNK, CHUNK);
		if (sequential)
			assert_in_range(t->prefetches[3], 1, N);
		else
			assert_int_equal(t->prefetches[3], 0);
		image_stream_free(s);
	}
}

/* The program reads the first dataset of the file from the metadata on, or without the metadata.
 * Only a program that may copy the file causes requests of other datasets, and only of a few small
 * chunks. */
static void the_end_of_the_first_dataset_prefetches_what_is_small(void **state)
{
	enum { N = 64, CHUNK = 64 << 10, SMALL = 16 << 10 };
	for (int sequential = 0; sequential < 2; sequential++) {
		struct small_tree *t = *state;
		small_begin(t);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), 3, SMALL, unlisted);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
		assert_int_equal(small_render(t, NULL), 0);
		const struct image_dataset *d = t->img->datasets;
		const uint64_t raw = d[0].raw_addr;
		struct image_stream *s = image_stream_new(t->img);
		read_all(t, s, sequential ? 0 : raw, raw, CHUNK);
		read_all(t, s, raw, raw + N * CHUNK / 2, CHUNK);
		assert_int_equal(t->prefetches[2], 0);
		read_all(t, s, raw + N * CHUNK / 2, raw + N * CHUNK, CHUNK);
		assert_int_equal(t->prefetches[2], sequential ? 3 : 0);
		assert_in_range(t->prefetches[3], 0, sequential ? N / SEQUENTIAL_TRIAL : 0);
		image_stream_free(s);
	}
}

/* A program that copies begins with a long read; libhdf5 begins with a few bytes. */
static void a_copy_requests_the_first_chunks(void **state)
{
	enum { N = 20, CHUNK = 256 << 10, LONG = 128 << 10, LARGE = 8 << 20 };
	static const struct {
		uint64_t chunk, first, requested;
	} cases[] = {
		{CHUNK, LONG, 4}, {CHUNK, LONG - 1, 0}, {LONG / 8, LONG, 14}, {LARGE, LONG, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct small_tree *t = *state;
		small_begin(t);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, cases[i].chunk, unlisted);
		assert_int_equal(small_render(t, NULL), 0);
		struct image_stream *s = image_stream_new(t->img);
		const uint64_t raw = t->img->datasets[0].raw_addr;
		read_all(t, s, 0, (raw / cases[i].first + 1) * cases[i].first, cases[i].first);
		if (cases[i].chunk >= CHUNK)
			assert_int_equal(t->prefetches[1], cases[i].requested);
		else
			assert_true(t->prefetches[1] >= cases[i].requested);
		image_stream_free(s);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_read_requests_all_of_its_chunks),
		TEST(a_read_may_end_in_the_first_byte_of_a_chunk),
		TEST(a_read_of_one_chunk_requests_no_other),
		TEST(sequential_reads_prefetch_the_next_dataset),
		TEST(a_copy_requests_the_first_chunks),
		TEST(the_end_of_the_first_dataset_prefetches_what_is_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
