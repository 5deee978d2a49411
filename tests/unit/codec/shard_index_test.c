/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes of shards: what is read, and each kind of damage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <codec/chain.h>
#include <codec/shard_index.h>

enum { CHUNKS = 4, SIZE = 1000, LARGEST = 300 };

/* Writes the index of shards of 4 inner chunks with the same entry for all. Returns its length. */
static size_t make(const struct shard *s, uint64_t offset, uint64_t length, uint8_t *out)
{
	const uint64_t pair[] = {offset, length};
	for (size_t i = 0; i < CHUNKS * 2; i++)
		for (unsigned int k = 0; k < 8; k++)
			out[8 * i + k] = (uint8_t)(pair[i % 2] >> 8 * (s->big_endian ? 7 - k : k));
	const uint32_t crc = checksum_crc32c(out, CHUNKS * SHARD_ENTRY, 0);
	for (unsigned int k = 0; s->has_checksum && k < 4; k++)
		out[CHUNKS * SHARD_ENTRY + k] = (uint8_t)(crc >> 8 * k);
	return shard_index_size(s);
}

/* Reads an index of which each inner chunk has this entry, in a block of exactly its size. */
static int entry(const struct shard *s, uint64_t offset, uint64_t length, struct shard_entry *out,
		 struct err *err)
{
	uint8_t index[CHUNKS * SHARD_ENTRY + SHARD_CHECKSUM];
	const size_t n = make(s, offset, length, index);
	uint8_t *exact = malloc(n);
	assert_non_null(exact);
	memcpy(exact, index, n);
	assert_int_equal(codec_shard_index(s, exact, n, err), 0);
	const int first = codec_shard_entry(s, exact, 0, SIZE, out, NULL);
	const int rc = codec_shard_entry(s, exact, CHUNKS - 1, SIZE, out, err);
	assert_int_equal(first, rc);
	free(exact);
	return rc;
}

static struct shard shard_of(bool at_start, bool big_endian, bool has_checksum)
{
	return (struct shard){.nchunks = CHUNKS,
			      .largest = LARGEST,
			      .at_start = at_start,
			      .big_endian = big_endian,
			      .has_checksum = has_checksum};
}

static void entries_have_an_offset_and_a_length(void **state)
{
	for (unsigned int i = 0; i < 8; i++) {
		const struct shard s = shard_of(i & 1, i & 2, i & 4);
		const uint64_t index = shard_index_size(&s), low = s.at_start ? index : 0;
		const uint64_t high = s.at_start ? SIZE : SIZE - index;
		struct shard_entry e;
		struct err err = ERR_INIT;
		assert_int_equal(entry(&s, low, LARGEST, &e, &err), 0);
		assert_false(e.absent);
		assert_true(e.offset == low && e.length == LARGEST);
		assert_int_equal(entry(&s, high - 1, 1, &e, &err), 0);
		assert_true(e.offset == high - 1 && e.length == 1);
		assert_int_equal(entry(&s, UINT64_MAX, UINT64_MAX, &e, &err), 0);
		assert_true(e.absent);
	}
}

static void damaged_entries(void **state)
{
	static const struct {
		bool at_start;
		uint64_t offset, length;
		const char *why;
	} rows[] = {
		{false, UINT64_MAX, 10, "only one of them says that it is not stored"},
		{false, 10, UINT64_MAX, "only one of them says that it is not stored"},
		{false, 10, 0, "it has no bytes"},
		{false, 10, LARGEST + 1, "no encoded chunk is so long"},
		{false, SIZE, 1, "it ends behind the shard"},
		{false, UINT64_MAX - 1, 2, "it ends behind the shard"},
		{false, UINT64_MAX - 1, 1, "it ends behind the shard"},
		{false, SIZE - 68, 1, "it overlaps the index"},
		{false, SIZE - 69, 2, "it overlaps the index"},
		{true, 67, 10, "it overlaps the index"},
		{true, 0, 10, "it overlaps the index"},
		{true, SIZE - 9, 10, "it ends behind the shard"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct shard s = shard_of(rows[i].at_start, i % 2, true);
		struct shard_entry e;
		struct err err = ERR_INIT;
		assert_int_equal(entry(&s, rows[i].offset, rows[i].length, &e, &err), -EIO);
		assert_non_null(strstr(err.msg, "index of the shard: inner chunk 3 has offset "));
		assert_non_null(strstr(err.msg, rows[i].why));
	}
}

static void damaged_indexes(void **state)
{
	const struct shard s = shard_of(false, false, true);
	uint8_t index[CHUNKS * SHARD_ENTRY + SHARD_CHECKSUM + 1];
	const size_t n = make(&s, 0, 10, index);
	struct err err = ERR_INIT;
	for (size_t i = 0; i <= n + 1; i++)
		assert_int_equal(codec_shard_index(&s, index, i, NULL), i == n ? 0 : -EIO);
	codec_shard_index(&s, index, 0, &err);
	assert_string_equal(err.msg, "the shard has 0 bytes for its index of 68 bytes");
	for (size_t i = 0; i < n; i++) {
		index[i] ^= 1;
		assert_int_equal(codec_shard_index(&s, index, n, &err), -EIO);
		assert_non_null(strstr(err.msg, "crc32c does not match"));
		index[i] ^= 1;
	}
	assert_int_equal(codec_shard_index(&s, index, n, NULL), 0);
}

/* ---- shards that are encoded as a whole ---- */

static const struct codec_array_step crc = {.codec = CODEC_CRC32C};

static int decode(const struct codec_array_step *steps, uint32_t n, const void *in, size_t size,
		  struct bytes *out, struct err *err)
{
	struct codec_plan plan;
	struct shard s = shard_of(false, false, false);
	assert_int_equal(codec_plan_bytes(&plan, 100, steps, n), 0);
	s.around = &plan.chain;
	*out = (struct bytes){0};
	assert_int_equal(bytes_append(out, in, size), 0);
	return codec_shard_decode(&s, out, err);
}

static void a_checksum_around_the_shard(void **state)
{
	uint8_t in[13] = "123456789";
	struct err err = ERR_INIT;
	struct bytes out;
	in[9] = 0x83; /* the check value of CRC-32C, e3069283 */
	in[10] = 0x92;
	in[11] = 0x06;
	in[12] = 0xe3;
	assert_int_equal(decode(&crc, 1, in, 13, &out, &err), 0);
	assert_int_equal(out.len, 9);
	assert_memory_equal(out.data, "123456789", 9);
	bytes_release(&out);
	in[3] ^= 1;
	assert_int_equal(decode(&crc, 1, in, 13, &out, &err), -EIO);
	assert_non_null(strstr(err.msg, "the codecs around the shard: crc32c does not match"));
	bytes_release(&out);
}

/* 79 bytes of the LZ4 form, a run of `size` zeros; the plan permits 100. */
static void a_compressor_around_the_shard(void **state)
{
	static const struct codec_array_step lz4 = {.codec = CODEC_LZ4};
	/* One literal 0, a match at offset 1 of 4 + 15 + 69 = 88 bytes, then 5 literals. */
	const uint8_t in[] = {94, 0, 0, 0, 0x1f, 0, 1, 0, 69, 0x50, 0, 0, 0, 0, 0};
	uint8_t large[sizeof(in)];
	struct err err = ERR_INIT;
	struct bytes out;
	assert_int_equal(decode(&lz4, 1, in, sizeof(in), &out, &err), 0);
	assert_int_equal(out.len, 94);
	assert_true(out.data[93] == 0);
	bytes_release(&out);
	memcpy(large, in, sizeof(in));
	large[0] = 101;
	assert_int_equal(decode(&lz4, 1, large, sizeof(large), &out, &err), -EIO);
	assert_non_null(strstr(err.msg, "lz4: "));
	bytes_release(&out);
}

static void only_codecs_of_bytes_are_around_a_shard(void **state)
{
	static const struct codec_array_step widen = {.codec = CODEC_WIDEN},
					     transpose = {.codec = CODEC_TRANSPOSE},
					     shuffle = {.codec = CODEC_SHUFFLE, .elem_size = 4};
	struct codec_array_step many[FILTER_MAX + 1];
	struct codec_plan plan;
	for (size_t i = 0; i <= FILTER_MAX; i++)
		many[i] = crc;
	assert_int_equal(codec_plan_bytes(&plan, 100, &widen, 1), -EINVAL);
	assert_int_equal(codec_plan_bytes(&plan, 100, &transpose, 1), -EINVAL);
	assert_int_equal(codec_plan_bytes(&plan, 100, &shuffle, 1), 0);
	assert_int_equal(codec_plan_bytes(&plan, 100, many, FILTER_MAX), 0);
	assert_int_equal(codec_plan_bytes(&plan, 100, many, FILTER_MAX + 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_have_an_offset_and_a_length),
		cmocka_unit_test(damaged_entries),
		cmocka_unit_test(damaged_indexes),
		cmocka_unit_test(a_checksum_around_the_shard),
		cmocka_unit_test(a_compressor_around_the_shard),
		cmocka_unit_test(only_codecs_of_bytes_are_around_a_shard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
