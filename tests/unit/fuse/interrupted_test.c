/* SPDX-License-Identifier: Apache-2.0 */
/* Who is told that nobody waits any more, by signals of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "interrupted.h"

static bool even_ones_end(pid_t thread)
{
	return thread % 2 == 0;
}

static bool none_ends(pid_t thread)
{
	return false;
}

static void count(void *arg)
{
	++*(unsigned int *)arg;
}

static int setup(void **state)
{
	*state = interrupted_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	interrupted_free(*state);
	return 0;
}

static void who_is_ended_is_told_once(void **state)
{
	struct interrupted *t = *state;
	unsigned int told[3] = {0};
	struct interrupted_request d[3];
	for (int i = 0; i < 3; i++) {
		d[i] = (struct interrupted_request){
			.thread = 11 + i, .cancel = count, .arg = &told[i]};
		interrupted_add(t, &d[i]);
	}
	assert_true(interrupted_look(t, none_ends));
	assert_int_equal(told[0] + told[1] + told[2], 0);
	assert_true(interrupted_look(t, even_ones_end));
	assert_true(interrupted_look(t, even_ones_end));
	assert_int_equal(told[0], 0);
	assert_int_equal(told[1], 1);
	assert_int_equal(told[2], 0);
	for (int i = 0; i < 3; i++)
		interrupted_remove(t, &d[i]);
	assert_false(interrupted_look(t, even_ones_end));
	assert_int_equal(told[0] + told[1] + told[2], 1);
}

static void what_is_removed_is_not_told(void **state)
{
	struct interrupted *t = *state;
	unsigned int told = 0;
	struct interrupted_request listed = {.thread = 2, .cancel = count, .arg = &told};
	struct interrupted_request never = {.thread = 4, .cancel = count, .arg = &told};
	interrupted_add(t, &listed);
	interrupted_remove(t, &listed);
	interrupted_remove(t, &never);
	assert_false(interrupted_look(t, even_ones_end));
	assert_int_equal(told, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_is_ended_is_told_once, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_removed_is_not_told, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
