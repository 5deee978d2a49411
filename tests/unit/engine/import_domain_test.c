/* SPDX-License-Identifier: Apache-2.0 */
/* Imports by the engine: where the domain is stored, which paths are refused, and what is told. */
#include "bucket.h"

#include <errno.h>
#include <stdatomic.h>

#include <base/str.h>

static const char *source_file(void)
{
	static char path[1024];
	snprintf(path, sizeof(path), "%s/tests/data/import.h5", getenv("HSMOUNT_SOURCE"));
	return path;
}

static void take_line(void *arg, const char *line)
{
	str_addf(arg, "%s\n", line);
}

static int import_to(struct test_bucket *b, struct engine_import opt, struct str *lines,
		     struct err *err)
{
	*err = (struct err)ERR_INIT;
	opt.file = opt.file ? opt.file : source_file();
	opt.line = lines ? take_line : NULL;
	opt.arg = lines;
	opt.local_user = "ann";
	return engine_import(b->engine, &opt, err);
}

static bool exists(const struct test_bucket *b, const char *key)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", b->dir, key);
	return access(path, F_OK) == 0;
}

static void put_names(struct test_bucket *b)
{
	bucket_domain(b, 1, "x.h5");
	bucket_domain(b, 2, "bare");
	bucket_folder(b, "folder");
	bucket_put(b, "prefix/plain.h5", "a file");
	bucket_put(b, "taken.h5", "a file");
}

static void where_the_domain_is_stored(void **state)
{
	static const struct {
		const char *path;
		bool in_folder, replace;
		const char *stored;
	} cases[] = {
		{"new.h5", false, false, "new.h5"},
		{"name", false, false, "name"},
		{"a/b/new.h5", false, false, "a/b/new.h5"},
		{"folder", false, false, "folder/import.h5"},
		{"prefix", false, false, "prefix/import.h5"},
		{"later", true, false, "later/import.h5"},
		{"", false, false, "import.h5"},
		{"x.h5", false, true, "x.h5"},
		{"bare.h5", false, true, "bare"},
	};
	struct test_bucket *b = *state;
	struct engine_stat st;
	put_names(b);
	bucket_open(b, 1000, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char key[256], shown[256];
		struct err err;
		const struct engine_import opt = {.path = cases[i].path,
						  .in_folder = cases[i].in_folder,
						  .replace = cases[i].replace};
		snprintf(key, sizeof(key), "%s/.domain.json", cases[i].stored);
		assert_int_equal(exists(b, key), cases[i].replace);
		if (import_to(b, opt, NULL, &err))
			fail_msg("%zu: %s", i, err.msg);
		assert_true(exists(b, key));
		/* The names that the engine has cached are not stale. */
		snprintf(shown, sizeof(shown), "%s%s", cases[i].stored,
			 strchr(cases[i].stored, '.') ? "" : ".h5");
		assert_int_equal(engine_lookup(b->engine, shown, &st, &err), 0);
		assert_int_equal(st.kind, ENGINE_DOMAIN);
	}
}

static void paths_that_are_refused(void **state)
{
	static const struct {
		const char *path;
		bool in_folder;
		int code;
		const char *error;
	} cases[] = {
		{"x.h5", false, -EEXIST, "x.h5: the domain exists; to replace it, use --replace"},
		{"bare.h5", false, -EEXIST,
		 "bare: the domain exists; to replace it, use --replace"},
		{"taken.h5", false, -EEXIST, "taken.h5: it exists and is not a domain"},
		{"taken.h5/new.h5", false, -ENOTDIR, "taken.h5/new.h5: taken.h5 is not a folder"},
		{"taken.h5/a/b", true, -ENOTDIR,
		 "taken.h5/a/b/import.h5: taken.h5 is not a folder"},
		{"taken", false, -EEXIST,
		 "taken: a mount would show this domain as taken.h5, which exists"},
		{"full", true, -EISDIR, "full/import.h5: it is a folder"},
		{"x.h5/below.h5", false, -ENOTDIR, "x.h5/below.h5: x.h5 is a domain, not a folder"},
		{"db/new.h5", false, -EINVAL,
		 "db/new.h5: the path is part of the bucket's storage"},
		{"db", false, -EINVAL, "db: the path is part of the bucket's storage"},
		{"a/.domain.json", false, -EINVAL,
		 "a/.domain.json: the path is part of the bucket's storage"},
		{"a//new.h5", false, -EINVAL, "a//new.h5: not a valid path"},
	};
	struct test_bucket *b = *state;
	put_names(b);
	bucket_put(b, "full/import.h5/file", "below a folder with the name of the file");
	bucket_open(b, 1000, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err;
		const struct engine_import opt = {.path = cases[i].path,
						  .in_folder = cases[i].in_folder};
		const int rc = import_to(b, opt, NULL, &err);
		if (rc != cases[i].code || strcmp(err.msg, cases[i].error) != 0)
			fail_msg("%s: %d: %s", cases[i].path, rc, err.msg);
	}
}

static void files_that_are_refused(void **state)
{
	struct test_bucket *b = *state;
	struct err err;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	const uint64_t before = bucket_requests(b);
	assert_int_equal(
		import_to(b, (struct engine_import){.file = "/none", .path = "new.h5"}, NULL, &err),
		-ENOENT);
	assert_int_equal(
		import_to(b, (struct engine_import){.file = "-", .path = "new.h5"}, NULL, &err),
		-EINVAL);
	assert_int_equal(bucket_requests(b), before);
}

struct stop {
	atomic_bool cancelled;
	unsigned int calls;
};

static void stop(void *arg, uint64_t done, uint64_t total)
{
	struct stop *s = arg;
	s->calls++;
	atomic_store(&s->cancelled, done > 0);
}

/* Stores a part of new.h5. */
static void interrupt(struct test_bucket *b)
{
	struct stop s = {.calls = 0};
	struct err err = ERR_INIT;
	const struct engine_import opt = {.file = source_file(),
					  .path = "new.h5",
					  .puts = 1,
					  .cancelled = &s.cancelled,
					  .progress = stop,
					  .arg = &s};
	assert_int_equal(engine_import(b->engine, &opt, &err), -ECANCELED);
	assert_true(s.calls > 0);
	assert_false(exists(b, "new.h5/.domain.json"));
}

static void an_import_goes_on(void **state)
{
	struct test_bucket *b = *state;
	auto_str struct str lines = {0};
	struct err err;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	interrupt(b);
	assert_int_equal(import_to(b, (struct engine_import){.path = "new.h5"}, &lines, &err), 0);
	assert_memory_equal(str_text(&lines), "continued an interrupted import: ", 33);
	assert_non_null(strstr(str_text(&lines), " chunks were there already\n"));
	assert_true(exists(b, "new.h5/.domain.json"));
}

static void an_import_is_removed(void **state)
{
	struct test_bucket *b = *state;
	const struct engine_import abort = {.path = "new.h5", .abort = true};
	auto_str struct str lines = {0};
	struct err err;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	interrupt(b);
	assert_int_equal(import_to(b, abort, &lines, &err), 0);
	assert_memory_equal(str_text(&lines), "removed ", 8);
	assert_non_null(strstr(str_text(&lines), " objects of an unfinished import\n"));
	assert_int_equal(import_to(b, abort, NULL, &err), -ENOENT);
	const struct engine_import root = {.path = "", .abort = true};
	err = (struct err)ERR_INIT;
	assert_int_equal(engine_import(b->engine, &root, &err), -EISDIR);
	assert_string_equal(err.msg, "/: it is a folder; name the domain");
}

/* The fourth request for the record deletes it. */
static void only_the_last_step_is_left(void **state)
{
	const struct engine_import opt = {.path = "new.h5"};
	struct test_bucket *b = *state;
	auto_str struct str lines = {0};
	struct engine_options options;
	struct err err;
	bucket_domain(b, 1, "x.h5");
	engine_options_init(&options);
	options.workers = 0;
	options.debug_fault = "fail:4:EACCES@db/.import-*";
	bucket_open_as(b, options);
	assert_int_equal(import_to(b, opt, NULL, &err), -EACCES);
	assert_memory_equal(err.msg, "new.h5: the domain is complete, but ", 36);
	assert_int_equal(import_to(b, opt, &lines, &err), 0);
	assert_string_equal(str_text(&lines), "an earlier import of this file was complete except "
					      "for its last step\n");
	assert_int_equal(import_to(b, opt, NULL, &err), -EEXIST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(where_the_domain_is_stored, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(paths_that_are_refused, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(files_that_are_refused, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(an_import_goes_on, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(an_import_is_removed, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(only_the_last_step_is_left, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
