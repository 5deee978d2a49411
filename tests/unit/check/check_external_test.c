/* SPDX-License-Identifier: Apache-2.0 */
/* External links: to domains that exist and that do not, and how often the bucket is asked. */
#include "findings.h"

#define LINK(name, domain)                                                                         \
	", \"" name "\": {\"class\": \"H5L_TYPE_EXTERNAL\", \"created\": 9, \"h5path\": \"/d\", "  \
	"\"h5domain\": \"" domain "\"}"

static void put_links(struct test_bucket *b, const char *links)
{
	const struct bucket_more more = {.links = links};
	bucket_datasets(b, "a/x.h5", 1, 1, &more);
	bucket_domain(b, 2, "a/y.h5");
	bucket_domain(b, 3, "bare");
	bucket_put(b, "a/plain.h5", "another file");
}

static void domains_that_exist(void **state)
{
	struct test_bucket *b = *state;
	put_links(b, LINK("1", "y.h5") LINK("2", "/a/y.h5") LINK("3", "hdf5://a/y.h5")
			     LINK("4", "/bare") LINK("5", "../bare.h5") LINK("6", "plain.h5")
				     LINK("7", "x.h5"));
	bucket_open(b, 1000, 0);
	assert_check(b, "a/x.h5", false, "= sound /a/x.h5\n");
}

static void domains_that_do_not_exist(void **state)
{
	struct test_bucket *b = *state;
	put_links(b, LINK("1", "z.h5") LINK("2", "/y.h5") LINK("3", "/a") LINK("4", "z.h5"));
	bucket_domain(b, 4, "a.h5/below");
	bucket_open(b, 1000, 0);
	assert_check(
		b, "a/x.h5", false,
		"note /a/x.h5 / : external link \"3\" leads to the domain \"/a\", which is a "
		"folder\n"
		"note /a/x.h5 / : external link \"2\" leads to the domain \"/y.h5\", which does "
		"not exist\n"
		"note /a/x.h5 / : external link \"1\" leads to the domain \"z.h5\", which does "
		"not exist\n"
		"note /a/x.h5 / : external link \"4\" leads to the domain \"z.h5\", which does "
		"not exist\n"
		"= sound /a/x.h5\n");
}

/* Requests of a check with these links. */
static uint64_t requests(struct test_bucket *b, const char *links)
{
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	put_links(b, links);
	bucket_open_cached(b, 0);
	assert_int_equal(engine_check(b->engine, "a/x.h5", false, &sink, NULL), 0);
	const uint64_t n = bucket_requests(b);
	str_release(&s.text);
	engine_close(b->engine);
	b->engine = NULL;
	return n;
}

static void each_domain_is_looked_up_once(void **state)
{
	struct test_bucket *b = *state;
	const uint64_t one = requests(b, LINK("1", "z.h5"));
	assert_int_equal(requests(b, LINK("1", "z.h5") LINK("2", "z.h5") LINK("3", "z.h5")), one);
	assert_true(requests(b, LINK("1", "z.h5") LINK("2", "zz.h5")) > one);
	assert_true(requests(b, "") < one);
}

static void a_look_up_that_fails(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	engine_options_init(&opt);
	opt.workers = 0;
	opt.debug_fault = "fail:1+@c/*";
	put_links(b, LINK("1", "/c/z.h5") LINK("2", "/c/z.h5"));
	bucket_open_as(b, opt);
	assert_int_equal(engine_check(b->engine, "a/x.h5", false, &sink, NULL), 0);
	assert_non_null(strstr(str_text(&s.text),
			       "unchecked /a/x.h5 / : the domain \"/c/z.h5\" of external links "
			       "cannot be looked up: "));
	assert_int_equal(s.last.findings[ENGINE_CHECK_UNCHECKED], 1);
	str_release(&s.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(domains_that_exist, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(domains_that_do_not_exist, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(each_domain_is_looked_up_once, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_look_up_that_fails, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
