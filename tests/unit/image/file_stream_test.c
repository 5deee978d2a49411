/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of chunks before a reader needs them: within one read, and across datasets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <prefetch/sequential.h>

#include "image/image_plan.h"
#include "small_tree.h"
#include "cache/stream.h"

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
		{CHUNK, LONG, 6}, {CHUNK, LONG - 1, 0}, {LONG / 8, LONG, 14}, {LARGE, LONG, 1}};
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

/* A read of one small dataset requests all of them, unless they are many. */
static void small_datasets_are_requested_together(void **state)
{
	enum { SMALL = 2048, LARGE = 64 << 10, FEW = 16 };
	for (int few = 0; few < 2; few++) {
		struct small_tree *t = *state;
		const int n = few ? FEW : FEW + 1;
		small_begin(t);
		for (int i = 0; i < n; i++)
			small_dataset(t, dtype_opaque(t->a, 1, "", NULL), 1, SMALL, unlisted);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), 3, LARGE, unlisted);
		assert_int_equal(small_render(t, NULL), 0);
		const struct image_dataset *d = t->img->datasets;
		struct image_stream *s = image_stream_new(t->img);
		read_all(t, s, d[n].raw_addr, d[n].raw_addr + LARGE, LARGE);
		assert_int_equal(t->prefetches[1], 0);
		read_all(t, s, d[1].raw_addr, d[1].raw_addr + SMALL, SMALL);
		for (int i = 1; i <= n; i++)
			assert_int_equal(t->prefetches[i], few);
		assert_int_equal(t->prefetches[n + 1], 0);
		image_stream_free(s);
	}
}

/* The first `whole` datasets are read, the last of them without its end if `part`; then a chunk of
 * the last dataset. */
static void a_program_that_reads_datasets_completely_continues(void **state)
{
	enum { N = 3, LAST = 40, CHUNK = 256 << 10 };
	static const struct {
		int whole;
		bool part, backwards;
		uint64_t chunk, requested;
	} cases[] = {
		{2, false, false, 0, 18}, {2, false, true, 0, 10}, {1, false, false, 0, 0},
		{2, true, false, 0, 0},	  {2, true, true, 0, 0},   {2, false, false, 1, 0},
		{0, false, false, 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct small_tree *t = *state;
		small_begin(t);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), LAST, CHUNK, unlisted);
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
		assert_int_equal(small_render(t, NULL), 0);
		const struct image_dataset *d = t->img->datasets;
		struct image_stream *s = image_stream_new(t->img);
		for (int k = 0; k < cases[i].whole; k++) {
			const bool is_last = k == cases[i].whole - 1;
			const uint64_t raw =
				d[cases[i].backwards ? cases[i].whole - 1 - k : k].raw_addr;
			const int n = N - (is_last && cases[i].part);
			read_all(t, s, raw, raw + (uint64_t)n * CHUNK, CHUNK);
		}
		const uint64_t at = d[2].raw_addr + cases[i].chunk * CHUNK;
		read_all(t, s, at, at + CHUNK, CHUNK);
		assert_int_equal(t->prefetches[3], cases[i].requested);
		assert_int_equal(t->prefetches[4], 0);
		image_stream_free(s);
	}
}

/* Datasets of one chunk that are read in any order are complete, too. */
static void random_reads_of_datasets_request_no_other(void **state)
{
	enum { N = 7, CHUNK = 256 << 10 };
	struct small_tree *t = *state;
	for (int i = 0; i < N; i++)
		small_dataset(t, dtype_opaque(t->a, 1, "", NULL), 1, CHUNK, unlisted);
	assert_int_equal(small_render(t, NULL), 0);
	struct image_stream *s = image_stream_new(t->img);
	for (int i = 0; i < N; i++) {
		const uint64_t raw = t->img->datasets[i * 3 % N].raw_addr;
		read_all(t, s, raw, raw + CHUNK, CHUNK);
	}
	for (int i = 1; i <= N; i++)
		assert_int_equal(t->prefetches[i], 0);
	image_stream_free(s);
}

/* Returns the number of slots of the first dataset that are known, which must be the first ones. */
static uint64_t known_slots(struct small_tree *t, uint64_t n)
{
	uint64_t known = 0, last = 0;
	pthread_mutex_lock(&t->cache->lock);
	for (uint64_t i = 0; i < n; i++) {
		if (!entry_find_locked(t->cache, t->img->owner, 0, i))
			continue;
		known++;
		last = i;
	}
	pthread_mutex_unlock(&t->cache->lock);
	assert_int_equal(known, last + 1);
	return known;
}

/* A load takes 50 ms, and everything else 1 µs. */
static uint64_t clock_ns, in_load;
static struct chunk_source nearby;

static uint64_t distant_now(const struct env *env)
{
	(void)env;
	return (clock_ns += 1000) + in_load;
}

static void distant_get(void *ctx, const struct chunk_request *request, chunk_done done, void *arg)
{
	in_load = 50000000;
	nearby.get(ctx, request, done, arg);
	in_load = 0;
}

/* Several threads serve reads of 1 MiB out of order. The chunks are requested in batches of as many
 * as take one request, without gaps, and none after the end of a row if the row before it ended
 * there. */
static void reads_in_order_of_joined_chunks_request_whole_batches(void **state)
{
	enum { N = 2000, CHUNK = 64 << 10, JOINED = 16, MIB = 1 << 20, ROW = 500 };
	static const int order[] = {0, 2, 1, 4, 3, 6, 7, 5, 9, 8};
	struct small_tree *t = *state;
	small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
	assert_int_equal(small_render(t, NULL), 0);
	struct image_dataset *d = t->img->datasets;
	d->joined = JOINED;
	nearby = t->img->chunks;
	t->img->chunks.get = distant_get;
	t->env.now = distant_now;
	struct image_stream *s = image_stream_new(t->img);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const uint64_t at = d->raw_addr + order[i] * (uint64_t)MIB;
		read_all(t, s, at, at + MIB, MIB);
	}
	const uint64_t known = known_slots(t, N);
	assert_in_range(known, 11 * JOINED, 3 * 10 * JOINED);
	assert_int_equal(known % JOINED, 0);
	const uint64_t next = d->raw_addr + (uint64_t)ROW * CHUNK;
	read_all(t, s, d->raw_addr + 10 * (uint64_t)MIB, d->raw_addr + 12 * (uint64_t)MIB, MIB);
	read_all(t, s, next, next + 12 * (uint64_t)MIB, MIB);
	assert_int_equal(t->prefetches[1], known_slots(t, ROW) + 12 * JOINED);
	image_stream_free(s);
}

/* Of a store that is so near that two chunks ahead would be enough, two requests are ahead: chunks
 * that follow each other may lie far apart in a shard, and many of them are joined to long ranges.
 */
static void a_near_store_gets_whole_batches(void **state)
{
	enum { N = 2000, CHUNK = 64 << 10, JOINED = 16, MIB = 1 << 20, READ = 8 };
	struct small_tree *t = *state;
	small_dataset(t, dtype_opaque(t->a, 1, "", NULL), N, CHUNK, unlisted);
	assert_int_equal(small_render(t, NULL), 0);
	struct image_dataset *d = t->img->datasets;
	d->joined = JOINED;
	struct image_stream *s = image_stream_new(t->img);
	for (uint64_t at = d->raw_addr; at < d->raw_addr + READ * (uint64_t)MIB; at += MIB)
		read_all(t, s, at, at + MIB, MIB);
	assert_int_equal(known_slots(t, N), (READ + 2) * JOINED);
	image_stream_free(s);
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
		TEST(small_datasets_are_requested_together),
		TEST(a_program_that_reads_datasets_completely_continues),
		TEST(random_reads_of_datasets_request_no_other),
		TEST(reads_in_order_of_joined_chunks_request_whole_batches),
		TEST(a_near_store_gets_whole_batches),
		TEST(the_end_of_the_first_dataset_prefetches_what_is_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
