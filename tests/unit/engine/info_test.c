/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a domain: its lines, its failures, and verification. */
#include "bucket.h"

#include <errno.h>

struct lines {
	char text[8192];
	unsigned int n, stop_at; /* stop_at: the line that is refused, 0 none */
	uint64_t done, total;
	unsigned int calls;
};

static int collect(void *arg, const char *line)
{
	struct lines *l = arg;
	const size_t n = strlen(l->text);
	snprintf(l->text + n, sizeof(l->text) - n, "%s\n", line);
	return ++l->n == l->stop_at ? -EPIPE : 0;
}

static void take_progress(void *arg, uint64_t done, uint64_t total)
{
	struct lines *l = arg;
	if (l->calls++ == 0)
		assert_int_equal(done, 0);
	assert_true(done >= l->done && done <= total);
	l->done = done;
	l->total = total;
}

static void open_to_describe(struct test_bucket *b)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = 1000;
	opt.keep_attributes = true;
	bucket_open_as(b, opt);
}

static int describe(struct test_bucket *b, bool verify, struct lines *l, struct err *err)
{
	const struct engine_info_sink sink = {
		.line = collect,
		.progress = take_progress,
		.arg = l,
	};
	const unsigned int stop_at = l->stop_at;
	*l = (struct lines){.stop_at = stop_at};
	return engine_info(b->engine, "x.h5", verify, &sink, err);
}

/* x.h5 with two datasets, two links to objects that are missing and an attribute. /data has two
 * chunks, of 16 bytes each when whole. */
static void put_domain(struct test_bucket *b, const char *chunk)
{
	static const struct bucket_more more = {
		.links = ", \"gone\": {\"class\": \"H5L_TYPE_HARD\", \"created\": 8, \"id\": "
			 "\"d-00000001-00000000-4444-555555-666666\"}, \"lost\": {\"class\": "
			 "\"H5L_TYPE_HARD\", \"created\": 9, \"id\": "
			 "\"d-00000001-00000000-4444-555555-777777\"}",
		.attributes = "\"a\": {\"type\": {\"class\": \"H5T_INTEGER\", \"base\": "
			      "\"H5T_STD_I32LE\"}, \"shape\": {\"class\": \"H5S_SCALAR\"}, "
			      "\"value\": 1, \"created\": 1}",
	};
	bucket_datasets(b, "x.h5", 2, 1, &more);
	bucket_chunk(b, 0, chunk);
	bucket_chunk(b, 1, "0123456789abcdef");
}

static void a_domain_is_described(void **state)
{
	struct test_bucket *b = *state;
	struct lines l = {0};
	char want[4096], problem[512];
	unsigned long long size = 0;
	int revision = 0;
	put_domain(b, "fedcba9876543210");
	open_to_describe(b);
	assert_int_equal(describe(b, true, &l, NULL), 0);
	/* The schema chooses the words of the problem. */
	const char *found = strstr(l.text, "problem: db/00000001-00000000/.group.json: ");
	assert_non_null(found);
	const char *last = strstr(found + 1, "problem: db/00000001-00000000/.group.json: ");
	assert_non_null(last);
	snprintf(problem, sizeof(problem), "%.*s", (int)(last - found + strcspn(last, "\n")),
		 found);
	assert_non_null(strstr(found, "4444-555555-666666"));
	assert_non_null(strstr(last, "4444-555555-777777"));
	const char *file = strstr(l.text, "HDF5 file: ");
	assert_non_null(file);
	assert_int_equal(sscanf(strchr(file, '(') + 1, "%llu bytes)\nfile layout: revision %d",
				&size, &revision),
			 2);
	snprintf(want, sizeof(want),
		 "domain: /x.h5\n"
		 "root group: g-00000001-00000000-8888-888988-888888\n"
		 "owner: ann\n"
		 "access control lists: {\"ann\":{\"create\":true,\"read\":true,\"update\":true,"
		 "\"delete\":true,\"readACL\":true,\"updateACL\":true}}\n"
		 "created: 2023-11-14T22:13:20.500000Z\n"
		 "last modified: 2023-11-14T22:13:21.000000Z\n"
		 "HDF5 file: %.1f kB (%llu bytes)\n"
		 "file layout: revision %d\n"
		 "contents: groups 1, datasets 2, committed datatypes 0, links 2, attributes 1\n"
		 "dataset /data: int32 [8], chunks [4], 2 of 2 written, filters none, 32 bytes of "
		 "data stored in 32 bytes (1.0:1)\n"
		 "dataset /data1: int32 [8], chunks [4], 0 of 2 written, filters none, 32 bytes "
		 "of data stored in 0 bytes\n"
		 "%s\n"
		 "verified: %llu bytes read, unreadable parts: 0\n",
		 (double)size / 1000, size, revision, problem, size);
	assert_string_equal(l.text, want);
	assert_true(l.calls > 1);
	assert_int_equal(l.done, size);
	assert_int_equal(l.total, size);
}

/* If any line cannot be written, the description ends there with the reason. */
static void a_line_that_is_refused_ends_the_description(void **state)
{
	struct test_bucket *b = *state;
	struct lines l = {0};
	put_domain(b, "short");
	open_to_describe(b);
	assert_int_equal(describe(b, true, &l, NULL), -EIO);
	const unsigned int n = l.n;
	assert_in_range(n, 15, 20);
	for (unsigned int i = 1; i <= n; i++) {
		l.stop_at = i;
		assert_int_equal(describe(b, true, &l, NULL), -EPIPE);
		assert_int_equal(l.n, i);
	}
}

static void a_damaged_chunk_is_reported_once(void **state)
{
	struct test_bucket *b = *state;
	struct lines l = {0};
	struct err err = ERR_INIT;
	put_domain(b, "short");
	open_to_describe(b);
	assert_int_equal(describe(b, true, &l, &err), -EIO);
	assert_string_equal(err.msg, "parts of the file that cannot be read: 1");
	assert_non_null(strstr(l.text, "32 bytes of data stored in 21 bytes (1.5:1)\n"));
	const char *chunk = strstr(l.text, "1111-222222-000001/0");
	assert_non_null(chunk);
	assert_null(strstr(chunk, "problem: "));
	/* All but the slot of that chunk is read. */
	unsigned long long got = 0;
	assert_int_equal(sscanf(strstr(l.text, "verified: "), "verified: %llu", &got), 1);
	assert_int_equal(got, l.total - 16);
	assert_non_null(strstr(l.text, " bytes read, unreadable parts: 1\n"));
	assert_int_equal(l.done, l.total);
	/* Without verification no chunk is read. */
	assert_int_equal(describe(b, false, &l, &err), 0);
	assert_null(strstr(l.text, "1111-222222-000001/0"));
	assert_int_equal(l.calls, 0);
}

static void only_domains_are_described(void **state)
{
	struct test_bucket *b = *state;
	struct lines l = {0};
	struct err err = ERR_INIT;
	const struct engine_info_sink sink = {.line = collect, .arg = &l};
	bucket_domain(b, 1, "x.h5");
	bucket_put(b, "plain", "");
	open_to_describe(b);
	assert_int_equal(engine_info(b->engine, "", false, &sink, &err), -EISDIR);
	assert_int_equal(engine_info(b->engine, "plain", false, &sink, &err), -EINVAL);
	assert_string_equal(err.msg, "plain: not a domain");
	assert_int_equal(engine_info(b->engine, "nothing", false, &sink, &err), -ENOENT);
	assert_int_equal(l.n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_domain_is_described),
		TEST(a_line_that_is_refused_ends_the_description),
		TEST(a_damaged_chunk_is_reported_once),
		TEST(only_domains_are_described),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
