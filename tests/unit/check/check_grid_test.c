/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a domain whose keys no listing shows: one of schema v1. */
#include "findings.h"

#define ROOT_ID	 "g-953ef986-e555-11f1-b213-02fc00000001"
#define DATA_ID	 "d-953ef986-e555-11f1-b213-02fc00000002"
#define ROOT_KEY "2c114-" ROOT_ID
#define DATA_KEY "88067-" DATA_ID
#define CHUNK_0	 "0469a-c-953ef986-e555-11f1-b213-02fc00000002_0"
#define CHUNK_1	 "80ed4-c-953ef986-e555-11f1-b213-02fc00000002_1"
#define NOTE                                                                                       \
	"note /x.h5  : no listing shows the keys of this domain, so objects without a link are "   \
	"not searched for\n"

static void put_domain(struct test_bucket *b)
{
	bucket_put(b, "x.h5/.domain.json", "{\"root\": \"" ROOT_ID "\", \"owner\": \"ann\"}");
	bucket_put(b, ROOT_KEY,
		   "{\"id\": \"" ROOT_ID "\", \"root\": \"" ROOT_ID "\", \"attributes\": {}, "
		   "\"links\": {\"data\": {\"class\": \"H5L_TYPE_HARD\", \"created\": 1, \"id\": "
		   "\"" DATA_ID "\"}}}");
	bucket_put(b, DATA_KEY,
		   "{\"id\": \"" DATA_ID "\", \"root\": \"" ROOT_ID "\", \"attributes\": {}, "
		   "\"type\": \"H5T_STD_I32LE\", \"shape\": {\"class\": \"H5S_SIMPLE\", "
		   "\"dims\": [12]}, \"layout\": {\"dims\": [4]}}");
}

/* Two of three chunks are stored. */
static void stored_chunks_are_counted(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	bucket_put(b, CHUNK_0, "0123456789abcdef");
	bucket_put(b, CHUNK_1, "0123456789ABCDEF");
	bucket_open(b, 1000, 0);
	for (int all = 0; all < 2; all++) {
		struct findings s = {0};
		const struct engine_check_sink sink = findings_sink(&s);
		assert_int_equal(engine_check(b->engine, "x.h5", all, &sink, NULL), 0);
		assert_string_equal(str_text(&s.text), NOTE "= sound /x.h5\n");
		assert_int_equal(s.last.chunks, 2);
		assert_int_equal(s.last.bytes, 32);
		assert_int_equal(s.last.decoded, 2);
		assert_int_equal(s.last.decoded_bytes, 32);
		str_release(&s.text);
	}
}

static void a_damaged_chunk(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	bucket_put(b, CHUNK_1, "0123456789ABCDE");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.h5", false,
		     "error /x.h5 /data " CHUNK_1 ": chunk has 15 bytes, its shape needs 16\n" NOTE
		     "= damaged /x.h5\n");
}

/* All requests were answered, so nothing is left to check. */
static void an_empty_chunk(void **state)
{
	struct test_bucket *b = *state;
	put_domain(b);
	bucket_put(b, CHUNK_1, "");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.h5", false,
		     "error /x.h5 /data " CHUNK_1 ": chunk has 0 bytes, its shape needs 16\n" NOTE
		     "= damaged /x.h5\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stored_chunks_are_counted, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_damaged_chunk, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(an_empty_chunk, bucket_setup, bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
