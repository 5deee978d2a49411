/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of plain objects, and the requests that reading them takes. */
#include "bucket.h"
#include "file_clock.h"

#include <errno.h>
#include <sys/xattr.h>

static const char kept[] = "user.hsds.kept";

/* Stores an object with a note. False: the file system has no extended attributes. */
static bool put_note(struct test_bucket *b, const char *key, const char *note)
{
	char path[1024];
	bucket_put(b, key, "text");
	snprintf(path, sizeof(path), "%s/%s", b->dir, key);
	if (setxattr(path, "user.hsmount.kept", note, strlen(note), 0) == 0)
		return true;
	assert_int_equal(errno, EOPNOTSUPP);
	return false;
}

/* Gives an object another note, and so another version. */
static void change_note(struct test_bucket *b, const char *key, const char *note)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", b->dir, key);
	file_clock_wait(path);
	assert_true(put_note(b, key, note));
}

/* The length of the value, or a negative errno. */
static ssize_t get_note(struct test_bucket *b, const char *path)
{
	char buf[1024];
	struct err err = ERR_INIT;
	const ssize_t n = engine_getxattr(b->engine, path, kept, buf, sizeof(buf), &err);
	assert_true(n != -EIO || strstr(err.msg, path));
	return n;
}

/* The same of the list of names: 0, or the length of one name. */
static void check_listed(struct test_bucket *b, const char *path, ssize_t expected)
{
	char buf[1024];
	const ssize_t n = engine_listxattr(b->engine, path, buf, sizeof(buf), NULL);
	assert_int_equal(n, expected);
	if (n > 0)
		assert_string_equal(buf, kept);
}

static uint64_t heads(struct test_bucket *b)
{
	return bucket_counts(b).heads;
}

static void the_bucket_is_asked_once_for_each_version(void **state)
{
	struct test_bucket *b = *state;
	if (!put_note(b, "d/x", "why"))
		skip();
	bucket_put(b, "d/y", "text");
	bucket_open(b, 1000, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(get_note(b, "d/x"), 3);
		check_listed(b, "d/x", sizeof(kept));
		assert_int_equal(heads(b), 1 + (i > 0));
		assert_int_equal(get_note(b, "d/y"), -ENODATA);
		check_listed(b, "d/y", 0);
		assert_int_equal(heads(b), 2);
	}
	/* Each listing makes the names anew. */
	for (int i = 0; i < 2; i++) {
		assert_string_equal(bucket_list(b, "d").text, "x= y=");
		assert_int_equal(get_note(b, "d/x"), 3);
		assert_int_equal(get_note(b, "d/y"), -ENODATA);
	}
	assert_int_equal(heads(b), 2);
}

/* While names are not cached, each look-up finds the version, but not the note. */
static void a_new_version_is_asked_for_again(void **state)
{
	struct test_bucket *b = *state;
	if (!put_note(b, "x", "why"))
		skip();
	bucket_open(b, 0, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(get_note(b, "x"), 3);
	assert_int_equal(heads(b), 1);
	change_note(b, "x", "other");
	for (int i = 0; i < 3; i++)
		assert_int_equal(get_note(b, "x"), 5);
	assert_int_equal(heads(b), 2);
}

/* The name is valid, but is one of an older version. */
static void an_object_that_has_changed(void **state)
{
	struct test_bucket *b = *state;
	if (!put_note(b, "d/x", "why"))
		skip();
	bucket_open(b, 1000, 0);
	bucket_list(b, "d");
	change_note(b, "d/x", "other");
	for (unsigned int i = 1; i < 3; i++) {
		assert_int_equal(get_note(b, "d/x"), 5);
		assert_int_equal(heads(b), i);
	}
	bucket_remove(b, "d/x");
	assert_int_equal(get_note(b, "d/x"), -ENOENT);
	check_listed(b, "d/x", -ENOENT);
}

/* The second object shows that a program goes through the directory. A round has a limit. */
static void a_directory_is_asked_for_in_rounds(void **state)
{
	enum { ROUND = 256, N = ROUND + 4 };
	struct test_bucket *b = *state;
	struct engine_counts before, after;
	char path[16];
	for (int i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "d/x%03d", i);
		if (!put_note(b, path, i % 2 ? "why" : ""))
			skip();
	}
	bucket_folder(b, "d/folder");
	bucket_domain(b, 1, "d/x000.h5");
	bucket_open(b, 1000, 0);
	bucket_list(b, "d");
	engine_get_counts(b->engine, &before);
	for (int i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "d/x%03d", i);
		check_listed(b, path, i % 2 ? sizeof(kept) : 0);
		assert_int_equal(get_note(b, path), i % 2 ? 3 : -ENODATA);
		engine_get_counts(b->engine, &after);
		/* The domain is between the first and the second object. */
		assert_int_equal(after.heads - before.heads, i < 2	     ? i + 1
							     : i < ROUND + 2 ? ROUND + 2
									     : N);
	}
	assert_int_equal(after.gets, before.gets);
	assert_int_equal(after.lists, before.lists);
}

static void only_plain_objects_are_asked_for(void **state)
{
	static const char *const paths[] = {"", "folder", "x.h5", "prefix"};
	struct test_bucket *b = *state;
	bucket_folder(b, "folder");
	bucket_domain(b, 1, "x.h5");
	bucket_put(b, "prefix/y", "text");
	bucket_open(b, 1000, 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(get_note(b, paths[i]), -ENODATA);
		assert_true(engine_listxattr(b->engine, paths[i], NULL, 0, NULL) >= 0);
	}
	assert_int_equal(heads(b), 0);
}

/* An error is not the absence of a note, and is not remembered. */
static void a_failure_is_an_error(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	if (!put_note(b, "d/x", "why"))
		skip();
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = 1000;
	opt.debug_fault = "fail:1:EIO@d/x,fail:2:EIO@d/x";
	bucket_open_as(b, opt);
	bucket_list(b, "d");
	assert_int_equal(get_note(b, "d/x"), -EIO);
	check_listed(b, "d/x", -EIO);
	assert_int_equal(get_note(b, "d/x"), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_bucket_is_asked_once_for_each_version),
		TEST(a_new_version_is_asked_for_again),
		TEST(an_object_that_has_changed),
		TEST(a_directory_is_asked_for_in_rounds),
		TEST(only_plain_objects_are_asked_for),
		TEST(a_failure_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
