/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the store fails, each in turn: no entry disappears, no look-up of an existing name
 * says that there is no such file, and each error has a reason. */
#include "bucket.h"

#include <errno.h>

#include "engine/engine_internal.h"

static void fill(struct test_bucket *b)
{
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/good.h5");
	bucket_domain(b, 2, "home/run");
	bucket_domain(b, 3, "home/run/part.h5");
	bucket_domain(b, 4, "home/alone");
	bucket_put(b, "home/prefix/x", "");
	bucket_put(b, "home/notes.txt", "plain");
	bucket_put(b, "home/broken.h5/.domain.json", "{");
}

static void open_faulty(struct test_bucket *b, unsigned int n)
{
	struct engine_options opt;
	char spec[32];
	snprintf(spec, sizeof(spec), "fail:%u:EIO", n);
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = 0;
	opt.debug_fault = spec;
	engine_close(b->engine);
	bucket_open_as(b, opt);
}

static bool has_entry(const struct bucket_listing *l, const char *name)
{
	char copy[sizeof(l->text)], *rest = copy;
	strcpy(copy, l->text);
	for (char *entry; (entry = strsep(&rest, " "));) {
		entry[strcspn(entry, "=/")] = '\0';
		if (strcmp(entry, name) == 0)
			return true;
	}
	return false;
}

static void no_entry_disappears(void **state)
{
	static const char *const names[] = {"good.h5", "run",	    "run.h5",	"alone.h5",
					    "prefix",  "notes.txt", "broken.h5"};
	struct test_bucket *b = *state;
	unsigned int failed = 0;
	fill(b);
	open_faulty(b, 1000);
	bucket_list(b, "home");
	const uint64_t requests = bucket_requests(b);
	for (unsigned int n = 1; n <= requests; n++) {
		struct err err = ERR_INIT;
		struct bucket_listing l = {.text = ""};
		open_faulty(b, n);
		l.code = engine_list(b->engine, "home", bucket_list_one, &l, &err);
		if (l.code) {
			failed++;
			if (l.code != -EIO || !strstr(err.msg, "injected failure"))
				fail_msg("request %u: %d: %s", n, l.code, err.msg);
			continue;
		}
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (!has_entry(&l, names[i]))
				fail_msg("request %u: no %s in %s", n, names[i], l.text);
	}
	/* At least the request for the listing itself fails. */
	assert_true(failed > 0);
}

/* Each request of a look-up fails. code: without a failure. */
static unsigned int failures_of(struct test_bucket *b, const char *path, int code)
{
	struct engine_stat st;
	unsigned int failed = 0;
	open_faulty(b, 1000);
	assert_int_equal(engine_lookup(b->engine, path, &st, NULL), code);
	const uint64_t requests = bucket_requests(b);
	for (unsigned int n = 1; n <= requests; n++) {
		struct err err = ERR_INIT;
		open_faulty(b, n);
		const int rc = engine_lookup(b->engine, path, &st, &err);
		if (rc == code)
			continue;
		failed++;
		if (rc != -EIO || !strstr(err.msg, "injected failure"))
			fail_msg("%s, request %u: %d: %s", path, n, rc, err.msg);
		/* The next look-up sends its requests again. */
		assert_int_equal(engine_lookup(b->engine, path, &st, NULL), code);
	}
	return failed;
}

static void a_lookup_that_fails_does_not_say_that_there_is_no_file(void **state)
{
	static const struct {
		const char *path;
		int code;
		bool may_fail; /* an object of this name would be shown first */
	} rows[] = {
		{"home", 0, false},	      {"home/good.h5", 0, false},
		{"home/run.h5", 0, true},     {"home/run", 0, false},
		{"home/alone.h5", 0, true},   {"home/notes.txt", 0, true},
		{"home/broken.h5", 0, false}, {"home/none.h5", -ENOENT, true},
	};
	struct test_bucket *b = *state;
	fill(b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const unsigned int failed = failures_of(b, rows[i].path, rows[i].code);
		if ((failed > 0) != rows[i].may_fail)
			fail_msg("%s: %u failures", rows[i].path, failed);
	}
}

/* Otherwise a program would make a domain that no listing shows. */
static void a_name_that_is_taken_is_not_free_after_a_failure(void **state)
{
	struct test_bucket *b = *state;
	unsigned int failed = 0;
	char shown[STORE_KEY_MAX + 1];
	fill(b);
	bucket_put(b, "home/new.h5", "plain");
	for (unsigned int n = 1; n < 20; n++) {
		auto_names_node struct names_node *taken = NULL;
		struct err err = ERR_INIT;
		open_faulty(b, n);
		const int rc = names_check_shown(b->engine->bucket.names, ".h5", "home/new", shown,
						 &taken, &err);
		if (rc == NAMES_SHOWN_TAKEN)
			continue;
		failed++;
		if (rc != -EIO || !strstr(err.msg, "injected failure"))
			fail_msg("request %u: %d: %s", n, rc, err.msg);
	}
	assert_true(failed > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_entry_disappears),
		TEST(a_lookup_that_fails_does_not_say_that_there_is_no_file),
		TEST(a_name_that_is_taken_is_not_free_after_a_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
