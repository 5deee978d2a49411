/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of changed bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "overlay/changes.h"

static void a_set_has_what_was_added(void **state)
{
	struct frames_memory memory = {.allowed = 1 << 20};
	struct changes *c = changes_begin(&memory, NULL);
	(void)state;
	assert_non_null(c);
	assert_int_equal(changes_next(c, 0, FRAMES_LIMIT), FRAMES_LIMIT);
	assert_int_equal(changes_add(c, 100, 200), 0);
	assert_int_equal(changes_next(c, 199, 300), 199);
	assert_int_equal(changes_next(c, 200, 300), 300);
	assert_int_equal(changes_next(c, 0, 100), 100);
	changes_free(c);
	assert_int_equal(memory.used, 0);
}

static void older_sets_count_until_they_are_freed(void **state)
{
	struct frames_memory memory = {.allowed = 1 << 20};
	struct changes *first = changes_begin(&memory, NULL);
	struct changes *second = changes_begin(&memory, first);
	(void)state;
	assert_int_equal(changes_add(first, 0, 10), 0);
	assert_int_equal(changes_add(second, 20, 30), 0);
	assert_int_equal(changes_next(second, 0, 10), 0);
	assert_int_equal(changes_next(second, 25, 26), 25);
	assert_int_equal(changes_next(second, 10, 20), 20);
	second->before = NULL;
	changes_free(first);
	assert_int_equal(changes_next(second, 0, 20), 20);
	changes_free(second);
	assert_int_equal(memory.used, 0);
}

static void nobody_asks_for_changes(void **state)
{
	(void)state;
	assert_int_equal(changes_add(NULL, 0, 10), 0);
	assert_int_equal(changes_next(NULL, 0, 10), 10);
	changes_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_has_what_was_added),
		cmocka_unit_test(older_sets_count_until_they_are_freed),
		cmocka_unit_test(nobody_asks_for_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
