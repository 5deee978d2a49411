/* SPDX-License-Identifier: Apache-2.0 */
/* Records of unfinished imports: of a domain that exists, of one that does not, and damaged ones.
 */
#include "findings.h"

#include <schema/schema.h>
#include <bucket/schemas.h>
#include "storages.h"

/* Stores the record of an import to a path; damaged: cut in the middle. Returns its key. */
static const char *put_record(struct test_bucket *b, const char *path, bool damaged)
{
	static char key[64];
	const struct schema_ops *schema = schema_all()[0];
	const struct schema_import record = {
		.storage = storage_nth(7), .path = path, .file = "/data/run.h5"};
	struct bytes text = {0};
	assert_int_equal(schema->writer->import_emit(&record, &text, NULL), 0);
	assert_int_equal(bytes_append(&text, "", 1), 0);
	if (damaged)
		text.data[text.len / 2] = '\0';
	assert_true(schema->writer->import_key(path, key, sizeof(key)) > 0);
	assert_int_equal(
		strncmp(key, schema->writer->import_prefix, strlen(schema->writer->import_prefix)),
		0);
	bucket_put(b, key, (char *)text.data);
	bytes_release(&text);
	return key;
}

static void expect(char *text, size_t room, const char *severity, const char *path, const char *key,
		   const char *finding, const char *outcome)
{
	const size_t n = strlen(text);
	snprintf(text + n, room - n, "%s %s  %s: %s\n= %s %s\n", severity, path, key, finding,
		 outcome, path);
}

#define NO_DOMAIN "there is no domain yet: the import of /data/run.h5 is not finished"

static void imports_without_a_domain(void **state)
{
	struct test_bucket *b = *state;
	char new[256] = "", bare[256] = "", all[1024];
	bucket_domain(b, 1, "x.h5");
	bucket_folder(b, "a");
	expect(new, sizeof(new), "unfinished", "/a/new.h5", put_record(b, "a/new.h5", false),
	       NO_DOMAIN, "unfinished");
	expect(bare, sizeof(bare), "unfinished", "/bare", put_record(b, "bare", false), NO_DOMAIN,
	       "unfinished");
	bucket_open(b, 1000, 0);
	assert_check(b, "a", false, new);
	assert_check(b, "a/new.h5", false, new);
	struct findings none = {0};
	const struct engine_check_sink unused = findings_sink(&none);
	assert_int_equal(engine_check(b->engine, "a/other.h5", false, &unused, NULL), -ENOENT);
	assert_int_equal(none.calls, 0);
	/* A result that cannot be passed on ends the check. */
	for (unsigned int i = 1; i <= 2; i++) {
		struct findings stopped = {.stop_at = i};
		const struct engine_check_sink stops = findings_sink(&stopped);
		assert_int_equal(engine_check(b->engine, "a/new.h5", false, &stops, NULL), -EPIPE);
		str_release(&stopped.text);
	}
	/* The records are in the order of their keys. */
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
	snprintf(all, sizeof(all), "= sound /x.h5\n%s", str_text(&s.text) + 14);
	assert_string_equal(str_text(&s.text), all);
	assert_non_null(strstr(all, new));
	assert_non_null(strstr(all, bare));
	assert_int_equal(s.calls, 5);
	str_release(&s.text);
}

static void imports_of_domains_that_are_shown(void **state)
{
	static const char *const paths[] = {"x.h5", "bare"};
	struct test_bucket *b = *state;
	for (unsigned int i = 0; i < 2; i++) {
		char text[256], shown[32];
		bucket_domain(b, 1, paths[i]); /* the storage stays */
		const char *key = put_record(b, paths[i], false);
		snprintf(shown, sizeof(shown), "/%s%s", paths[i], i ? ".h5" : "");
		text[0] = '\0';
		expect(text, sizeof(text), "unfinished", shown, key,
		       "an import that is to replace the domain is not finished", "unfinished");
		bucket_open(b, 1000, 0);
		assert_check(b, "", false, text);
		engine_close(b->engine);
		bucket_remove(b, key);
		snprintf(text, sizeof(text), "%s/.domain.json", paths[i]);
		bucket_remove(b, text);
	}
	bucket_open(b, 1000, 0);
}

static void a_damaged_record(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "a/x.h5");
	const char *key = put_record(b, "a/new.h5", true);
	bucket_open(b, 1000, 0);
	assert_check(b, "a", false, "= sound /a/x.h5\n");
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	char start[128];
	snprintf(start, sizeof(start), "= sound /a/x.h5\nerror /  %s: record of an import: ", key);
	assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
	assert_memory_equal(str_text(&s.text), start, strlen(start));
	assert_non_null(strstr(str_text(&s.text), "\n= damaged /\n"));
	str_release(&s.text);
}

static void records_that_cannot_be_read(void **state)
{
	static const struct {
		const char *fault, *key, *finding;
	} cases[] = {
		{"fail:1+@db/.import-", "db/.import-", "records of imports cannot be listed"},
		{"fail:1+@db/.import-?*", NULL, "the record of an import cannot be read"},
		{"fail:1+@a/new.h5*", NULL, "the domain of an import cannot be looked up"},
	};
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	const char *key = put_record(b, "a/new.h5", false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct engine_options opt;
		struct findings s = {0};
		const struct engine_check_sink sink = findings_sink(&s);
		char text[256];
		engine_options_init(&opt);
		opt.workers = 0;
		opt.debug_fault = cases[i].fault;
		bucket_open_as(b, opt);
		snprintf(text, sizeof(text), "%s: %s: ", cases[i].key ? cases[i].key : key,
			 cases[i].finding);
		assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
		if (!strstr(str_text(&s.text), text))
			fail_msg("%zu: %s", i, str_text(&s.text));
		assert_int_equal(s.last.findings[ENGINE_CHECK_UNCHECKED], 1);
		str_release(&s.text);
		engine_close(b->engine);
		b->engine = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(imports_without_a_domain, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(imports_of_domains_that_are_shown, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_damaged_record, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(records_that_cannot_be_read, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
