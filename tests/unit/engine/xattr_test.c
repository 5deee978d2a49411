/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes, descriptions and counters. */
#include "bucket.h"

#include <errno.h>

static const char *get(struct bucket *b, const char *path, const char *name, char buf[1024])
{
	struct err err = ERR_INIT;
	ssize_t n = engine_getxattr(b->engine, path, name, buf, 1023, &err);
	if (n < 0)
		fail_msg("%s of %s: %s", name, path, err.msg);
	buf[n] = '\0';
	return buf;
}

static bool lists(struct bucket *b, const char *path, const char *name)
{
	char names[2048];
	ssize_t n = engine_listxattr(b->engine, path, names, sizeof(names), NULL);
	assert_true(n >= 0);
	for (const char *p = names; p < names + n; p += strlen(p) + 1)
		if (strcmp(p, name) == 0)
			return true;
	return false;
}

static void a_domain_tells_what_its_document_says(void **state)
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
	struct bucket *b = *state;
	char buf[1024];
	bucket_domain_acls(b, 1, "d/\"x\".h5", "\"a\\\"b\\\\\": " ACL_READ);
	bucket_open(b, 1000, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(get(b, "d/\"x\".h5", rows[i].name, buf), rows[i].value);
		assert_true(lists(b, "d/\"x\".h5", rows[i].name));
	}
}

static void sizes_are_answered_as_the_system_call_does(void **state)
{
	struct bucket *b = *state;
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

static void what_has_no_attribute_says_so(void **state)
{
	struct bucket *b = *state;
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

/* Nobody knows which attributes it has. */
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
	struct bucket *b = *state;
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

static void counting_does_not_count_itself(void **state)
{
	struct bucket *b = *state;
	char buf[1024];
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 0, 0);
	assert_string_equal(get(b, "", "user.hsds.debug.gets", buf), "0");
	assert_true(lists(b, "", "user.hsds.debug.cache_loads"));
	assert_string_equal(get(b, "", "user.hsds.debug.gets", buf), "0");
}

static int collect(void *arg, const char *line)
{
	char *text = arg;
	snprintf(text + strlen(text), 4096 - strlen(text), "%s\n", line);
	return 0;
}

static int stop_at_once(void *arg, const char *line)
{
	return -EPIPE;
}

static void a_domain_is_described(void **state)
{
	struct bucket *b = *state;
	char text[4096] = "";
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_info(b->engine, "x.h5", true, collect, text, NULL), 0);
	assert_non_null(strstr(text, "domain: /x.h5\n"));
	assert_non_null(strstr(text, "owner: ann\n"));
	assert_non_null(strstr(text, "objects: 1 groups, 0 datasets, 0 datatypes, 0 links, "));
	assert_non_null(strstr(text, " bytes read, 0 failures\n"));
	assert_null(strstr(text, "problem"));
	assert_int_equal(engine_info(b->engine, "x.h5", false, stop_at_once, NULL, NULL), -EPIPE);
	assert_int_equal(engine_info(b->engine, "", false, collect, text, NULL), -EISDIR);
}

static void dataset_json(struct bucket *b, const char *chunk)
{
	bucket_domain(b, 1, "x.h5");
	bucket_put(
		b, "db/00000001-00000000/.group.json",
		"{\"id\": \"g-00000001-00000000-8888-888988-888888\", \"root\": "
		"\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, \"lastModified\": 1, "
		"\"attributes\": {}, \"links\": {\"data\": {\"class\": \"H5L_TYPE_HARD\", "
		"\"created\": 1, \"id\": \"d-00000001-00000000-1111-222222-333333\"}}}");
	bucket_put(
		b, "db/00000001-00000000/d/1111-222222-333333/.dataset.json",
		"{\"id\": \"d-00000001-00000000-1111-222222-333333\", \"root\": "
		"\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, \"lastModified\": 1, "
		"\"type\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_I32LE\"}, "
		"\"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": [8]}, \"attributes\": {}, "
		"\"layout\": {\"class\": \"H5D_CHUNKED\", \"dims\": [4]}, "
		"\"creationProperties\": {\"layout\": {\"class\": \"H5D_CHUNKED\", \"dims\": "
		"[4]}, \"filters\": [{\"class\": \"H5Z_FILTER_DEFLATE\", \"id\": 1, \"level\": "
		"6, \"name\": \"deflate\"}]}}");
	bucket_put(b, "db/00000001-00000000/d/1111-222222-333333/0", chunk);
	bucket_put(b, "db/00000001-00000000/d/1111-222222-333333/1", "0123456789abcdef");
}

static void a_damaged_chunk_is_found_once(void **state)
{
	struct bucket *b = *state;
	char text[4096] = "", buf[1024];
	struct err err = ERR_INIT;
	dataset_json(b, "short");
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_info(b->engine, "x.h5", true, collect, text, &err), -EIO);
	assert_non_null(strstr(text, "dataset /data: int32 [8], chunks [4] 2 of 2, filters "
				     "deflate(6)\n"));
	const char *problem = strstr(text, "problem: ");
	assert_non_null(problem);
	assert_non_null(strstr(problem, "1111-222222-333333/0"));
	assert_null(strstr(problem + 1, "problem: "));
	assert_non_null(strstr(text, " 1 failures\n"));
	assert_string_equal(get(b, "x.h5", "user.hsds.filters", buf), "/data: deflate(6)\n");
	assert_string_equal(get(b, "x.h5", "user.hsds.chunks", buf),
			    "groups=1 datasets=1 datatypes=0 chunks=2 listed=1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_domain_tells_what_its_document_says),
		TEST(sizes_are_answered_as_the_system_call_does),
		TEST(what_has_no_attribute_says_so),
		TEST(a_document_that_cannot_be_read_is_an_error),
		TEST(counting_does_not_count_itself),
		TEST(a_domain_is_described),
		TEST(a_damaged_chunk_is_found_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
