/* SPDX-License-Identifier: Apache-2.0 */
/* The attribute user.hsds.acls can be set. */
#include "bucket.h"

#include <errno.h>
#include <sys/xattr.h>

#define NEW "{\"bob\":" ALL ",\"default\":" READ "}"
#define ALL                                                                                        \
	"{\"create\":true,\"read\":true,\"update\":true,\"delete\":true,\"readACL\":true,"         \
	"\"updateACL\":true}"
#define READ                                                                                       \
	"{\"create\":false,\"read\":true,\"update\":false,\"delete\":false,\"readACL\":false,"     \
	"\"updateACL\":false}"

static int set(struct test_bucket *b, const char *path, const char *text, int flags)
{
	return engine_setxattr(b->engine, path, "user.hsds.acls", text, strlen(text), flags, NULL);
}

static void assert_acls(struct test_bucket *b, const char *path, const char *wanted)
{
	char text[1024];
	const ssize_t n =
		engine_getxattr(b->engine, path, "user.hsds.acls", text, sizeof(text) - 1, NULL);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, wanted);
}

static unsigned int mode_of(struct test_bucket *b, const char *path)
{
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
	return st.mode & 0444;
}

static void what_is_read_can_be_set(void **state)
{
	static const char *const paths[] = {"home", "home/x.h5", "run", "run.h5", "prefix"};
	struct test_bucket *b = *state;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/x.h5");
	bucket_domain(b, 2, "run");
	bucket_put(b, "prefix/plain", "text");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(mode_of(b, "home/x.h5"), 0400);
	assert_int_equal(mode_of(b, "run.h5"), 0400);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (set(b, paths[i], NEW, 0))
			fail_msg("%s", paths[i]);
		assert_acls(b, paths[i], NEW);
		assert_int_equal(set(b, paths[i], NEW, 0), 0);
	}
	assert_int_equal(mode_of(b, "home/x.h5"), 0444);
	assert_int_equal(mode_of(b, "run.h5"), 0444);
	assert_string_equal(bucket_list(b, "").text, "home/ prefix/ run.h5");
	struct engine_file *f;
	assert_int_equal(engine_file_open(b->engine, "home/x.h5", &f, NULL), 0);
	engine_file_close(f);
}

static void everything_else_stays(void **state)
{
	static const char before[] =
		"{\"owner\": \"ann\",  \"limits\": {\"x\": 1e2}, \"acls\": {\"ann\": {\"read\": "
		"true, \"domain\": \"a/b\"}}, \"created\": 1700000000.50}\n";
	static const char after[] = "{\"owner\": \"ann\",  \"limits\": {\"x\": 1e2}, \"acls\": {}, "
				    "\"created\": 1700000000.50}\n";
	struct test_bucket *b = *state;
	char path[128], text[512] = "";
	bucket_put(b, "home/.domain.json", before);
	bucket_domain(b, 1, "home/x.h5");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(set(b, "home", "{}", 0), 0);
	snprintf(path, sizeof(path), "%s/home/.domain.json", b->dir);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, sizeof(text), f), strlen(after));
	fclose(f);
	assert_string_equal(text, after);
}

static void flags_are_respected(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "prefix/x.h5");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(set(b, "prefix", NEW, XATTR_REPLACE), -ENODATA);
	assert_int_equal(set(b, "prefix", NEW, XATTR_CREATE), 0);
	assert_int_equal(set(b, "prefix", NEW, XATTR_CREATE), -EEXIST);
	assert_int_equal(set(b, "prefix", "{}", XATTR_REPLACE), 0);
	assert_int_equal(set(b, "prefix/x.h5", NEW, XATTR_CREATE), -EEXIST);
	assert_int_equal(set(b, "prefix/x.h5", NEW, 4), -EINVAL);
}

static void other_attributes_and_files_are_refused(void **state)
{
	struct test_bucket *b = *state;
	struct err err = ERR_INIT;
	bucket_domain(b, 1, "x.h5");
	bucket_put(b, "plain", "text");
	bucket_put(b, "bad.h5/.domain.json", "[]");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(engine_setxattr(b->engine, "x.h5", "user.x", "1", 1, 0, &err),
			 -EOPNOTSUPP);
	assert_int_equal(engine_setxattr(b->engine, "x.h5", "user.hsds.owner", "1", 1, 0, &err),
			 -EOPNOTSUPP);
	assert_int_equal(set(b, "plain", NEW, 0), -EOPNOTSUPP);
	assert_int_equal(set(b, "", NEW, 0), -EOPNOTSUPP);
	assert_int_equal(set(b, "none", NEW, 0), -ENOENT);
	assert_int_equal(set(b, "bad.h5", NEW, 0), -EIO);
	assert_int_equal(engine_setxattr(b->engine, "x.h5", "user.hsds.acls", "{", 1, 0, &err),
			 -EINVAL);
	assert_non_null(strstr(err.msg, "x.h5: user.hsds.acls: JSON"));
	engine_close(b->engine);
	bucket_open(b, 1, 0);
	assert_int_equal(set(b, "x.h5", NEW, 0), -EROFS);
}

/* A failure leaves the list that was there. */
static void a_put_that_fails(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_open_rw(b, 1000, "fail:3:EACCES@x.h5/.domain.json");
	assert_int_equal(mode_of(b, "x.h5"), 0400);
	assert_int_equal(set(b, "x.h5", NEW, 0), -EACCES);
	assert_int_equal(mode_of(b, "x.h5"), 0400);
	assert_int_equal(set(b, "x.h5", NEW, 0), 0);
	assert_int_equal(mode_of(b, "x.h5"), 0444);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_read_can_be_set), TEST(everything_else_stays),
		TEST(flags_are_respected),     TEST(other_attributes_and_files_are_refused),
		TEST(a_put_that_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
