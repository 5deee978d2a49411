/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the versions of chunks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "update/update_internal.h"

static void the_last_version_counts(void **state)
{
	struct chunk_versions all = {.n = 0};
	chunk_versions_sort(&all);
	assert_null(chunk_versions_find(&all, 1));
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(chunk_versions_add(&all, (i * 37) % 50, i < 50 ? "old" : "new"),
				 0);
	chunk_versions_sort(&all);
	assert_int_equal(all.n, 50);
	for (uint64_t i = 0; i < 50; i++)
		assert_string_equal(chunk_versions_find(&all, i), "new");
	assert_null(chunk_versions_find(&all, 50));
	/* Later ones replace these. */
	assert_int_equal(chunk_versions_add(&all, 7, "newest"), 0);
	assert_int_equal(chunk_versions_add(&all, 70, ""), 0);
	chunk_versions_sort(&all);
	assert_int_equal(all.n, 51);
	assert_string_equal(chunk_versions_find(&all, 7), "newest");
	assert_string_equal(chunk_versions_find(&all, 6), "new");
	assert_string_equal(chunk_versions_find(&all, 70), "");
	free(all.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_version_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
