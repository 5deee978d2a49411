/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes that cannot be listed: they hide no other entry, and a store that refuses every request
 * shows none. */
#include "bucket.h"

#include "engine/engine_internal.h"

#include <errno.h>

static void open_faulty(struct test_bucket *b, const char *fault, double ttl)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = ttl;
	opt.debug_fault = fault;
	engine_close(b->engine);
	bucket_open_as(b, opt);
}

static int lookup(struct test_bucket *b, const char *path)
{
	struct engine_stat st;
	const int rc = engine_lookup(b->engine, path, &st, NULL);
	return rc ? rc : (int)st.kind;
}

static int open_file(struct test_bucket *b, const char *path, struct err *err)
{
	struct engine_file *f = NULL;
	const int rc = engine_file_open(b->engine, path, &f, err);
	engine_file_close(f);
	return rc;
}

static void fill(struct test_bucket *b)
{
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/good.h5");
	bucket_domain(b, 2, "home/run");
	bucket_domain(b, 3, "home/run/part.h5");
	bucket_domain(b, 4, "home/shut.h5");
	bucket_domain(b, 5, "home/secret/x.h5");
	bucket_folder(b, "home/john.doe");
	bucket_put(b, "home/secrets.txt", "plain");
}

static void an_unlistable_prefix_hides_no_other(void **state)
{
	static const struct {
		const char *name;
		int code;
	} rows[] = {{"EACCES", -EACCES}, {"EIO", -EIO}, {"EPERM", -EPERM}};
	static const char *const absent[] = {"home/secret.h5", "home/secre", "home/other",
					     "home/other.h5", "home/john.doe.h5"};
	struct test_bucket *b = *state;
	fill(b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = rows[i].name;
		struct err err = ERR_INIT;
		char fault[256];
		snprintf(fault, sizeof(fault),
			 "fail:1+:%s@home/secret/*,fail:1+:%s@home/shut.h5/*,"
			 "fail:1+:%s@home/john.doe/*,fail:1+:%s@home/run/",
			 name, name, name, name);
		open_faulty(b, fault, 0);
		assert_string_equal(bucket_list(b, "home").text,
				    "good.h5 john.doe/ run/ run.h5 secret/ secrets.txt= shut.h5");
		assert_int_equal(lookup(b, "home/secret"), ENGINE_DIR);
		assert_int_equal(lookup(b, "home/john.doe"), ENGINE_DIR);
		assert_int_equal(lookup(b, "home/run"), ENGINE_DIR);
		assert_int_equal(lookup(b, "home/run.h5"), ENGINE_DOMAIN);
		assert_int_equal(lookup(b, "home/shut.h5"), ENGINE_DOMAIN);
		for (size_t k = 0; k < sizeof(absent) / sizeof(absent[0]); k++)
			if (lookup(b, absent[k]) != -ENOENT)
				fail_msg("%s: %s is there", name, absent[k]);
		assert_int_equal(bucket_list(b, "home/secret").code, rows[i].code);
		assert_int_equal(engine_check_dir(b->engine, "home/secret", &err), rows[i].code);
		assert_int_equal(engine_check_dir(b->engine, "home", &err), 0);
		assert_true(lookup(b, "home/secret/x.h5") < 0);
		assert_int_equal(open_file(b, "home/shut.h5", &err), rows[i].code);
		assert_non_null(strstr(err.msg, "home/shut.h5/.domain.json"));
		assert_int_equal(open_file(b, "home/run.h5", NULL), 0);
		assert_int_equal(open_file(b, "home/good.h5", NULL), 0);
	}
}

static void an_unreadable_document_is_a_file_that_cannot_be_opened(void **state)
{
	struct test_bucket *b = *state;
	struct err err = ERR_INIT;
	fill(b);
	bucket_domain(b, 6, "home/bare");
	bucket_domain(b, 7, "home/john.doe/y.h5");
	open_faulty(b,
		    "fail:1+:EACCES@home/shut.h5/.domain.json,"
		    "fail:1+:EACCES@home/bare/.domain.json,"
		    "fail:1+:EACCES@home/john.doe/.domain.json",
		    0);
	assert_string_equal(bucket_list(b, "home").text, "bare.h5 good.h5 john.doe/ run/ run.h5 "
							 "secret/ secrets.txt= shut.h5");
	assert_int_equal(lookup(b, "home/shut.h5"), ENGINE_DOMAIN);
	assert_int_equal(lookup(b, "home/bare.h5"), ENGINE_DOMAIN);
	assert_int_equal(lookup(b, "home/bare"), ENGINE_DOMAIN);
	assert_int_equal(lookup(b, "home/john.doe"), ENGINE_DIR);
	assert_string_equal(bucket_list(b, "home/john.doe").text, "y.h5");
	assert_int_equal(open_file(b, "home/shut.h5", &err), -EACCES);
	assert_int_equal(open_file(b, "home/bare.h5", &err), -EACCES);
}

/* A policy may deny all documents, whether they exist or not. */
static void refused_documents_make_no_names(void **state)
{
	static const char *const absent[] = {"home/none.h5",  "home/none", "home/none.h5.h5",
					     "none.h5",	      "none.d",	   "home/good",
					     "home/secret.h5"};
	struct test_bucket *b = *state;
	fill(b);
	bucket_put(b, "home/data.d/x", "");
	open_faulty(b, "fail:1+:EACCES@*.domain.json", 0);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (lookup(b, absent[i]) != -ENOENT)
			fail_msg("%s is there", absent[i]);
	assert_string_equal(bucket_list(b, "home").text, "data.d/ good.h5 john.doe run/ run.h5 "
							 "secret/ secrets.txt= shut.h5");
	assert_int_equal(lookup(b, "home/good.h5"), ENGINE_DOMAIN);
	assert_int_equal(lookup(b, "home/secrets.txt"), ENGINE_PLAIN);
}

/* A listing shows that a directory has no document, so its name is as valid as any other. */
static void a_directory_without_a_document_is_cached(void **state)
{
	struct test_bucket *b = *state;
	bucket_put(b, "home/data.d/x", "");
	bucket_put(b, "home/data.d/y", "");
	open_faulty(b, "fail:1+:EACCES@*.domain.json", 1000);
	assert_int_equal(lookup(b, "home/data.d"), ENGINE_DIR);
	const uint64_t requests = bucket_requests(b);
	assert_int_equal(lookup(b, "home/data.d"), ENGINE_DIR);
	assert_int_equal(bucket_requests(b), requests);
}

static void a_store_that_refuses_everything_shows_nothing(void **state)
{
	static const char *const names[] = {"home", "home/good.h5", "home/none", "home/none.h5",
					    "none.h5"};
	struct test_bucket *b = *state;
	fill(b);
	open_faulty(b, "fail:1+:EACCES", 0);
	assert_int_equal(bucket_list(b, "").code, -EACCES);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(lookup(b, names[i]), -EACCES);
}

/* The listing of the directory succeeds, and the requests after it fail: no half of it is shown. */
static void a_store_that_becomes_unreachable_fails_the_listing(void **state)
{
	static const struct {
		const char *fault;
		int code;
	} rows[] = {{"fail:2+:EIO", -EIO}, {"fail:2+:EACCES", -EACCES}};
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "good.h5");
	bucket_domain(b, 2, "run");
	bucket_put(b, "prefix/plain", "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_faulty(b, rows[i].fault, 0);
		const struct bucket_listing l = bucket_list(b, "");
		assert_int_equal(l.code, rows[i].code);
		assert_string_equal(l.text, "");
	}
}

/* A policy may allow the listing of "home/" and deny that of "home/secret". */
static void the_whole_directory_is_listed_if_a_part_is_denied(void **state)
{
	struct test_bucket *b = *state;
	fill(b);
	open_faulty(b, "fail:1+:EACCES@home/secret*,fail:1+:EACCES@home/none*", 0);
	assert_int_equal(lookup(b, "home/secret"), ENGINE_DIR);
	assert_int_equal(lookup(b, "home/none"), -ENOENT);
	assert_int_equal(lookup(b, "home/none.h5"), -ENOENT);
}

/* One more listing for all of them together; a look-up after the listing makes no request. */
static void unlistable_prefixes_cost_few_requests(void **state)
{
	struct test_bucket *b = *state;
	char path[64];
	for (unsigned int i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "%02u/x", i);
		bucket_put(b, path, "");
	}
	bucket_put(b, "open/x", "");
	open_faulty(b, "fail:1+:EACCES@[01][0-9]/*", 1000);
	bucket_list(b, "");
	const struct bucket_counts listed = bucket_counts(b);
	assert_int_equal(listed.lists, 1 + 21 + 1);
	assert_int_equal(listed.gets, 1 + 21);
	assert_int_equal(lookup(b, "00"), ENGINE_DIR);
	assert_int_equal(lookup(b, "19"), ENGINE_DIR);
	assert_int_equal(bucket_requests(b), listed.lists + listed.gets + listed.heads);
	/* When the directory is listed again, each of them is tried again. */
	bucket_list(b, "");
	assert_int_equal(bucket_counts(b).lists, listed.lists + 1 + 20 + 1);
}

/* When access is granted, the next listing shows it. */
static void an_unlistable_prefix_may_become_listable(void **state)
{
	struct test_bucket *b = *state;
	bucket_put(b, "secret/x", "");
	open_faulty(b, "fail:1:EACCES@secret/.domain.json,fail:1:EACCES@secret/", 1000);
	assert_string_equal(bucket_list(b, "").text, "secret/");
	assert_int_equal(engine_check_dir(b->engine, "secret", NULL), 0);
	assert_string_equal(bucket_list(b, "secret").text, "x=");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

struct clock {
	uint64_t ns, step; /* each reading advances it by a step */
};

static uint64_t read_clock(const struct env *env)
{
	struct clock *clock = env->ctx;
	return clock->ns += clock->step;
}

static void use_clock(struct test_bucket *b, struct clock *clock)
{
	b->engine->bucket.env.now = read_clock;
	b->engine->bucket.env.ctx = clock;
}

static uint64_t requests_of_lookup(struct test_bucket *b, const char *path, int code)
{
	const uint64_t before = bucket_requests(b);
	assert_int_equal(lookup(b, path), code);
	return bucket_requests(b) - before;
}

/* The kernel repeats a look-up that has failed if it knows the name. A program that looks up a name
 * on an unreachable server waits for one of the two. */
static void a_lookup_on_an_unreachable_server_blocks_only_once(void **state)
{
	const uint64_t second = 1000000000;
	struct clock clock = {.ns = second};
	struct test_bucket *b = *state;
	fill(b);
	open_faulty(b, "fail:4+:EIO@*", 0);
	use_clock(b, &clock);
	assert_int_equal(requests_of_lookup(b, "home", ENGINE_DIR), 3);
	/* A quick failure costs little: the repetition sends its requests again. */
	assert_int_equal(requests_of_lookup(b, "home", -EIO), 5);
	clock.step = 20 * second;
	assert_int_equal(requests_of_lookup(b, "home", -EIO), 1);
	clock.step = 0;
	assert_int_equal(requests_of_lookup(b, "home", -EIO), 0);
	assert_int_equal(requests_of_lookup(b, "top", -EIO), 4);
	clock.ns += second;
	assert_int_equal(requests_of_lookup(b, "home", -EIO), 5);
	/* A name that the kernel does not know: the slow requests are not repeated either. */
	clock.step = 20 * second;
	assert_int_equal(requests_of_lookup(b, "top", -EIO), 3);
}

/* The listing of the directory proves that the name exists, however slow the document was. */
static void a_slow_document_does_not_make_a_name_absent(void **state)
{
	struct clock clock = {.ns = 1000000000};
	struct test_bucket *b = *state;
	bucket_put(b, "e.h5/x", "");
	bucket_remove(b, "e.h5/x");
	open_faulty(b, "fail:1+:EACCES@e.h5/.domain.json", 0);
	use_clock(b, &clock);
	assert_int_equal(lookup(b, "e.h5"), ENGINE_DOMAIN);
	clock.step = UINT64_C(20000000000);
	assert_int_equal(lookup(b, "e.h5"), ENGINE_DOMAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_unlistable_prefix_hides_no_other),
		TEST(an_unreadable_document_is_a_file_that_cannot_be_opened),
		TEST(refused_documents_make_no_names),
		TEST(a_directory_without_a_document_is_cached),
		TEST(a_store_that_refuses_everything_shows_nothing),
		TEST(a_store_that_becomes_unreachable_fails_the_listing),
		TEST(the_whole_directory_is_listed_if_a_part_is_denied),
		TEST(unlistable_prefixes_cost_few_requests),
		TEST(an_unlistable_prefix_may_become_listable),
		TEST(a_lookup_on_an_unreachable_server_blocks_only_once),
		TEST(a_slow_document_does_not_make_a_name_absent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
