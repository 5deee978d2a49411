/* SPDX-License-Identifier: Apache-2.0 */
/* Growable text: its contents, its terminating NUL, and that a failure is sticky. */
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

static void text_fits_into_the_room_or_not(void **state)
{
	enum { ROOM = 100 };
	char text[ROOM + 2];
	for (size_t n = ROOM - 2; n < sizeof(text); n++) {
		auto_str struct str s = {0};
		memset(text, 'x', n);
		text[n] = '\0';
		str_reserve(&s, ROOM);
		const void *before = s.b.data;
		assert_string_equal(str_text(&s), "");
		str_addf(&s, "%s", text);
		assert_string_equal(str_text(&s), text);
		assert_int_equal(s.b.len, n);
		if (n <= ROOM)
			assert_ptr_equal(s.b.data, before);
	}
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

static void json_strings_are_escaped(void **state)
{
	static const struct {
		const char *text, *json;
	} rows[] = {
		{"", "\"\""},
		{"plain \xe2\x82\xac", "\"plain \xe2\x82\xac\""},
		{"a\"b\\c\n\x01", "\"a\\\"b\\\\c\\u000a\\u0001\""},
		{"\xff"
		 "a\xc0",
		 "\"\xef\xbf\xbd"
		 "a\xef\xbf\xbd\""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_str struct str s = {0};
		str_add_json(&s, rows[i].text);
		assert_string_equal(str_text(&s), rows[i].json);
	}
}

static void foreign_text_is_made_printable(void **state)
{
	auto_str struct str s = {0};
	str_add(&s, "name: ");
	str_add_printable(&s, "a\x1b[\xff");
	str_add(&s, ".");
	assert_string_equal(str_text(&s), "name: a\\x1b[\\xff.");
}

static void times_have_six_digits(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {
		{0, "1970-01-01T00:00:00.000000Z"},
		{INT64_C(1700000000500000000), "2023-11-14T22:13:20.500000Z"},
		{-1, "1969-12-31T23:59:59.999999Z"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_str struct str s = {0};
		str_add_time(&s, rows[i].ns);
		assert_string_equal(str_text(&s), rows[i].text);
	}
}

static void a_text_is_cut(void **state)
{
	auto_str struct str s = {0};
	str_add(&s, "abcdef");
	str_cut(&s, 6);
	assert_string_equal(str_text(&s), "abcdef");
	str_cut(&s, 2);
	str_add(&s, "z");
	assert_string_equal(str_text(&s), "abz");
}

/* More than the address space; later additions do not help. */
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
		cmocka_unit_test(text_fits_into_the_room_or_not),
		cmocka_unit_test(what_is_taken_is_gone),
		cmocka_unit_test(json_strings_are_escaped),
		cmocka_unit_test(foreign_text_is_made_printable),
		cmocka_unit_test(times_have_six_digits),
		cmocka_unit_test(a_text_is_cut),
		cmocka_unit_test(a_failure_sticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
