/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes, and the counters of the root. */
#include "bucket.h"

#include <errno.h>

static const char *get(struct test_bucket *b, const char *path, const char *name, char buf[1024])
{
	struct err err = ERR_INIT;
	ssize_t n = engine_getxattr(b->engine, path, name, buf, 1023, &err);
	if (n < 0)
		fail_msg("%s of %s: %s", name, path, err.msg);
	buf[n] = '\0';
	return buf;
}

static bool lists(struct test_bucket *b, const char *path, const char *name)
{
	char names[2048];
	ssize_t n = engine_listxattr(b->engine, path, names, sizeof(names), NULL);
	assert_true(n >= 0);
	for (const char *p = names; p < names + n; p += strlen(p) + 1)
		if (strcmp(p, name) == 0)
			return true;
	return false;
}

static void a_domain_has_the_attributes_of_its_document(void **state)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{"user.hsds.domain", "/d/\"x\".h5"},
		{"user.hsds.root", "g-00000001-00000000-8888-888988-888888"},
		{"user.hsds.owner", "ann"},
		{"user.hsds.acls", "{\"a\\\"b\\\\\":{\"create\":false,\"read\":true,\"update\":"
				   "false,\"delete\":false,"
				   "\"readACL\":false,\"updateACL\":false}}"},
		{"user.hsds.created", "2023-11-14T22:13:20.500000Z"},
		{"user.hsds.lastModified", "2023-11-14T22:13:21.000000Z"},
		{"user.hsds.chunks", "groups=1 datasets=0 datatypes=0 chunks=0 listed=0"},
		{"user.hsds.filters", ""},
	};
	struct test_bucket *b = *state;
	char buf[1024];
	bucket_domain_acls(b, 1, "d/\"x\".h5", "\"a\\\"b\\\\\": " ACL_READ);
	bucket_open(b, 1000, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(get(b, "d/\"x\".h5", rows[i].name, buf), rows[i].value);
		assert_true(lists(b, "d/\"x\".h5", rows[i].name));
	}
}

static void sizes_work_as_in_the_system_call(void **state)
{
	struct test_bucket *b = *state;
	char buf[8];
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_getxattr(b->engine, "x.h5", "user.hsds.owner", NULL, 0, NULL), 3);
	assert_int_equal(engine_getxattr(b->engine, "x.h5", "user.hsds.owner", buf, 3, NULL), 3);
	assert_int_equal(engine_getxattr(b->engine, "x.h5", "user.hsds.owner", buf, 2, NULL),
			 -ERANGE);
	assert_int_equal(engine_listxattr(b->engine, "x.h5", buf, 2, NULL), -ERANGE);
	assert_true(engine_listxattr(b->engine, "x.h5", NULL, 0, NULL) > 100);
}

static void a_missing_attribute_is_enodata(void **state)
{
	struct test_bucket *b = *state;
	bucket_folder(b, "folder");
	bucket_put(b, "prefix/plain", "");
	bucket_open(b, 1000, 0);
	static const struct {
		const char *path, *name;
		int code;
	} rows[] = {
		{"folder", "user.hsds.root", -ENODATA},
		{"folder", "user.hsds.chunks", -ENODATA},
		{"folder", "user.hsds.nothing", -ENODATA},
		{"prefix", "user.hsds.owner", -ENODATA},
		{"prefix/plain", "user.hsds.domain", -ENODATA},
		{"folder", "security.capability", -ENODATA},
		{"folder", "user.hsds.debug.gets", -ENODATA},
		{"nowhere", "user.hsds.owner", -ENOENT},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ssize_t n = engine_getxattr(b->engine, rows[i].path, rows[i].name, NULL, 0, NULL);
		if (n != rows[i].code)
			fail_msg("%s of %s: %zd", rows[i].name, rows[i].path, n);
	}
	assert_int_equal(engine_listxattr(b->engine, "prefix/plain", NULL, 0, NULL), 0);
	assert_true(lists(b, "folder", "user.hsds.owner"));
	assert_false(lists(b, "folder", "user.hsds.root"));
}

/* Its attributes are not known, so this is not -ENODATA. */
static void a_document_that_cannot_be_read_is_an_error(void **state)
{
	static const struct {
		const char *path, *fault;
		int code;
	} rows[] = {
		{"x.h5", "fail:1+:EIO@x.h5/.domain.json", -EIO},
		{"x.h5", "fail:1+:EACCES@x.h5/.domain.json", -EACCES},
		{"dir.a", "fail:1+:EACCES@dir.a/.domain.json", -EACCES}, /* a directory */
		{"shut", "fail:1+:EACCES@shut/*", -EACCES},
	};
	static const char *const names[] = {"user.hsds.domain", "user.hsds.owner", "user.hsds.acls",
					    "user.hsds.chunks"};
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_folder(b, "dir.a");
	bucket_domain(b, 2, "dir.a/y.h5");
	bucket_domain(b, 3, "shut/z.h5");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct engine_options opt;
		engine_options_init(&opt);
		opt.workers = 0;
		opt.metadata_ttl = 0;
		opt.debug_fault = rows[i].fault;
		engine_close(b->engine);
		bucket_open_as(b, opt);
		for (size_t k = 0; k < 4; k++) {
			struct err err = ERR_INIT;
			assert_int_equal(
				engine_getxattr(b->engine, rows[i].path, names[k], NULL, 0, &err),
				rows[i].code);
			assert_non_null(strstr(err.msg, rows[i].path));
		}
		assert_int_equal(engine_listxattr(b->engine, rows[i].path, NULL, 0, NULL),
				 rows[i].code);
		assert_int_equal(
			engine_getxattr(b->engine, rows[i].path, "user.hsds.other", NULL, 0, NULL),
			-ENODATA);
	}
}

static void reading_the_counters_sends_no_request(void **state)
{
	struct test_bucket *b = *state;
	char buf[1024];
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 0, 0);
	assert_string_equal(get(b, "", "user.hsds.debug.gets", buf), "0");
	assert_true(lists(b, "", "user.hsds.debug.cache_loads"));
	assert_string_equal(get(b, "", "user.hsds.debug.gets", buf), "0");
}

static const struct bucket_more deflate = {
	.filters = "{\"class\": \"H5Z_FILTER_DEFLATE\", \"id\": 1, \"level\": 6, \"name\": "
		   "\"deflate\"}"};

static void filters_and_chunks_of_datasets_are_shown(void **state)
{
	struct test_bucket *b = *state;
	char buf[1024];
	bucket_datasets(b, "x.h5", 1, 0, &deflate);
	bucket_chunk(b, 0, "short");
	bucket_chunk(b, 1, "short");
	bucket_open(b, 1000, 0);
	assert_string_equal(get(b, "x.h5", "user.hsds.filters", buf), "/data: deflate(6)\n");
	assert_string_equal(get(b, "x.h5", "user.hsds.chunks", buf),
			    "groups=1 datasets=1 datatypes=0 chunks=2 listed=1");
}

/* The kernel accepts at most 64 KiB. Each line except the first has 128 bytes. */
static void a_list_of_filters_ends_with_a_whole_line(void **state)
{
	enum { MAX = 65536, FIRST = 18, LINE = 128 };
	struct test_bucket *b = *state;
	char *value = malloc(MAX + 1);
	assert_non_null(value);
	bucket_datasets(b, "x.h5", 530, 110, &deflate);
	bucket_open(b, 1000, 0);
	const ssize_t n = engine_getxattr(b->engine, "x.h5", "user.hsds.filters", value, MAX, NULL);
	assert_int_equal(n, FIRST + (MAX - FIRST) / LINE * LINE);
	assert_int_equal(value[n - 1], '\n');
	assert_int_equal(strncmp(value, "/data: deflate(6)\n/data0000", 27), 0);
	free(value);
}

static void a_value_that_the_kernel_does_not_take_is_e2big(void **state)
{
	enum { USERS = 700 };
	struct test_bucket *b = *state;
	struct err err = ERR_INIT;
	char *json = calloc(USERS + 1, 256);
	assert_non_null(json);
	size_t n = (size_t)sprintf(json, "{\"owner\": \"ann\", \"acls\": {");
	for (unsigned int i = 0; i < USERS; i++)
		n += (size_t)sprintf(json + n, "%s\"user%u\": " ACL_ALL, i ? ", " : "", i);
	sprintf(json + n, "}, \"created\": 1, \"lastModified\": 2}");
	bucket_put(b, "folder/.domain.json", json);
	free(json);
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_getxattr(b->engine, "folder", "user.hsds.acls", NULL, 0, &err),
			 -E2BIG);
	assert_non_null(strstr(err.msg, "more than the kernel accepts"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_domain_has_the_attributes_of_its_document),
		TEST(sizes_work_as_in_the_system_call),
		TEST(a_missing_attribute_is_enodata),
		TEST(a_document_that_cannot_be_read_is_an_error),
		TEST(reading_the_counters_sends_no_request),
		TEST(filters_and_chunks_of_datasets_are_shown),
		TEST(a_list_of_filters_ends_with_a_whole_line),
		TEST(a_value_that_the_kernel_does_not_take_is_e2big),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
