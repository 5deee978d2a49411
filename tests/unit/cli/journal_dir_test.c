/* SPDX-License-Identifier: Apache-2.0 */
/* The default directory for each kind of environment, and the directories that are made above one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/journal_dir.h"

static void test_default(void **state)
{
	static const struct {
		bool is_root;
		const char *state_home, *home, *expected;
	} cases[] = {
		{true, NULL, NULL, "/var/lib/hsmount"},
		{true, "/s", "/h", "/var/lib/hsmount"},
		{false, "/s", "/h", "/s/hsmount"},
		{false, "", "/h", "/h/.local/state/hsmount"},
		{false, "s", "/h", "/h/.local/state/hsmount"},
		{false, NULL, "/h", "/h/.local/state/hsmount"},
		{false, NULL, "h", "/passwd/.local/state/hsmount"},
		{false, NULL, "", "/passwd/.local/state/hsmount"},
		{false, NULL, NULL, "/passwd/.local/state/hsmount"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *path = journal_dir_for(cases[i].is_root, cases[i].state_home, cases[i].home,
					     "/passwd");
		assert_string_equal(path, cases[i].expected);
		free(path);
	}
	char *path = journal_dir_default();
	assert_int_equal(path[0], '/');
	free(path);
}

static void check_mode(const char *dir, const char *name, bool exists)
{
	char path[128];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(stat(path, &st) == 0, exists);
	if (exists)
		assert_int_equal(st.st_mode & 0777, 0700);
}

static void remove_in(const char *dir, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(remove(path), 0);
}

static void test_parents(void **state)
{
	char dir[] = "/tmp/journal_dir_test.XXXXXX", path[128];
	struct err err = ERR_INIT;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a//b/journal//", dir);
	for (int i = 0; i < 2; i++)
		assert_int_equal(journal_dir_make_parents(path, &err), 0);
	check_mode(dir, "a", true);
	check_mode(dir, "a/b", true);
	check_mode(dir, "a/b/journal", false);

	snprintf(path, sizeof(path), "%s/a/file", dir);
	fclose(fopen(path, "w"));
	snprintf(path, sizeof(path), "%s/a/file/b/journal", dir);
	assert_int_equal(journal_dir_make_parents(path, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "file/b: Not a directory"));
	remove_in(dir, "a/file");
	remove_in(dir, "a/b");
	remove_in(dir, "a");
	rmdir(dir);
	static const char *const without[] = {"", "/", "journal", "journal/", "/journal"};
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		assert_int_equal(journal_dir_make_parents(without[i], &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_parents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
