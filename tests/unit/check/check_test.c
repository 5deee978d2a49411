/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a bucket: which domains are checked, in which order, and what ends the check. */
#include "findings.h"

static void put_all(struct test_bucket *b)
{
	static const struct bucket_more more = {0};
	bucket_datasets(b, "b/x.h5", 1, 1, &more);
	bucket_domain(b, 2, "a.h5");
	bucket_domain(b, 3, "b/c/deep");
	bucket_domain(b, 4, "z.h5");
	bucket_put(b, "b/plain.txt", "text");
}

static void all_domains_below_a_directory(void **state)
{
	struct test_bucket *b = *state;
	put_all(b);
	bucket_open(b, 1000, 0);
	assert_check(b, "", false,
		     "= sound /a.h5\n= sound /b/c/deep.h5\n= sound /b/x.h5\n= sound /z.h5\n");
	assert_check(b, "b", true, "= sound /b/c/deep.h5\n= sound /b/x.h5\n");
	assert_check(b, "z.h5", false, "= sound /z.h5\n");
}

static void a_damaged_domain_does_not_end_the_check(void **state)
{
	struct test_bucket *b = *state;
	put_all(b);
	bucket_put(b, "b/x.h5/.domain.json", "[");
	bucket_open(b, 1000, 0);
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
	assert_non_null(
		strstr(str_text(&s.text), "error /b/x.h5  : the domain cannot be opened: "));
	assert_non_null(strstr(str_text(&s.text), "= damaged /b/x.h5\n= sound /z.h5\n"));
	str_release(&s.text);
}

struct removing {
	struct findings findings;
	struct test_bucket *bucket;
};

static int remove_others(void *arg, const struct engine_check_result *r)
{
	struct removing *s = arg;
	if (strcmp(r->path, "/a.h5") == 0) {
		bucket_remove(s->bucket, "z.h5/.domain.json");
		bucket_domain(s->bucket, 6, "y.h5");
		bucket_remove(s->bucket, "db/00000005-00000000/.group.json");
	}
	return findings_end(&s->findings, r);
}

/* A domain that was removed before its turn is left out, and of one that was replaced the new one
 * is checked. The storage that was left is reported: all names are read again at the end. */
static void domains_that_others_remove(void **state)
{
	struct removing s = {.bucket = *state};
	const struct engine_check_sink sink = {
		.finding = findings_add, .result = remove_others, .arg = &s};
	put_all(s.bucket);
	bucket_domain(s.bucket, 5, "y.h5");
	bucket_open(s.bucket, 1000, 0);
	assert_int_equal(engine_check(s.bucket->engine, "", false, &sink, NULL), 0);
	assert_non_null(
		strstr(str_text(&s.findings.text),
		       "= sound /a.h5\n= sound /b/c/deep.h5\n= sound /b/x.h5\n= sound /y.h5\n"
		       "note /  db/00000004-00000000/: no name leads to this storage"));
	str_release(&s.findings.text);
}

/* A storage without a name is a note, but not if a name could not be read. */
static void storages_without_a_name(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	put_all(b);
	bucket_put(b, "db/12345678-9abcdef0/.group.json", "{}");
	bucket_open(b, 0, 0);
	assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
	assert_non_null(strstr(
		str_text(&s.text),
		"= sound /a.h5\n= sound /b/c/deep.h5\n= sound /b/x.h5\n= sound /z.h5\n"
		"note /  db/12345678-9abcdef0/: no name leads to this storage: it is left "
		"over from a domain that was removed, or from a commit that has failed or is "
		"running. It has 1 objects of 2 bytes, the last of them put at "));
	str_release(&s.text);
	assert_check(b, "b", true, "= sound /b/c/deep.h5\n= sound /b/x.h5\n");
	bucket_put(b, "b/x.h5/.domain.json", "[");
	assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
	assert_null(strstr(str_text(&s.text), "no name leads"));
	assert_non_null(strstr(str_text(&s.text), "it is not known which storages are left over: "
						  "b/x.h5/.domain.json"));
	str_release(&s.text);
}

/* The domain `a` would be listed as `a.h5`, so no listing shows it. */
static void a_name_that_is_not_listed(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	put_all(b);
	bucket_domain(b, 7, "a");
	bucket_open(b, 0, 0);
	assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
	assert_non_null(strstr(str_text(&s.text), "= sound /a.h5\n"));
	assert_null(strstr(str_text(&s.text), "no name leads"));
	str_release(&s.text);
}

static void paths_that_cannot_be_checked(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	struct err err = ERR_INIT;
	put_all(b);
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_check(b->engine, "none", false, &sink, &err), -ENOENT);
	assert_int_equal(engine_check(b->engine, "b/plain.txt", false, &sink, &err), -EINVAL);
	assert_string_equal(err.msg, "b/plain.txt: neither a domain nor a directory");
	assert_int_equal(s.calls, 0);
}

static void requests_that_fail_are_no_damage(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	put_all(b);
	engine_options_init(&opt);
	opt.workers = 0;
	opt.debug_fault = "fail:1+@b/c/*,fail:1+@db/00000002-*";
	bucket_open_as(b, opt);
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), 0);
	assert_non_null(strstr(str_text(&s.text), "= unchecked /a.h5\n"));
	assert_non_null(strstr(str_text(&s.text), "= unchecked /b/c"));
	assert_non_null(strstr(str_text(&s.text), "= sound /b/x.h5\n= sound /z.h5\n"));
	assert_null(strstr(str_text(&s.text), "error"));
	str_release(&s.text);
}

static void the_sink_ends_the_check(void **state)
{
	struct test_bucket *b = *state;
	put_all(b);
	bucket_open(b, 1000, 0);
	for (unsigned int at = 1; at <= 4; at++) {
		struct findings s = {.stop_at = at};
		const struct engine_check_sink sink = findings_sink(&s);
		assert_int_equal(engine_check(b->engine, "", false, &sink, NULL), -EPIPE);
		assert_int_equal(s.calls, at);
		str_release(&s.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_domains_below_a_directory, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_damaged_domain_does_not_end_the_check,
						bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(domains_that_others_remove, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_name_that_is_not_listed, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(storages_without_a_name, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(paths_that_cannot_be_checked, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(requests_that_fail_are_no_damage, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(the_sink_ends_the_check, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
