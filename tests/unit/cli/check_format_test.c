/* SPDX-License-Identifier: Apache-2.0 */
/* The output of hsimage check: lines for people, JSON, totals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/check_format.h"

static const struct engine_check_finding findings[] = {
	{ENGINE_CHECK_ERROR, "/u/a.h5", "/g/\033x", "db/1", "the \"text\"\n"},
	{ENGINE_CHECK_NOTE, "/u/a.h5", "", "", "more \xff"},
};
static const struct engine_check_result result = {
	.path = "/u/a.h5",
	.findings = {[ENGINE_CHECK_ERROR] = 1, [ENGINE_CHECK_NOTE] = 1},
	.objects = 2,
	.chunks = 3,
	.bytes = 4,
	.decoded = 5,
	.decoded_bytes = 6,
};

static void assert_output(bool json, const char *lines, const char *totals)
{
	auto_str struct str out = {0}, end = {0};
	struct check_format k = {.json = json};
	for (size_t i = 0; i < sizeof(findings) / sizeof(findings[0]); i++)
		check_format_finding(&k, &findings[i], &out);
	assert_true(check_format_is_sound(&k));
	check_format_result(&k, &result, &out);
	assert_false(check_format_is_sound(&k));
	check_format_totals(&k, &out); /* of a single domain: nothing */
	assert_string_equal(str_text(&out), lines);
	str_release(&out);
	check_format_result(&k, &(struct engine_check_result){.path = "/b"}, &out);
	check_format_totals(&k, &end);
	assert_string_equal(str_text(&end), totals);
	str_release(&k.findings);
}

static void text(void **state)
{
	assert_output(false,
		      "error: /u/a.h5: /g/\\x1bx: db/1: the \"text\"\\x0a\n"
		      "note: /u/a.h5: more \\xff\n"
		      "damaged: /u/a.h5: objects 2, chunks 3, decoded 5, errors 1, notes 1\n",
		      "domains 2, sound 1, damaged 1, unchecked 0, unfinished 0\n");
}

static void json(void **state)
{
	assert_output(true,
		      "{\"path\": \"/u/a.h5\", \"result\": \"damaged\", \"objects\": 2, "
		      "\"chunks\": 3, \"bytes\": 4, \"decoded\": 5, \"decoded_bytes\": 6, "
		      "\"errors\": 1, \"unchecked\": 0, \"unfinished\": 0, \"warnings\": 0, "
		      "\"notes\": 1, "
		      "\"omitted\": 0, \"findings\": [{\"severity\": \"error\", \"object\": "
		      "\"/g/\\u001bx\", \"key\": \"db/1\", \"text\": \"the \\\"text\\\"\\u000a\"}, "
		      "{\"severity\": \"note\", \"object\": \"\", \"key\": \"\", \"text\": \"more "
		      "\xef\xbf\xbd\"}]}\n",
		      "");
}

static void findings_belong_to_one_domain(void **state)
{
	auto_str struct str out = {0}, unused = {0};
	struct check_format k = {.json = true};
	check_format_finding(&k, &findings[0], &unused);
	check_format_result(&k, &result, &unused);
	check_format_result(&k, &(struct engine_check_result){.path = "/b"}, &out);
	assert_non_null(strstr(str_text(&out), "\"findings\": []}\n"));
	str_release(&k.findings);
}

static void totals_of_no_domain(void **state)
{
	auto_str struct str out = {0};
	const struct check_format k = {0};
	check_format_totals(&k, &out);
	assert_string_equal(str_text(&out),
			    "domains 0, sound 0, damaged 0, unchecked 0, unfinished 0\n");
	assert_true(check_format_is_sound(&k));
}

/* Only "sound" is success. */
static void outcomes_that_fail(void **state)
{
	for (int i = 0; i < ENGINE_CHECK_OUTCOMES; i++) {
		struct check_format k = {0};
		k.outcomes[ENGINE_CHECK_SOUND] = 1;
		k.outcomes[i]++;
		assert_int_equal(check_format_is_sound(&k), i == ENGINE_CHECK_SOUND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text),
		cmocka_unit_test(outcomes_that_fail),
		cmocka_unit_test(json),
		cmocka_unit_test(findings_belong_to_one_domain),
		cmocka_unit_test(totals_of_no_domain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
