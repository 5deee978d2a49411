/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching chunks: many at a time, damage and failures in the order of the chunks. */
#include "findings.h"

/* Chunks of a deflated dataset are damaged, except for those that are not compressed at all. */
static void put_domain(struct test_bucket *b)
{
	static const struct bucket_more more = {
		.filters = "{\"class\": \"H5Z_FILTER_DEFLATE\", \"id\": 1, \"level\": 6, "
			   "\"name\": \"deflate\"}"};
	bucket_datasets(b, "x.h5", 1, 1, &more);
	bucket_chunk(b, 0, "\x78\x9cgarbage");
	bucket_chunk(b, 1, "\x78\x9cgarbage");
}

static void damage_in_order(void **state)
{
	for (unsigned int workers = 0; workers < 8; workers += 4) {
		struct test_bucket *b = *state;
		struct findings s = {0};
		const struct engine_check_sink sink = findings_sink(&s);
		put_domain(b);
		bucket_open(b, 1000, workers);
		assert_int_equal(engine_check(b->engine, "x.h5", workers > 0, &sink, NULL), 0);
		const char *first =
			strstr(str_text(&s.text), "error /x.h5 /data " CHECK_DATA "0: ");
		assert_non_null(first);
		assert_non_null(strstr(first, "error /x.h5 /data " CHECK_DATA "1: "));
		assert_int_equal(s.last.findings[ENGINE_CHECK_ERROR], 2);
		assert_int_equal(s.last.decoded, 0);
		str_release(&s.text);
		bucket_teardown(state);
		bucket_setup(state);
	}
}

static void a_chunk_that_cannot_be_fetched(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	struct engine_options opt;
	put_domain(b);
	engine_options_init(&opt);
	opt.workers = 0;
	opt.debug_fault = "fail:1+:EACCES@*/1";
	bucket_open_as(b, opt);
	assert_int_equal(engine_check(b->engine, "x.h5", false, &sink, NULL), 0);
	assert_int_equal(s.last.findings[ENGINE_CHECK_ERROR], 1);
	assert_int_equal(s.last.findings[ENGINE_CHECK_UNCHECKED], 1);
	assert_non_null(strstr(str_text(&s.text), "unchecked /x.h5 /data " CHECK_DATA "1: "));
	str_release(&s.text);
}

/* /data1 is in a file. */
static void put_reference(struct test_bucket *b, const char *uri)
{
	char json[1024];
	snprintf(json, sizeof(json),
		 "{\"id\": \"d-00000001-00000000-1111-222222-000002\", \"root\": "
		 "\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, \"lastModified\": "
		 "1, \"type\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_I32LE\"}, "
		 "\"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": [8]}, \"attributes\": {}, "
		 "\"layout\": {\"class\": \"H5D_CONTIGUOUS_REF\", \"file_uri\": \"%s\", "
		 "\"offset\": 100, \"size\": 32}}",
		 uri);
	bucket_put(b, CHECK_PREFIX "d/1111-222222-000002/.dataset.json", json);
}

/* Only a failed request for the same dataset may be the reason why nothing has arrived. */
static void a_wrong_place_after_a_failed_request(void **state)
{
	static const struct bucket_more none = {0};
	struct test_bucket *b = *state;
	struct engine_options opt;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	bucket_datasets(b, "x.h5", 2, 1, &none);
	bucket_chunk(b, 1, "0123456789abcdef");
	bucket_put(b, "file", "shorter than the place says");
	put_reference(b, "/file");
	engine_options_init(&opt);
	opt.workers = 0;
	opt.debug_fault = "fail:1:EACCES@*/1";
	bucket_open_as(b, opt);
	assert_int_equal(engine_check(b->engine, "x.h5", false, &sink, NULL), 0);
	assert_int_equal(s.last.findings[ENGINE_CHECK_UNCHECKED], 1);
	assert_int_equal(s.last.findings[ENGINE_CHECK_ERROR], 1);
	assert_non_null(strstr(str_text(&s.text), "error /x.h5 /data1 "));
	str_release(&s.text);
}

/* The requests for files are counted, too. */
static void a_file_that_cannot_be_read(void **state)
{
	static const struct bucket_more none = {0};
	struct test_bucket *b = *state;
	struct engine_options opt;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	char uri[128];
	snprintf(uri, sizeof(uri), "file://%s/1", b->journal);
	bucket_datasets(b, "x.h5", 2, 1, &none);
	bucket_chunk(b, 1, "0123456789abcdef");
	put_reference(b, uri);
	assert_int_equal(mkdir(b->journal, 0700), 0);
	snprintf(uri, sizeof(uri), "file://%s/", b->journal);
	engine_options_init(&opt);
	opt.workers = 0;
	opt.allow_uri = uri;
	opt.debug_fault = "fail:1:EIO@*1";
	bucket_open_as(b, opt);
	assert_int_equal(engine_check(b->engine, "x.h5", false, &sink, NULL), 0);
	if (s.last.findings[ENGINE_CHECK_UNCHECKED] != 2)
		fail_msg("%s", str_text(&s.text));
	str_release(&s.text);
}

/* The check ends while other chunks are in flight. */
static void the_sink_ends_the_check(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {.stop_at = 1};
	const struct engine_check_sink sink = findings_sink(&s);
	put_domain(b);
	bucket_open(b, 1000, 4);
	assert_int_equal(engine_check(b->engine, "x.h5", true, &sink, NULL), -EPIPE);
	assert_int_equal(s.calls, 1);
	str_release(&s.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(damage_in_order, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(a_chunk_that_cannot_be_fetched, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_wrong_place_after_a_failed_request, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_read, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(the_sink_ends_the_check, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
