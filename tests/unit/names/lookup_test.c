/* SPDX-License-Identifier: Apache-2.0 */
/* Names, kinds, modes, and what it costs to find them. */
#include "bucket.h"

#include <errno.h>

static void assert_kind(struct bucket *b, const char *path, enum engine_kind kind)
{
	struct engine_stat st;
	struct err err = ERR_INIT;
	if (engine_lookup(b->engine, path, &st, &err))
		fail_msg("%s: %s", path, err.msg);
	if (st.kind != kind)
		fail_msg("%s: kind %d", path, st.kind);
}

static void assert_absent(struct bucket *b, const char *path)
{
	struct engine_stat st;
	if (engine_lookup(b->engine, path, &st, NULL) != -ENOENT)
		fail_msg("%s is there", path);
}

static void a_folder_shows_what_is_in_it(void **state)
{
	struct bucket *b = *state;
	bucket_folder(b, "home");
	bucket_folder(b, "home/empty");
	bucket_domain(b, 1, "home/x.h5");
	bucket_domain(b, 2, "home/data.nc");
	bucket_domain(b, 3, "home/sub/deep.h5");
	bucket_put(b, "home/notes.txt", "plain");
	bucket_put(b, "top", "plain");
	bucket_open(b, 1, 0);
	assert_string_equal(bucket_list(b, "").text, "home/ top=");
	assert_string_equal(bucket_list(b, "home").text, "data.nc empty/ notes.txt= sub/ x.h5");
	assert_string_equal(bucket_list(b, "home/empty").text, "");
	assert_string_equal(bucket_list(b, "home/sub").text, "deep.h5");
	assert_int_equal(bucket_list(b, "home/x.h5").code, -ENOTDIR);
	assert_int_equal(bucket_list(b, "nowhere").code, -ENOENT);
}

static void storage_and_documents_are_hidden(void **state)
{
	static const char *const hidden[] = {"db", "db/00000001-00000000", ".domain.json",
					     "home/.domain.json", "home/x.h5/.domain.json"};
	struct bucket *b = *state;
	bucket_domain(b, 1, "home/x.h5");
	bucket_put(b, ".domain.json", "{\"owner\": \"ann\", \"acls\": {}}");
	bucket_open(b, 1, 0);
	assert_string_equal(bucket_list(b, "").text, "home/");
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_absent(b, hidden[i]);
}

static void names_that_no_bucket_has_are_absent(void **state)
{
	static const char *const names[] = {"..",	   "../x",	 "home/../home/x.h5",
					    "/home",	   "home//x.h5", "home/x.h5/y",
					    "home/absent", "x\n"};
	struct bucket *b = *state;
	bucket_domain(b, 1, "home/x.h5");
	bucket_open(b, 1, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_absent(b, names[i]);
}

static void a_domain_without_extension_gets_one(void **state)
{
	struct bucket *b = *state;
	bucket_domain(b, 1, "run");
	bucket_domain(b, 2, "run/part.h5");
	bucket_domain(b, 3, "alone");
	bucket_domain(b, 4, ".hidden");
	bucket_domain(b, 5, "end.");
	bucket_open(b, 0, 0);
	assert_string_equal(bucket_list(b, "").text, ".hidden.h5 alone.h5 end. run/ run.h5");
	assert_kind(b, "run.h5", ENGINE_DOMAIN);
	assert_kind(b, "run", ENGINE_DIR);
	assert_kind(b, "alone.h5", ENGINE_DOMAIN);
	assert_kind(b, ".hidden.h5", ENGINE_DOMAIN);
	assert_absent(b, "alone");
	assert_absent(b, "run.h5.h5");
	assert_absent(b, "end..h5");
}

static void a_name_that_is_taken_grows_another_suffix(void **state)
{
	struct bucket *b = *state;
	bucket_domain(b, 1, "run");
	bucket_domain(b, 2, "run.h5");
	bucket_domain(b, 3, "x");
	bucket_put(b, "x.h5", "a plain object");
	bucket_put(b, "x.h5.h5", "another");
	bucket_domain(b, 4, "full");
	bucket_put(b, "full.h5", "1");
	bucket_put(b, "full.h5.h5", "2");
	bucket_put(b, "full.h5.h5.h5", "3");
	bucket_open(b, 0, 0);
	assert_string_equal(bucket_list(b, "").text,
			    "full.h5= full.h5.h5= full.h5.h5.h5= run.h5 run.h5.h5 x.h5= x.h5.h5= "
			    "x.h5.h5.h5");
	assert_kind(b, "run.h5.h5", ENGINE_DOMAIN);
	assert_kind(b, "x.h5.h5.h5", ENGINE_DOMAIN);
	assert_kind(b, "x.h5.h5", ENGINE_PLAIN);
	assert_absent(b, "full.h5.h5.h5.h5");
}

static void a_file_wins_over_what_is_below_it(void **state)
{
	struct bucket *b = *state;
	bucket_domain(b, 1, "a.h5");
	bucket_domain(b, 2, "a.h5/below.h5");
	bucket_open(b, 0, 0);
	assert_string_equal(bucket_list(b, "").text, "a.h5");
	assert_kind(b, "a.h5", ENGINE_DOMAIN);
}

static void a_broken_document_hides_nobody(void **state)
{
	struct bucket *b = *state;
	struct engine_file *f;
	struct err err = ERR_INIT;
	bucket_put(b, "bad.h5/.domain.json", "{\"root\": ");
	bucket_put(b, "bare/.domain.json", "[]");
	bucket_put(b, "folder.d/.domain.json", "\"?\"");
	bucket_domain(b, 1, "folder.d/x.h5");
	bucket_domain(b, 2, "good.h5");
	bucket_open(b, 1, 0);
	assert_string_equal(bucket_list(b, "").text, "bad.h5 bare.h5 folder.d/ good.h5");
	assert_kind(b, "bad.h5", ENGINE_DOMAIN);
	assert_kind(b, "bare.h5", ENGINE_DOMAIN);
	assert_kind(b, "folder.d", ENGINE_DIR);
	assert_string_equal(bucket_list(b, "folder.d").text, "x.h5");
	assert_int_equal(engine_file_open(b->engine, "bad.h5", &f, &err), -EIO);
	assert_non_null(strstr(err.msg, "bad.h5/.domain.json"));
}

static void leftovers_of_deleted_domains_are_not_shown(void **state)
{
	struct bucket *b = *state;
	bucket_domain(b, 1, "gone.h5");
	bucket_domain(b, 2, "here.h5");
	bucket_open(b, 0, 0);
	bucket_remove(b, "gone.h5/.domain.json");
	assert_string_equal(bucket_list(b, "").text, "here.h5");
	assert_absent(b, "gone.h5");
}

static void modes_follow_the_acls(void **state)
{
	static const struct {
		const char *acls;
		unsigned int mode;
	} rows[] = {
		{"", 0444},
		{"\"ann\": " ACL_ALL, 0400},
		{"\"ann\": " ACL_ALL ", \"default\": " ACL_READ, 0444},
		{"\"ann\": " ACL_ALL ", \"default\": " ACL_NONE, 0400},
		{"\"ann\": " ACL_NONE ", \"default\": " ACL_READ, 0044},
		{"\"bob\": " ACL_ALL, 0},
		{"\"bob\": " ACL_ALL ", \"default\": " ACL_READ, 0444},
	};
	struct bucket *b = *state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[32];
		snprintf(path, sizeof(path), "%u.h5", i);
		bucket_domain_acls(b, i + 1, path, rows[i].acls);
	}
	bucket_folder(b, "open");
	bucket_put(b, "plain", "");
	bucket_put(b, "prefix/plain", "");
	bucket_open(b, 1, 0);
	struct engine_stat st;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[32];
		snprintf(path, sizeof(path), "%u.h5", i);
		assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
		if (st.mode != rows[i].mode)
			fail_msg("%s: mode %o instead of %o", rows[i].acls, st.mode, rows[i].mode);
	}
	assert_int_equal(engine_lookup(b->engine, "open", &st, NULL), 0);
	assert_int_equal(st.mode, 0555);
	assert_int_equal(engine_lookup(b->engine, "prefix", &st, NULL), 0);
	assert_int_equal(st.mode, 0555);
	assert_int_equal(engine_lookup(b->engine, "plain", &st, NULL), 0);
	assert_int_equal(st.mode, 0444);
}

static void names_that_are_believed_cost_nothing(void **state)
{
	struct bucket *b = *state;
	struct engine_stat st;
	for (unsigned int i = 1; i <= 20; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		bucket_domain(b, i, path);
	}
	bucket_open(b, 1000, 0);
	bucket_list(b, "d");
	struct bucket_counts first = bucket_counts(b);
	/* Root is not asked for; "d": all that it can be; each domain's document. */
	assert_int_equal(first.gets, 2 + 20);
	assert_int_equal(first.lists, 2);
	bucket_list(b, "d");
	struct bucket_counts again = bucket_counts(b);
	assert_int_equal(again.gets, first.gets);
	assert_int_equal(again.lists, first.lists + 1);
	for (unsigned int i = 1; i <= 20; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
		assert_int_equal(st.version, 0);
		assert_false(st.size_exact);
		assert_true(st.size > 0);
	}
	assert_int_equal(bucket_counts(b).gets, again.gets);
	for (unsigned int i = 1; i <= 20; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		assert_int_equal(engine_getattr(b->engine, path, &st, NULL), 0);
	}
	/* Only the summaries, for the sizes. */
	assert_int_equal(bucket_counts(b).gets, again.gets + 20);
	assert_int_equal(bucket_counts(b).heads, first.heads);
	assert_int_equal(bucket_counts(b).lists, again.lists);
}

static void nothing_is_believed_without_a_ttl(void **state)
{
	struct bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 0, 0);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	bucket_remove(b, "x.h5/.domain.json");
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), -ENOENT);
}

/* Whatever a name turns out to be: one get or head or list for each chance, once. */
static void a_name_costs_the_same_whatever_it_is(void **state)
{
	static const struct {
		const char *path;
		unsigned int gets;
		int code;
	} rows[] = {
		{"x.h5", 2, 0},	      {"run.h5", 2, 0},	  {"folder", 1, 0},	 {"prefix", 1, 0},
		{"prefix/obj", 1, 0}, {"no", 1, -ENOENT}, {"no.h5", 2, -ENOENT},
	};
	struct bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_domain(b, 2, "run");
	bucket_folder(b, "folder");
	bucket_put(b, "prefix/obj", "bytes");
	bucket_open(b, 1000, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct bucket_counts before = bucket_counts(b);
		assert_int_equal(engine_lookup(b->engine, rows[i].path, &st, NULL), rows[i].code);
		const struct bucket_counts after = bucket_counts(b);
		/* Documents, and the first byte of an object of that name. */
		assert_int_equal(after.gets - before.gets, rows[i].gets + 1);
		assert_int_equal(after.heads - before.heads, 0);
		assert_int_equal(after.lists - before.lists, 1);
	}
}

/* What its document decided once is asked by that document, and it is not sent again. */
static void a_name_that_is_known_is_asked_with_one_get(void **state)
{
	static const char *const paths[] = {"x.h5", "folder", "folder/y.nc"};
	struct bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_folder(b, "folder");
	bucket_domain(b, 2, "folder/y.nc");
	bucket_open(b, 0, 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(engine_lookup(b->engine, paths[i], &st, NULL), 0);
		const struct bucket_counts before = bucket_counts(b);
		struct engine_counts c;
		engine_get_counts(b->engine, &c);
		const uint64_t bytes = c.bytes_in;
		assert_int_equal(engine_lookup(b->engine, paths[i], &st, NULL), 0);
		const struct bucket_counts after = bucket_counts(b);
		engine_get_counts(b->engine, &c);
		assert_int_equal(after.gets - before.gets, 1);
		assert_int_equal(after.heads, before.heads);
		assert_int_equal(after.lists, before.lists);
		assert_int_equal(c.bytes_in, bytes);
	}
	/* It becomes something else. */
	bucket_folder(b, "x.h5");
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.kind, ENGINE_DIR);
	bucket_remove(b, "x.h5/.domain.json");
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), -ENOENT);
	bucket_remove(b, "folder/.domain.json");
	assert_int_equal(engine_lookup(b->engine, "folder", &st, NULL), 0);
	assert_int_equal(st.kind, ENGINE_DIR);
}

/* What was a directory is listed without asking what it is; an empty one is asked for again. */
static void a_known_directory_is_listed_at_once(void **state)
{
	struct bucket *b = *state;
	bucket_put(b, "d/plain", "");
	bucket_open(b, 0, 0);
	assert_string_equal(bucket_list(b, "d").text, "plain=");
	const uint64_t before = bucket_requests(b);
	assert_string_equal(bucket_list(b, "d").text, "plain=");
	assert_int_equal(bucket_requests(b), before + 1);
	bucket_remove(b, "d/plain");
	assert_int_equal(bucket_list(b, "d").code, -ENOENT);
	bucket_folder(b, "d");
	assert_int_equal(bucket_list(b, "d").code, 0);
	assert_int_equal(bucket_list(b, "d").code, 0);
	bucket_domain(b, 1, "x.h5");
	assert_int_equal(bucket_list(b, "x.h5").code, -ENOTDIR);
}

static void estimates_come_from_the_summary(void **state)
{
	struct bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_put(
		b, "db/00000001-00000000/.info.json",
		"{\"lastModified\": 1, \"num_groups\": 1, \"num_datatypes\": 0, \"datasets\": {}, "
		"\"num_chunks\": 3, \"allocated_bytes\": 500000, \"metadata_bytes\": 1000, "
		"\"logical_bytes\": 1000000}");
	bucket_domain(b, 2, "y.h5");
	bucket_put(b, "db/00000002-00000000/.info.json", "damaged");
	bucket_open(b, 1, 0);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.size, 4096);
	assert_int_equal(engine_getattr(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.size, 1001000);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.size, 1001000);
	assert_int_equal(engine_getattr(b->engine, "y.h5", &st, NULL), 0);
	assert_true(st.size > 0 && st.size < 100000);
}

static void a_summary_that_could_not_be_read_is_asked_for_again(void **state)
{
	struct bucket *b = *state;
	struct engine_stat st;
	struct engine_options opt;
	bucket_domain(b, 1, "x.h5");
	bucket_put(
		b, "db/00000001-00000000/.info.json",
		"{\"lastModified\": 1, \"num_groups\": 1, \"num_datatypes\": 0, \"datasets\": {}, "
		"\"num_chunks\": 3, \"allocated_bytes\": 500000, \"metadata_bytes\": 1000, "
		"\"logical_bytes\": 1000000}");
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = 1000;
	opt.debug_fault = "fail:1:EIO@*/.info.json";
	bucket_open_as(b, opt);
	assert_int_equal(engine_getattr(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.size, 4096);
	assert_int_equal(engine_getattr(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.size, 1001000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_folder_shows_what_is_in_it),
		TEST(storage_and_documents_are_hidden),
		TEST(names_that_no_bucket_has_are_absent),
		TEST(a_domain_without_extension_gets_one),
		TEST(a_name_that_is_taken_grows_another_suffix),
		TEST(a_file_wins_over_what_is_below_it),
		TEST(a_broken_document_hides_nobody),
		TEST(leftovers_of_deleted_domains_are_not_shown),
		TEST(modes_follow_the_acls),
		TEST(names_that_are_believed_cost_nothing),
		TEST(nothing_is_believed_without_a_ttl),
		TEST(a_name_costs_the_same_whatever_it_is),
		TEST(a_name_that_is_known_is_asked_with_one_get),
		TEST(a_known_directory_is_listed_at_once),
		TEST(estimates_come_from_the_summary),
		TEST(a_summary_that_could_not_be_read_is_asked_for_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
