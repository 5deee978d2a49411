/* SPDX-License-Identifier: Apache-2.0 */
/* Valid and invalid notes, and foreign ones. */
#include "store_fixture.h"

#include <store/implement.h>

static void test_table(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} cases[] = {
		{"a", true},
		{" a b ", true},
		{"it is damaged: \\x00", true},
		{"\xc3\xa9", true},
		{"", false},
		{"a\nb", false},
		{"\x1b[2J", false},
		{"a\x7f", false},
		{"\xc2\x85", false},
		{"\xc3", false},
		{"a\xff", false},
		{"\xed\xa0\x80", false},
		{"\xc0\xaf", false},
		{"\xe2\x82\xac", true},
		{"\t", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(store_note_ok(cases[i].text), cases[i].ok);
}

static void test_length(void **state)
{
	char text[STORE_NOTE_MAX + 2];
	memset(text, 'x', sizeof(text));
	text[STORE_NOTE_MAX + 1] = '\0';
	assert_false(store_note_ok(text));
	text[STORE_NOTE_MAX] = '\0';
	assert_true(store_note_ok(text));
	memcpy(text + STORE_NOTE_MAX - 2, "\xc3\xa9", 2);
	assert_true(store_note_ok(text));
	memcpy(text + STORE_NOTE_MAX - 1, "\xc3", 1);
	assert_false(store_note_ok(text));
}

/* What is stored with an object may be anything. */
static void test_answers(void **state)
{
	static const char much[STORE_NOTE_MAX + 1] = {'x'};
	static const struct {
		const char *text;
		size_t n;
		const char *want;
	} cases[] = {
		{"good", 4, "good"},	  {"good", 2, "go"}, {"", 0, ""},
		{"a\0b", 3, ""},	  {"a\0", 2, ""},    {"a\nb", 3, ""},
		{much, sizeof(much), ""},
	};
	struct store_request *req = calloc(1, sizeof(*req));
	assert_non_null(req);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* Exactly its size, so that a sanitizer notices an overrun. */
		char *text = malloc(cases[i].n + 1);
		assert_non_null(text);
		memcpy(text + 1, cases[i].text, cases[i].n);
		req->answer.has_note = false;
		strcpy(req->answer.note, "old");
		store_answer_note(req, text + 1, cases[i].n);
		assert_true(req->answer.has_note);
		assert_string_equal(req->answer.note, cases[i].want);
		free(text);
	}
	store_result_drop(req);
	assert_false(req->answer.has_note);
	free(req);
}

static void test_marks(void **state)
{
	static const char much[] =
		"0123456789abcdefghijklmnopqrstuvwxyz-0123456789abcdefghijklmnopqr";
	static const struct {
		const char *text;
		size_t n;
		bool ok;
	} cases[] = {
		{"a-z-09", 6, true},
		{"-", 1, true},
		{much, STORE_MARK_MAX, true},
		{"", 0, false},
		{"A", 1, false},
		{"a b", 3, false},
		{"a\n", 2, false},
		{"a\0", 2, false},
		{"\xc3\xa9", 2, false},
		{much, STORE_MARK_MAX + 1, false},
	};
	struct store_request *req = calloc(1, sizeof(*req));
	(void)state;
	assert_non_null(req);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = malloc(cases[i].n + 1);
		assert_non_null(text);
		memcpy(text, cases[i].text, cases[i].n);
		text[cases[i].n] = '\0';
		if (strlen(text) == cases[i].n)
			assert_int_equal(store_mark_ok(text), cases[i].ok);
		strcpy(req->answer.mark, "old");
		store_answer_mark(req, text, cases[i].n);
		assert_true(req->answer.has_mark);
		assert_string_equal(req->answer.mark, cases[i].ok ? text : "");
		free(text);
	}
	store_result_drop(req);
	assert_false(req->answer.has_mark);
	free(req);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
