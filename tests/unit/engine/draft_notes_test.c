/* SPDX-License-Identifier: Apache-2.0 */
/* The table of reasons: what it forgets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <engine/draft_notes.h>

static void check(struct draft_notes *n, const char *name, const char *expected)
{
	char *text = draft_notes_get(n, name);
	if (expected)
		assert_string_equal(text, expected);
	else
		assert_null(text);
	free(text);
}

static void notes_are_replaced_moved_and_removed(void **state)
{
	struct draft_notes *n = draft_notes_new();
	draft_notes_set(n, "a", "one");
	draft_notes_set(n, "b", "two");
	draft_notes_set(n, "a", "three");
	check(n, "a", "three");
	draft_notes_move(n, "a", "b");
	check(n, "a", NULL);
	check(n, "b", "three");
	draft_notes_move(n, "none", "b");
	check(n, "b", NULL);
	draft_notes_set(n, "c", "four");
	draft_notes_set(n, "c", NULL);
	check(n, "c", NULL);
	draft_notes_free(n);
	draft_notes_free(NULL);
}

static void the_oldest_are_forgotten(void **state)
{
	struct draft_notes *n = draft_notes_new();
	char name[32];
	for (int i = 0; i < DRAFT_NOTES + 3; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		draft_notes_set(n, name, "text");
	}
	check(n, "name 2", NULL);
	check(n, "name 3", "text");
	check(n, name, "text");
	draft_notes_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes_are_replaced_moved_and_removed),
		cmocka_unit_test(the_oldest_are_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
