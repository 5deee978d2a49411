/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a note. */
#include "store_fixture.h"

#include "s3/object_note.h"

static void test_codec(void **state)
{
	static const struct {
		const char *note, *value;
	} cases[] = {
		{"a-Z_0.~", "a-Z_0.~"},
		{"a b", "a%20b"},
		{"100 %", "100%20%25"},
		{"\xc3\xa9+", "%C3%A9%2B"},
		{"a/\"b\":,;", "a%2F%22b%22%3A%2C%3B"},
	};
	char value[S3_NOTE_VALUE], note[STORE_NOTE_MAX + 1];
	struct sigv4_pair header;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(s3_note_header(cases[i].note, value, &header), 1);
		assert_string_equal(header.name, "x-amz-meta-hsmount-kept");
		assert_ptr_equal(header.value, value);
		assert_string_equal(value, cases[i].value);
		assert_true(s3_note_read(value, note));
		assert_string_equal(note, cases[i].note);
	}
	assert_int_equal(s3_note_header(NULL, value, &header), 0);
}

/* The longest note, of which every byte is encoded, and one byte more. */
static void test_length(void **state)
{
	char value[S3_NOTE_VALUE + 3] = "", note[STORE_NOTE_MAX + 1], copy[STORE_NOTE_MAX + 1];
	struct sigv4_pair header;
	memset(note, '%', STORE_NOTE_MAX);
	note[STORE_NOTE_MAX] = '\0';
	s3_note_header(note, value, &header);
	assert_int_equal(strlen(value), S3_NOTE_VALUE - 1);
	assert_true(s3_note_read(value, copy));
	assert_string_equal(copy, note);
	strcat(value, "a");
	assert_false(s3_note_read(value, copy));
}

/* Another program may have stored anything. */
static void test_foreign(void **state)
{
	static const char *const bad[] = {"a b",      "a+b",	       "%",	"%4",  "%zz",
					  "%41",      "%c3%a9",	       "%00",	"%2",  "a,b",
					  "\xc3\xa9", "=?UTF-8?Q?a?=", "%2%35", "a\tb"};
	char note[STORE_NOTE_MAX + 1];
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (s3_note_read(bad[i], note))
			fail_msg("%s", bad[i]);
	/* It decodes, and is no valid note: store_answer_note(). */
	assert_true(s3_note_read("%0A%1B", note));
	assert_string_equal(note, "\n\x1b");
	assert_true(s3_note_read("", note));
	assert_string_equal(note, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codec),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_foreign),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
