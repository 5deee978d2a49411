/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: the limits of each row of RFC 3629's table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <base/utf8.h>

static void lengths(void **state)
{
	static const struct {
		const char *name, *s;
		size_t n, length;
	} rows[] = {
		{"nothing", "", 0, 0},
		{"NUL", "\0", 1, 1},
		{"U+7F", "\x7f", 1, 1},
		{"U+80", "\xc2\x80", 2, 2},
		{"U+7FF", "\xdf\xbf", 2, 2},
		{"U+800", "\xe0\xa0\x80", 3, 3},
		{"U+D7FF", "\xed\x9f\xbf", 3, 3},
		{"U+E000", "\xee\x80\x80", 3, 3},
		{"U+FFFF", "\xef\xbf\xbf", 3, 3},
		{"U+10000", "\xf0\x90\x80\x80", 4, 4},
		{"U+10FFFF", "\xf4\x8f\xbf\xbf", 4, 4},
		{"continuation alone", "\x80", 1, 0},
		{"overlong 2", "\xc1\xbf", 2, 0},
		{"overlong 3", "\xe0\x9f\xbf", 3, 0},
		{"overlong 4", "\xf0\x8f\xbf\xbf", 4, 0},
		{"surrogate", "\xed\xa0\x80", 3, 0},
		{"over U+10FFFF", "\xf4\x90\x80\x80", 4, 0},
		{"F5", "\xf5\x80\x80\x80", 4, 0},
		{"third byte bad", "\xe2\x82\x20", 3, 0},
		{"fourth byte bad", "\xf0\x9f\x8c\xc0", 4, 0},
		{"cut", "\xf0\x9f\x8c\x8d", 3, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t got = utf8_length(rows[i].s, rows[i].n);
		if (got != rows[i].length)
			fail_msg("%s: length %zu, not %zu", rows[i].name, got, rows[i].length);
		assert_int_equal(utf8_valid(rows[i].s, rows[i].n), rows[i].n == rows[i].length);
	}
}

static void texts(void **state)
{
	assert_true(utf8_valid("Gr\xc3\xb6\xc3\x9f"
			       "e\0x",
			       9));
	assert_false(utf8_valid("Gr\xf6\xdf"
				"e",
				5));
	assert_false(utf8_valid("ends in \xc3", 9));
}

static void characters_of_xml(void **state)
{
	static const struct {
		const char *s;
		bool has;
	} rows[] = {
		{"", true},
		{" a\t\n\r~\x7f", true},
		{"\x08", false},
		{"a\x0b", false},
		{"a\x1f/b", false},
		{"\xc2\x80", true},
		{"\xee\xbf\xbe\xee\xbf\xbf", true},
		{"\xef\xbf\xbd", true},
		{"x\xef\xbf\xbe", false},
		{"x\xef\xbf\xbf", false},
		{"\xf0\x9f\xbf\xbf", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (utf8_in_xml(rows[i].s) != rows[i].has)
			fail_msg("row %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(texts),
		cmocka_unit_test(characters_of_xml),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
