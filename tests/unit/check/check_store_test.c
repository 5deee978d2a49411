/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a domain that only a listing shows: a Zarr store. */
#include "findings.h"

#define ARRAY(dtype)                                                                               \
	"{\"zarr_format\": 2, \"shape\": [12], \"chunks\": [4], \"dtype\": \"" dtype "\", "        \
	"\"fill_value\": 0}"

static void put_store(struct test_bucket *b)
{
	bucket_put(b, "x.zarr/.zgroup", "{\"zarr_format\": 2}");
	bucket_put(b, "x.zarr/g/.zgroup", "{\"zarr_format\": 2}");
	bucket_put(b, "x.zarr/g/a/.zarray", ARRAY("<i4"));
	bucket_put(b, "x.zarr/g/a/.zattrs", "{}");
	bucket_put(b, "x.zarr/g/a/0", "0123456789abcdef");
	bucket_put(b, "x.zarr/g/a/2", "0123456789ABCDEF");
}

static void chunks_are_read_on_request_only(void **state)
{
	struct test_bucket *b = *state;
	put_store(b);
	bucket_open(b, 1000, 0);
	unsigned int gets[3];
	for (int run = 0; run < 3; run++) {
		const bool all = run == 2;
		struct findings s = {0};
		const struct engine_check_sink sink = findings_sink(&s);
		const struct bucket_counts before = bucket_counts(b);
		assert_int_equal(engine_check(b->engine, "x.zarr", all, &sink, NULL), 0);
		const struct bucket_counts after = bucket_counts(b);
		assert_string_equal(str_text(&s.text), "= sound /x.zarr\n");
		assert_int_equal(s.last.chunks, 2);
		assert_int_equal(s.last.bytes, 32);
		assert_int_equal(s.last.decoded, all ? 2 : 0);
		assert_int_equal(s.last.decoded_bytes, all ? 32 : 0);
		gets[run] = after.gets - before.gets;
		str_release(&s.text);
	}
	assert_int_equal(gets[2], gets[1] + 2);
}

static void sizes_and_other_keys(void **state)
{
	struct test_bucket *b = *state;
	put_store(b);
	bucket_put(b, "x.zarr/g/a/1", "short");
	bucket_put(b, "x.zarr/g/a/3", "outside of the extent");
	bucket_put(b, "x.zarr/g/a/2.0", "of another rank");
	bucket_put(b, "x.zarr/g/notes", "mine");
	bucket_put(b, "x.zarr/g/z/.zarray", ARRAY("<U5"));
	bucket_put(b, "x.zarr/g/z/0", "a chunk of an array that is left out");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.zarr", true,
		     "unchecked /x.zarr  x.zarr/g/z/.zarray: dtype \"<U5\" is not known\n"
		     "error /x.zarr /g/a x.zarr/g/a/1: the chunk has 5 bytes instead of 16\n"
		     "note /x.zarr  : keys that are neither a document nor a chunk of an array: 3, "
		     "40 bytes\n"
		     "= damaged /x.zarr\n");
}

static void an_empty_compressed_chunk(void **state)
{
	struct test_bucket *b = *state;
	put_store(b);
	bucket_put(b, "x.zarr/b/.zarray",
		   "{\"zarr_format\": 2, \"shape\": [8], \"chunks\": [4], \"dtype\": \"<i4\", "
		   "\"compressor\": {\"id\": \"zlib\"}}");
	bucket_put(b, "x.zarr/b/0", "");
	bucket_put(b, "x.zarr/b/1", "no zlib stream");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.zarr", false,
		     "error /x.zarr /b x.zarr/b/0: the chunk is empty\n= damaged /x.zarr\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chunks_are_read_on_request_only, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(sizes_and_other_keys, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(an_empty_compressed_chunk, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
