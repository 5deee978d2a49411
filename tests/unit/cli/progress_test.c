/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the progress line: numbers, time that is left, and width. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/progress.h"

#define MB UINT64_C(1000000)

static void the_line_shows_how_far_it_is(void **state)
{
	static const struct {
		uint64_t done, total, ms;
		unsigned int columns;
		const char *text;
	} rows[] = {
		{0, 0, 0, 79, "opening the file"},
		{0, 0, 0, 7, "opening"},
		{0, 100 * MB, 0, 40, "[                    ]   0%  0 of 100 MB"},
		/* No rate and no time from the first moments. */
		{1 * MB, 100 * MB, 499, 30, "[          ]   1%  1 of 100 MB"},
		{25 * MB, 100 * MB, 10000, 100,
		 "[==========                              ]  25%  25 of 100 MB  2 MB/s  0:31 "
		 "left"},
		{25 * MB, 100 * MB, 10000, 60,
		 "[=====               ]  25%  25 of 100 MB  2 MB/s  0:31 left"},
		/* No room for a bar. */
		{25 * MB, 100 * MB, 10000, 50,
		 "[==        ]  25%  25 of 100 MB  2 MB/s  0:31 left"},
		{25 * MB, 100 * MB, 10000, 10, " 25%  25 o"},
		{1 * MB, 5000 * MB, 1000, 50, "  0%  1 of 5000 MB  1 MB/s  1:23:20 left"},
		/* 100 % only when all is done; then the time that it took. */
		{999999999, 1000 * MB, 1000, 50, " 99%  999 of 1000 MB  999 MB/s  0:01 left"},
		{1000 * MB, 1000 * MB, 61000, 50,
		 "[========] 100%  1000 of 1000 MB  16 MB/s  in 1:01"},
		{5 * MB, 4 * MB, 0, 50, "[===============] 100%  4 of 4 MB  0 MB/s  in 0:00"},
		{1, 2, 100, 20, " 50%  0 of 1 MB"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[PROGRESS_COLUMNS_MAX + 1];
		progress_format(line, rows[i].columns, rows[i].done, rows[i].total, rows[i].ms);
		assert_string_equal(line, rows[i].text);
	}
}

static void the_line_never_exceeds_the_terminal(void **state)
{
	char line[PROGRESS_COLUMNS_MAX + 1];
	for (unsigned int columns = 0; columns < 300; columns++) {
		for (uint64_t done = 0; done <= 20 * MB; done += 4 * MB) {
			progress_format(line, columns, done, 20 * MB, 3600 * 1000);
			assert_true(strlen(line) <= columns);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_shows_how_far_it_is),
		cmocka_unit_test(the_line_never_exceeds_the_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
