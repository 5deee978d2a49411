/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names through the engine: which names are possible, and what leads to a domain. */
#include "bucket.h"

#include <errno.h>

static int move(struct test_bucket *b, const char *from, const char *to)
{
	struct err err = ERR_INIT;
	return engine_rename(b->engine, from, to, 0, &err);
}

static void assert_list(struct test_bucket *b, const char *path, const char *text)
{
	assert_string_equal(bucket_list(b, path).text, text);
}

static bool has(struct test_bucket *b, const char *key)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", b->dir, key);
	return access(path, F_OK) == 0;
}

static void a_domain_may_have_a_name_without_extension(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/a.h5");
	bucket_domain(b, 2, "home/b.h5");
	bucket_put(b, "home/plain", "text");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(move(b, "home/a.h5", "home/sedaQfsfy"), 0);
	assert_list(b, "home", "b.h5 plain= sedaQfsfy.h5");
	assert_int_equal(engine_lookup(b->engine, "home/sedaQfsfy", &st, NULL), 0);
	assert_int_equal(engine_lookup(b->engine, "home/sedaQfsfy.h5", &st, NULL), 0);
	/* The caches know about both names. */
	assert_int_equal(move(b, "home/sedaQfsfy", "home/b.h5"), 0);
	assert_list(b, "home", "b.h5 plain=");
	assert_int_equal(engine_lookup(b->engine, "home/sedaQfsfy", &st, NULL), -ENOENT);
	assert_int_equal(engine_lookup(b->engine, "home/sedaQfsfy.h5", &st, NULL), -ENOENT);
	assert_int_equal(move(b, "home/b.h5", "home/run"), 0);
	assert_int_equal(engine_lookup(b->engine, "home/run.h5", &st, NULL), 0);
	/* A domain has one name in the bucket. */
	assert_int_equal(move(b, "home/run.h5", "home/run"), 0);
	assert_true(has(b, "home/run/.domain.json"));
	assert_int_equal(move(b, "home/run", "home/run.h5"), 0);
	assert_true(has(b, "home/run.h5/.domain.json"));
	assert_int_equal(engine_lookup(b->engine, "home/run", &st, NULL), -ENOENT);
	assert_int_equal(move(b, "home/run.h5", "home/run"), 0);
	assert_false(has(b, "home/run.h5/.domain.json"));
	assert_int_equal(engine_mkdir(b->engine, "home/run", NULL), -EEXIST);
	assert_int_equal(move(b, "home/plain", "home/run"), 0);
	assert_list(b, "home", "run=");
	assert_false(has(b, "home/run/.domain.json"));
}

static void the_new_directory_must_exist(void **state)
{
	struct test_bucket *b = *state;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/a.h5");
	bucket_put(b, "home/plain", "text");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(move(b, "home/a.h5", "none/a.h5"), -ENOENT);
	assert_int_equal(move(b, "home/plain", "home/none/plain"), -ENOENT);
	assert_int_equal(move(b, "home/plain", "home/a.h5/plain"), -ENOTDIR);
	assert_int_equal(engine_mkdir(b->engine, "none/d", NULL), -ENOENT);
	assert_int_equal(engine_mkdir(b->engine, "home/plain/d", NULL), -ENOTDIR);
	assert_list(b, "home", "a.h5 plain=");
	assert_false(has(b, "none"));
	assert_false(has(b, "home/none"));
}

static void what_has_the_name_stays(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "a.h5");
	bucket_domain(b, 2, "run.h5");
	bucket_put(b, "folder/x", "");
	bucket_open_rw(b, 0, NULL);
	assert_int_equal(move(b, "a.h5", "folder"), -EISDIR);
	/* Both domains are found, and one of them is listed. */
	assert_int_equal(move(b, "a.h5", "run"), 0);
	assert_list(b, "", "folder/ run.h5");
	assert_int_equal(engine_unlink(b->engine, "run.h5", NULL), 0);
	assert_true(has(b, "run/.domain.json"));
	assert_list(b, "", "folder/ run.h5");
	assert_int_equal(engine_unlink(b->engine, "run", NULL), 0);
	assert_int_equal(engine_lookup(b->engine, "run.h5", &st, NULL), -ENOENT);
}

/* A program looks a name up, and then makes it. */
static void absent_names_are_not_looked_up_again(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "a.h5");
	bucket_domain(b, 2, "c.h5");
	bucket_folder(b, "home");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(engine_lookup(b->engine, "a.h5", &st, NULL), 0);
	assert_int_equal(engine_lookup(b->engine, "home/x.h5", &st, NULL), -ENOENT);
	assert_int_equal(engine_lookup(b->engine, "home", &st, NULL), 0);
	const uint64_t before = bucket_requests(b);
	assert_int_equal(engine_mkdir(b->engine, "home/x.h5", NULL), 0);
	assert_int_equal(bucket_requests(b), before);
	assert_int_equal(engine_lookup(b->engine, "home/x.h5", &st, NULL), 0);
	assert_int_equal(st.kind, ENGINE_DIR);
	/* If another program was faster, the name is looked up again. */
	assert_int_equal(engine_lookup(b->engine, "b.h5", &st, NULL), -ENOENT);
	bucket_domain(b, 3, "b.h5");
	assert_int_equal(move(b, "a.h5", "b.h5"), 0);
	assert_list(b, "", "b.h5 c.h5 home/");
	assert_int_equal(engine_lookup(b->engine, "d", &st, NULL), -ENOENT);
	bucket_folder(b, "d");
	assert_int_equal(move(b, "c.h5", "d"), -EISDIR);
	assert_int_equal(engine_mkdir(b->engine, "d", NULL), -EEXIST);
}

/* A directory cannot have a domain and a plain object of one name. */
static void another_program_makes_the_other_kind(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "a.h5");
	bucket_put(b, "plain", "text");
	bucket_open_rw(b, 1000, NULL);
	assert_int_equal(engine_lookup(b->engine, "b.h5", &st, NULL), -ENOENT);
	assert_int_equal(engine_lookup(b->engine, "c.h5", &st, NULL), -ENOENT);
	bucket_put(b, "b.h5", "others");
	bucket_domain(b, 2, "c.h5");
	assert_int_equal(move(b, "a.h5", "b.h5"), 0);
	assert_int_equal(move(b, "plain", "c.h5"), 0);
	assert_list(b, "", "b.h5 c.h5=");
}

static void new_names_are_checked(void **state)
{
	char name[300], deep[1100];
	struct {
		const char *path;
		int code;
	} rows[] = {
		{"home/x\xff.h5", -EINVAL},
		{"home/x\xc3\xa4.h5", 0},
		{"home/x\x01.h5", -EINVAL},
		{"home/x\xef\xbf\xbf.h5", -EINVAL},
		{"home/..", -EINVAL},
		{"home/./x", -EINVAL},
		{"home//x", -EINVAL},
		{"home/.domain.json", -EINVAL},
		{"db", -EINVAL},
		{"home/a.", 0},
		{"home/...", 0},
		{"home/.x.h5.Q3ZrN", 0},
		{"home/ ~$x", 0},
		{name, -ENAMETOOLONG},
		{deep, -ENAMETOOLONG},
	};
	struct test_bucket *b = *state;
	struct engine_file *f;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "a.h5");
	bucket_open_rw(b, 0, NULL);
	memset(name, 'n', 256);
	name[256] = '\0';
	for (size_t i = 0; i < sizeof(deep); i++)
		deep[i] = i % 100 == 99 ? '/' : 'd';
	deep[1015] = '\0'; /* and "/.domain.json" */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (engine_mkdir(b->engine, rows[i].path, NULL) != rows[i].code)
			fail_msg("row %zu: mkdir", i);
		if (!rows[i].code)
			continue;
		assert_int_equal(move(b, "a.h5", rows[i].path), rows[i].code);
		assert_int_equal(
			engine_open_write(b->engine, rows[i].path, ENGINE_CREATE, &f, NULL),
			rows[i].code);
	}
	/* With .h5, a listing could not show it. */
	name[253] = '\0';
	assert_int_equal(move(b, "a.h5", name), -ENAMETOOLONG);
	name[252] = '\0';
	assert_int_equal(move(b, "a.h5", name), 0);
	assert_int_equal(move(b, name, "a.h5"), 0);
	memset(name, 'n', 255);
	strcpy(name + 252, ".h5");
	assert_int_equal(move(b, "a.h5", name), 0);
}

/* A bucket that is full takes the document of a directory only after an entry is removed. */
static void removing_makes_room(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "with/a.h5");
	bucket_put(b, "without/b", "text");
	bucket_folder(b, "upper/lower");
	/* The first request for a document is the look-up, the second one the put. */
	bucket_open_rw(b, 1000,
		       "fail:2:ENOSPC@with/.domain.json,fail:2+:EDQUOT@without/.domain.json,"
		       "fail:2:ENOSPC@upper/.domain.json");
	assert_int_equal(engine_unlink(b->engine, "with/a.h5", NULL), 0);
	assert_true(has(b, "with/.domain.json"));
	assert_int_equal(engine_unlink(b->engine, "without/b", NULL), 0);
	assert_false(has(b, "without"));
	assert_int_equal(engine_rmdir(b->engine, "upper/lower", NULL), 0);
	assert_true(has(b, "upper/.domain.json"));
	assert_list(b, "upper", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_domain_may_have_a_name_without_extension),
		TEST(the_new_directory_must_exist),
		TEST(what_has_the_name_stays),
		TEST(absent_names_are_not_looked_up_again),
		TEST(another_program_makes_the_other_kind),
		TEST(new_names_are_checked),
		TEST(removing_makes_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
