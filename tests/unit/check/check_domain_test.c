/* SPDX-License-Identifier: Apache-2.0 */
/* The problems of a domain's documents, and a sink that ends the check of a domain at any point. */
#include "findings.h"

#include <schema/schema.h>
#include <bucket/schemas.h>

static void put_damaged(struct test_bucket *b)
{
	static const struct bucket_more more = {
		.links = ", \"gone\": {\"class\": \"H5L_TYPE_HARD\", \"created\": 8, \"id\": "
			 "\"d-00000001-00000000-4444-555555-666666\"}, \"soft\": {\"class\": "
			 "\"H5L_TYPE_SOFT\", \"created\": 9, \"h5path\": \"/none\"}",
	};
	bucket_datasets(b, "x.h5", 2, 1, &more);
	bucket_chunk(b, 0, "short");
	bucket_chunk(b, 1, "0123456789abcdef");
	bucket_put(b, CHECK_PREFIX "d/1111-222222-000002/.dataset.json", "{");
	bucket_put(b, CHECK_PREFIX "strange", "123");
}

static void all_kinds_of_findings(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	put_damaged(b);
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_check(b->engine, "x.h5", false, &sink, NULL), 0);
	const char *text = str_text(&s.text);
	assert_non_null(strstr(text, "error /x.h5  " CHECK_PREFIX
				     "d/1111-222222-000002/.dataset.json: the object is left out"));
	assert_non_null(strstr(text, "4444-555555-666666"));
	assert_non_null(strstr(text, "note /x.h5 / : soft link \"soft\" leads to \"/none\", which "
				     "does not exist\n"));
	assert_non_null(strstr(text, "error /x.h5 /data " CHECK_DATA
				     "0: the chunk has 5 bytes instead of 16\n"));
	assert_non_null(strstr(text, "note /x.h5  : keys that belong to no object: 1, 3 bytes\n"));
	assert_non_null(strstr(text, "= damaged /x.h5\n"));
	assert_int_equal(s.last.objects, 2);
	assert_int_equal(s.last.chunks, 2);
	assert_int_equal(s.last.decoded, 1);
	assert_int_equal(s.last.bytes, 21);
	assert_int_equal(s.last.decoded_bytes, 16);
	str_release(&s.text);
}

static void each_finding_may_end_the_check(void **state)
{
	struct test_bucket *b = *state;
	struct findings all = {0};
	struct engine_check_sink sink = findings_sink(&all);
	put_damaged(b);
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_check(b->engine, "x.h5", false, &sink, NULL), 0);
	assert_in_range(all.calls, 6, 12);
	for (unsigned int at = 1; at <= all.calls; at++) {
		struct findings s = {.stop_at = at};
		sink = findings_sink(&s);
		assert_int_equal(engine_check(b->engine, "x.h5", true, &sink, NULL), -EPIPE);
		assert_int_equal(s.calls, at);
		str_release(&s.text);
	}
	str_release(&all.text);
}

static void an_unfinished_import(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	char key[512];
	bucket_domain(b, 1, "x.h5");
	assert_true(schema_all()[0]->writer->import_key("x.h5", key, sizeof(key)) > 0);
	bucket_put(b, key, "{}");
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_check(b->engine, "x.h5", false, &sink, NULL), 0);
	assert_non_null(strstr(str_text(&s.text), key));
	assert_non_null(strstr(str_text(&s.text), "is not finished\n= unfinished /x.h5\n"));
	str_release(&s.text);
}

/* The open, the listing and the summary, each chunk once, and the record of an import. */
static void requests(void **state)
{
	static const struct bucket_more more = {0};
	struct test_bucket *b = *state;
	bucket_datasets(b, "x.h5", 2, 1, &more);
	bucket_chunk(b, 0, "0123456789abcdef");
	bucket_chunk(b, 1, "0123456789abcdef");
	bucket_open(b, 1000, 0);
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	const struct bucket_counts before = bucket_counts(b);
	assert_check(b, "x.h5", false, "= sound /x.h5\n");
	const struct bucket_counts after = bucket_counts(b);
	assert_int_equal(after.gets - before.gets, 1 + 3 + 1 + 2);
	assert_int_equal(after.lists - before.lists, 4 + 1);
	assert_int_equal(after.heads, before.heads + 1); /* the record of an import */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_kinds_of_findings, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(each_finding_may_end_the_check, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(an_unfinished_import, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(requests, bucket_setup, bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
