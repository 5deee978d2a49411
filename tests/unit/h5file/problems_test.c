/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a file's problems keeps the first 1,000 and counts all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "h5file/problems.h"

static void keeps_the_first_and_counts_all(void **state)
{
	struct problems p = {0};
	struct arena *a = arena_new(1 << 20);
	assert_non_null(a);
	assert_null(problems_nth(&p, 0));
	for (uint32_t i = 0; i < PROBLEMS_KEPT + 5; i++) {
		struct err why = ERR_INIT;
		char path[32];
		snprintf(path, sizeof(path), "/g%u", i);
		err_set(&why, -5, "reason %u", i);
		problems_add(&p, a, H5FILE_DAMAGED, i, path, &why);
	}
	assert_int_equal(p.n, PROBLEMS_KEPT + 5);
	assert_string_equal(problems_nth(&p, 0)->path, "/g0");
	const struct h5file_problem *last = problems_nth(&p, PROBLEMS_KEPT - 1);
	assert_int_equal(last->object, PROBLEMS_KEPT - 1);
	assert_string_equal(last->text, "reason 999");
	assert_null(problems_nth(&p, PROBLEMS_KEPT));
	problems_release(&p);
	assert_int_equal(p.n, 0);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_the_first_and_counts_all)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
