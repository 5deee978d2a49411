/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of hsimage recover list. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/recover_format.h"

static const struct engine_draft_item known = {
	.id = "0123456789abcdef",
	.state = ENGINE_DRAFT_WAITING,
	.has_size = true,
	.size = 1234,
	.created_ns = INT64_C(1700000000123456000),
	.bucket = "/srv/b",
	.path = "home/\"a\033.h5",
	.why = "it waits",
};
static const struct engine_draft_item unknown = {
	.id = "0123456789abcdef",
	.state = ENGINE_DRAFT_UNREADABLE,
	.bucket = "",
	.path = "",
	.why = "damaged",
};

typedef void format_fn(const struct engine_draft_item *item, struct str *out);

static void check(format_fn *fn, const struct engine_draft_item *item, const char *expected)
{
	struct str out = {0};
	fn(item, &out);
	assert_string_equal(str_text(&out), expected);
	str_release(&out);
}

static void test_text(void **state)
{
	check(recover_format_text, &known,
	      "0123456789abcdef  waiting                     1234  2023-11-14 22:13  /srv/b  "
	      "home/\"a\\x1b.h5: it waits\n");
	check(recover_format_text, &unknown,
	      "0123456789abcdef  unreadable                     -                 -  -  -: "
	      "damaged\n");
}

static void test_json(void **state)
{
	check(recover_format_json, &known,
	      "{\"id\": \"0123456789abcdef\", \"state\": \"waiting\", \"size\": 1234, \"begun\": "
	      "\"2023-11-14T22:13:20.123456Z\", \"bucket\": \"/srv/b\", \"file\": "
	      "\"home/\\\"a\\u001b.h5\", \"changes_domain\": false, \"why\": \"it waits\"}\n");
	check(recover_format_json, &unknown,
	      "{\"id\": \"0123456789abcdef\", \"state\": \"unreadable\", \"size\": null, "
	      "\"begun\": "
	      "null, \"bucket\": \"\", \"file\": \"\", \"changes_domain\": false, \"why\": "
	      "\"damaged\"}\n");
}

static void delete_question(const struct engine_draft_item *item, struct str *out)
{
	recover_format_question(item, false, out);
}

static void commit_question(const struct engine_draft_item *item, struct str *out)
{
	recover_format_question(item, true, out);
}

static void test_question(void **state)
{
	struct engine_draft_item change = known;
	change.changes_domain = true;
	check(delete_question, &known,
	      "Delete draft 0123456789abcdef of home/\"a\\x1b.h5, 1234 bytes? [y/N] ");
	check(commit_question, &known,
	      "Commit draft 0123456789abcdef of home/\"a\\x1b.h5, 1234 bytes? [y/N] ");
	check(commit_question, &change,
	      "If the program had not finished, the data may be wrong, also if all structures of "
	      "the file can be read.\n"
	      "Commit draft 0123456789abcdef of home/\"a\\x1b.h5, 1234 bytes? [y/N] ");
	check(delete_question, &unknown, "Delete draft 0123456789abcdef? [y/N] ");
}

static void test_waits(void **state)
{
	for (int i = 0; i < ENGINE_DRAFT_STATES; i++) {
		const struct engine_draft_item item = {.state = (enum engine_draft_state)i};
		assert_int_equal(recover_format_waits(&item), i != ENGINE_DRAFT_IN_USE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
