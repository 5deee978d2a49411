/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of engine_open() and engine_split(), and an engine that programs write to. */
#include "bucket.h"

#include <errno.h>
#include <sys/stat.h>

static void an_argument_is_split_at_the_bucket(void **state)
{
	static const struct {
		const char *before, *after, *path;
	} rows[] = {
		{"", "", ""},
		{"", "/", ""},
		{"", "/home", "home"},
		{"", "/home/x.h5", "home/x.h5"},
		{"file://", "/home/x.h5", "home/x.h5"},
		{"/.", "/./home//x.h5/", "home/x.h5"},
		{"", "/home/not/there.h5", "home/not/there.h5"},
	};
	struct test_bucket *b = *state;
	char arg[256], *bucket, *path;
	bucket_domain(b, 1, "home/x.h5");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(arg, sizeof(arg), "%s%s%s", rows[i].before, b->dir, rows[i].after);
		assert_int_equal(engine_split(arg, &bucket, &path, NULL), 0);
		assert_string_equal(bucket, b->dir);
		assert_string_equal(path, rows[i].path);
		free(bucket);
		free(path);
	}
	assert_int_equal(engine_split("/nowhere/x.h5", &bucket, &path, NULL), -ENOENT);
}

static void a_new_bucket_is_an_empty_directory(void **state)
{
	static const char *const rows[][2] = {
		{"/new", ""}, {"/new/", ""}, {"/new/x.h5", "x.h5"}, {"/new/home/ann/", "home/ann"}};
	struct test_bucket *b = *state;
	char dir[256], arg[300], *bucket, *path;
	snprintf(dir, sizeof(dir), "%s/new", b->dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(arg, sizeof(arg), "%s%s", b->dir, rows[i][0]);
		assert_int_equal(engine_split_new(arg, &bucket, &path, NULL), 0);
		assert_string_equal(bucket, dir);
		assert_string_equal(path, rows[i][1]);
		free(bucket);
		free(path);
	}
	snprintf(arg, sizeof(arg), "%s/other/x.h5", b->dir); /* the nearest one is not empty */
	assert_int_equal(engine_split_new(arg, &bucket, &path, NULL), -ENOENT);
	bucket_put(b, "new/file", "");
	snprintf(arg, sizeof(arg), "%s/new/file/x.h5", b->dir); /* below a file */
	assert_int_equal(engine_split_new(arg, &bucket, &path, NULL), -ENOENT);
}

/* A directory that cannot be read may be the bucket, so no bucket is reported as absent. */
static void unreadable_directories_are_reported(void **state)
{
	struct test_bucket *b = *state;
	struct err err = ERR_INIT;
	char arg[256], *bucket, *path;
	snprintf(arg, sizeof(arg), "%s/loop", b->dir);
	assert_int_equal(symlink("loop", arg), 0);
	strcat(arg, "/x.h5");
	assert_int_equal(engine_split(arg, &bucket, &path, &err), -ELOOP);
	assert_non_null(strstr(err.msg, "/loop/x.h5: Too many levels of symbolic links"));
}

static void options_are_checked(void **state)
{
	struct test_bucket *b = *state;
	struct engine *e;
	struct engine_options opt;
	struct err err = ERR_INIT;
	engine_options_init(&opt);
	assert_int_equal(engine_open(&opt, &e, &err), -EINVAL);
	opt.bucket = "gopher://bucket";
	assert_int_equal(engine_open(&opt, &e, &err), -EINVAL);
	opt.bucket = "s3:///prefix";
	assert_int_equal(engine_open(&opt, &e, &err), -EINVAL);
	opt.bucket = "/no/such/bucket";
	assert_int_equal(engine_open(&opt, &e, &err), -ENOENT);
	opt.bucket = b->dir;
	opt.debug_fault = "nonsense";
	assert_int_equal(engine_open(&opt, &e, &err), -EINVAL);
	opt.debug_fault = NULL;
	opt.write = true;
	assert_int_equal(engine_open(&opt, &e, &err), -EINVAL);
	opt.user = "ann";
	assert_int_equal(engine_open(&opt, &e, &err), -EINVAL);
	assert_string_equal(err.msg, "missing journal_dir");
	opt.write = false;
	opt.metadata_ttl = -1;
	assert_int_equal(engine_open(&opt, &e, &err), -EINVAL);
}

/* ---- writing ---- */

static void open_writable(struct test_bucket *b)
{
	struct engine_options opt = bucket_rw(b);
	opt.workers = 16;
	opt.spool_size = 1 << 20;
	bucket_open_as(b, opt);
	engine_start(b->engine);
}

/* The store of a directory knows its free space; otherwise it would be that of the journal. */
static void a_writable_engine_stores_files(void **state)
{
	struct test_bucket *b = *state;
	struct engine_counts c;
	struct engine_file *f;
	struct engine_stat st;
	uint64_t free_bytes, total;
	char buf[8];
	bucket_folder(b, "home");
	for (int i = 0; i < 2; i++) {
		open_writable(b);
		assert_int_equal(engine_open_write(b->engine, "home/a", ENGINE_CREATE, &f, NULL),
				 0);
		assert_int_equal(engine_pwrite(f, "bytes", 5, 0, NULL), 5);
		engine_get_counts(b->engine, &c);
		assert_int_equal(c.drafts_open, 1);
		assert_int_equal(c.spool_size, 1 << 20);
		assert_int_equal(c.bytes_written, 5);
		assert_true(c.spool_used > 0);
		engine_file_close(f);
		engine_get_counts(b->engine, &c);
		assert_int_equal(c.drafts_open + c.drafts_failed + c.drafts_left, 0);
		assert_int_equal(c.commits, 1);
		assert_int_equal(engine_lookup(b->engine, "home/a", &st, NULL), 0);
		assert_int_equal(st.mode, 0644);
		assert_int_equal(engine_space(b->engine, &free_bytes, &total), 0);
		assert_true(free_bytes <= total && total > 1 << 20);
		assert_int_equal(engine_getxattr(b->engine, "", "user.hsds.debug.commits", buf,
						 sizeof(buf), NULL),
				 1);
		assert_int_equal(buf[0], '1');
		engine_close(b->engine);
		b->engine = NULL;
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_argument_is_split_at_the_bucket),  TEST(a_new_bucket_is_an_empty_directory),
		TEST(unreadable_directories_are_reported), TEST(options_are_checked),
		TEST(a_writable_engine_stores_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
