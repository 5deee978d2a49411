/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows: what it holds, that it is always terminated, and that a failure sticks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <base/str.h>

static void an_empty_text_is_a_string(void **state)
{
	auto_str struct str s = {0};
	assert_true(str_ok(&s));
	assert_string_equal(str_text(&s), "");
	char *taken = str_take(&s);
	assert_string_equal(taken, "");
	free(taken);
}

static void text_is_appended(void **state)
{
	auto_str struct str s = {0};
	str_add(&s, "a");
	str_addn(&s, "bcd", 2);
	str_addf(&s, "%d%s", 12, "z");
	str_addn(&s, "", 0);
	assert_string_equal(str_text(&s), "abc12z");
	assert_int_equal(s.b.len, 6);
	for (int i = 0; i < 1000; i++)
		str_addf(&s, "%03d", i);
	assert_int_equal(s.b.len, 3006);
	assert_int_equal(strlen(str_text(&s)), 3006);
	assert_string_equal(str_text(&s) + 3003, "999");
}

static void what_is_taken_is_gone(void **state)
{
	auto_str struct str s = {0};
	str_add(&s, "first");
	char *taken = str_take(&s);
	assert_string_equal(taken, "first");
	free(taken);
	assert_string_equal(str_text(&s), "");
	str_add(&s, "second");
	assert_string_equal(str_text(&s), "second");
}

/* More than an address space; what follows does not help. */
static void a_failure_sticks(void **state)
{
	auto_str struct str s = {0};
	str_add(&s, "something");
	str_addn(&s, "x", SIZE_MAX - 1);
	assert_false(str_ok(&s));
	str_add(&s, "more");
	str_addf(&s, "%d", 1);
	assert_false(str_ok(&s));
	assert_string_equal(str_text(&s), "");
	assert_null(str_take(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_text_is_a_string),
		cmocka_unit_test(text_is_appended),
		cmocka_unit_test(what_is_taken_is_gone),
		cmocka_unit_test(a_failure_sticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
