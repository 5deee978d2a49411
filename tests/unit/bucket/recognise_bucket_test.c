/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories are accepted as a bucket, and the messages for the others. */
#include "bucket.h"

#include <errno.h>

#define V1_ID "953ef986-e555-11f1-b213-02fc00000001"

static int open_as(struct test_bucket *b, const char *below, struct engine_options *opt,
		   struct err *err)
{
	char place[256];
	snprintf(place, sizeof(place), "%s%s%s", b->dir, below[0] ? "/" : "", below);
	opt->bucket = place;
	opt->workers = 0;
	*err = (struct err)ERR_INIT;
	int rc = engine_open(opt, &b->engine, err);
	if (!rc)
		engine_close(b->engine);
	b->engine = NULL;
	return rc;
}

static int open_place(struct test_bucket *b, const char *below, bool allow_empty, struct err *err)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.allow_empty = allow_empty;
	return open_as(b, below, &opt, err);
}

static int open_for_writing(struct test_bucket *b, const char *below, struct err *err)
{
	char journal[128];
	struct engine_options opt;
	engine_options_init(&opt);
	opt.write = true;
	opt.user = "ann";
	snprintf(journal, sizeof(journal), "%s.journal", b->dir);
	opt.journal_dir = journal;
	int rc = open_as(b, below, &opt, err);
	nftw(journal, bucket_rm, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}

static void accepts(struct test_bucket *b, const char *below)
{
	struct err err;
	if (open_place(b, below, false, &err))
		fail_msg("'%s': %s", below, err.msg);
}

/* want: the message, with %s for the bucket's path. */
static void refuses_as(struct test_bucket *b, const char *below, bool allow_empty, int code,
		       const char *want)
{
	struct err err;
	char text[ERR_MAX];
	const int rc = open_place(b, below, allow_empty, &err);
	size_t n = 0;
	for (const char *p = want; *p && n < sizeof(text) - 1; p++)
		if (p[0] == '%' && p[1] == 's' && p++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", b->dir);
		else
			text[n++] = *p;
	text[n] = '\0';
	if (rc != code || strcmp(err.msg, text) != 0)
		fail_msg("'%s': %d, not %d: %s\n    not %s", below, rc, code, err.msg, text);
}

static void refuses(struct test_bucket *b, const char *below, const char *want)
{
	refuses_as(b, below, false, -EINVAL, want);
}

static void a_bucket_is_recognised(void **state)
{
	struct test_bucket *b = *state;
	bucket_put(b, "empty/db/x", "");
	bucket_remove(b, "empty/db/x");
	accepts(b, "empty");
	bucket_folder(b, "new/home");
	accepts(b, "new"); /* no domain is stored yet */
	bucket_domain(b, 1, "home/x.h5");
	accepts(b, "");
	bucket_put(b, "e8bdf-d-" V1_ID, "{}"); /* objects of both schemas */
	accepts(b, "");
}

static void a_v1_bucket_is_recognised(void **state)
{
	struct test_bucket *b = *state;
	char *bucket, *path, arg[128];
	bucket_folder(b, "home");
	bucket_put(b, "b784c-c-" V1_ID "_0_1", "xxxx");
	accepts(b, "");
	refuses(b, "home", "%s/home is a folder of the bucket %s: use %s and look for home/ in it");
	/* engine_split() finds the bucket, too. */
	snprintf(arg, sizeof(arg), "%s/home/x.h5", b->dir);
	assert_int_equal(engine_split(arg, &bucket, &path, NULL), 0);
	assert_string_equal(bucket, b->dir);
	assert_string_equal(path, "home/x.h5");
	free(bucket);
	free(path);
}

static void a_part_of_a_bucket_is_refused(void **state)
{
	static const char folder[] =
		"%s/home is a folder of the bucket %s: use %s and look for home/ in it";
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "home/x.h5");
	bucket_domain(b, 2, "home/ann/run");
	bucket_put(b, "files/notes.txt", "plain");
	/* At first only the domains in it show what it is, later its own document does. */
	refuses(b, "home", folder);
	bucket_folder(b, "home");
	refuses(b, "home", folder);
	refuses_as(b, "home", true, -EINVAL, folder);
	refuses(b, "home/x.h5",
		"%s/home/x.h5 is a single domain of the bucket %s: use %s and look for home/x.h5 "
		"in it");
	refuses(b, "home/ann/run",
		"%s/home/ann/run is a single domain of the bucket %s: use %s and look for "
		"home/ann/run.h5 in it");
	refuses(b, "files",
		"%s/files is a folder of the bucket %s: use %s and look for files/ in it");
	refuses(b, "db", "%s/db is a part of the bucket %s, where the data are stored: use %s");
}

static void a_part_without_its_bucket_is_refused(void **state)
{
	struct test_bucket *b = *state;
	bucket_folder(b, "home");
	refuses(b, "home",
		"%s/home is a folder of a bucket, not a bucket: use the bucket that it is in");
	bucket_put(b, "x.h5/.domain.json", "{\"root\": \"g-" V1_ID "\"}");
	refuses(b, "x.h5",
		"%s/x.h5 is a single domain, not a bucket: use the bucket that it belongs to");
	/* A document that cannot be parsed has no root group. */
	bucket_put(b, "x.h5/.domain.json", "");
	refuses(b, "x.h5",
		"%s/x.h5 is a folder of a bucket, not a bucket: use the bucket that it is in");
}

static void another_directory_is_refused(void **state)
{
	static const char want[] = "%s is not a bucket: neither the service's storage (db/) nor a "
				   "domain or Zarr store is there; -o allow_empty accepts it";
	struct test_bucket *b = *state;
	struct err err;
	refuses(b, "", "%s is an empty directory, not a bucket; -o allow_empty accepts it");
	assert_int_equal(open_place(b, "", true, &err), 0);
	bucket_put(b, "data/deep/x.h5/.domain.json", "{}"); /* too deep to be found */
	bucket_put(b, "readme", "text");
	refuses(b, "", want);
	assert_int_equal(open_place(b, "", true, &err), 0);
	bucket_put(b, "db", "a file");
	refuses(b, "", want);
}

/* If it can be written, it becomes a bucket. */
static void an_empty_directory_can_be_written(void **state)
{
	struct test_bucket *b = *state;
	struct err err;
	assert_int_equal(open_for_writing(b, "", &err), 0);
	bucket_put(b, "readme", "text");
	assert_int_equal(open_place(b, "", false, &err), 0);
	assert_int_equal(open_for_writing(b, "", &err), 0);
	char storage[1024];
	snprintf(storage, sizeof(storage), "%s/db", b->dir);
	assert_int_equal(rmdir(storage), 0);
	assert_int_equal(open_for_writing(b, "", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "is not a bucket"));
	/* A part of a bucket is no bucket. */
	bucket_domain(b, 1, "home/x.h5");
	bucket_put(b, "empty/x", "");
	bucket_remove(b, "empty/x");
	assert_int_equal(open_for_writing(b, "empty", &err), -EINVAL);
	assert_int_equal(open_for_writing(b, "", &err), 0);
}

/* Nothing is made before the journal is open. */
static void without_a_journal_it_stays_empty(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	struct err err;
	engine_options_init(&opt);
	opt.write = true;
	opt.user = "ann";
	opt.journal_dir = "/dev/null";
	assert_true(open_as(b, "", &opt, &err) < 0);
	assert_non_null(strstr(err.msg, "/dev/null"));
	assert_int_equal(rmdir(b->dir), 0);
	assert_int_equal(mkdir(b->dir, 0700), 0);
	assert_int_equal(open_for_writing(b, "", &err), 0);
	assert_int_equal(open_place(b, "", false, &err), 0);
}

/* A directory that may not be read is not called empty. */
static void a_directory_without_permission_is_not_empty(void **state)
{
	struct test_bucket *b = *state;
	struct err err;
	assert_int_equal(rmdir(b->dir), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	assert_non_null(mkdtemp(strcpy(b->dir, "/tmp/engine-test-XXXXXX")));
	assert_int_equal(chmod(b->dir, 0), 0);
	assert_int_equal(open_place(b, "", false, &err), -EACCES);
	assert_int_equal(open_place(b, "", true, &err), -EACCES);
	assert_int_equal(chmod(b->dir, 0700), 0);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

/* Only a part of a large directory is read, but the storage is always found. */
static void a_bucket_is_recognised_among_many_files(void **state)
{
	enum { MANY = 6000 };
	struct test_bucket *b = *state;
	struct err err;
	char key[64];
	for (int i = 0; i < MANY; i++) {
		snprintf(key, sizeof(key), "file%d", i);
		bucket_put(b, key, "");
	}
	assert_int_equal(open_place(b, "", false, &err), -EINVAL);
	bucket_domain(b, 1, "home/x.h5");
	accepts(b, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_bucket_is_recognised),
		TEST(a_v1_bucket_is_recognised),
		TEST(a_part_of_a_bucket_is_refused),
		TEST(a_part_without_its_bucket_is_refused),
		TEST(another_directory_is_refused),
		TEST(an_empty_directory_can_be_written),
		TEST(without_a_journal_it_stays_empty),
		TEST(a_directory_without_permission_is_not_empty),
		TEST(a_bucket_is_recognised_among_many_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
