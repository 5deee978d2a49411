/* SPDX-License-Identifier: Apache-2.0 */
/* Names and inode numbers of the directory of metrics. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuse/stats_files.h"
#include "fuse/inodes.h"

static void only_the_root_contains_the_directory(void **state)
{
	assert_true(stats_files_own(INODES_ROOT, STATS_DIR_NAME));
	assert_false(stats_files_own(INODES_ROOT, "stats"));
	assert_false(stats_files_own(INODES_ROOT, STATS_DIR_NAME "x"));
	assert_false(stats_files_own(INODES_ROOT + 1, STATS_DIR_NAME));
	assert_true(stats_files_own(STATS_DIR_INO, "anything"));
}

static void each_name_has_its_own_inode(void **state)
{
	struct engine_stat st;
	size_t n = 0;
	assert_int_equal(stats_files_look_up(INODES_ROOT, STATS_DIR_NAME), STATS_DIR_INO);
	for (const char *name; (name = stats_files_name(n)); n++) {
		uint64_t ino = stats_files_look_up(STATS_DIR_INO, name);
		assert_true(stats_files_has(ino) && ino != STATS_DIR_INO);
		for (size_t i = 0; i < n; i++)
			assert_true(ino != stats_files_look_up(STATS_DIR_INO, stats_files_name(i)));
		stats_files_stat(ino, 1000, 5, &st);
		assert_int_equal(st.kind, ENGINE_PLAIN);
		assert_int_equal(st.size, 1000);
		assert_int_equal(st.mode, 0444);
		assert_int_equal(stats_files_look_up(ino, name), 0); /* a file is not a directory */
	}
	assert_int_equal(n, 2);
	assert_int_equal(stats_files_look_up(STATS_DIR_INO, "nothing"), 0);
	assert_int_equal(stats_files_look_up(STATS_DIR_INO, ""), 0);
	stats_files_stat(STATS_DIR_INO, 0, 5, &st);
	assert_int_equal(st.kind, ENGINE_DIR);
	assert_int_equal(st.mode, 0555);
}

static void inode_numbers_do_not_collide_with_those_of_the_bucket(void **state)
{
	const struct engine_stat st = {.kind = ENGINE_PLAIN, .version = 1};
	struct inodes *t = inodes_new();
	struct inode_view view;
	assert_false(stats_files_has(inodes_look_up(t, "a", &st)));
	assert_int_equal(inodes_get(t, STATS_DIR_INO, &view), -ESTALE);
	inodes_forget(t, STATS_DIR_INO, 3); /* the kernel also sends this for these inodes */
	inodes_free(t);
}

static void the_texts_are_json_and_prometheus(void **state)
{
	char dir[] = "/tmp/control-test-XXXXXX";
	struct engine_options opt;
	struct engine *e = NULL;
	struct err err = ERR_INIT;
	char *text = NULL;
	size_t len = 0;
	assert_non_null(mkdtemp(dir));
	engine_options_init(&opt);
	opt.bucket = dir;
	opt.workers = 0;
	opt.allow_empty = true;
	assert_int_equal(engine_open(&opt, &e, &err), 0);
	assert_int_equal(
		stats_files_text(e, stats_files_look_up(STATS_DIR_INO, "stats"), &text, &len, &err),
		0);
	assert_true(text[0] == '{' && strlen(text) == len);
	free(text);
	assert_int_equal(stats_files_text(e, stats_files_look_up(STATS_DIR_INO, "metrics"), &text,
					  &len, &err),
			 0);
	assert_non_null(strstr(text, "# TYPE hsmount_"));
	free(text);
	assert_int_equal(stats_files_text(e, STATS_DIR_INO, &text, &len, &err), -EISDIR);
	assert_int_equal(stats_files_text(e, STATS_DIR_INO + 3, &text, &len, &err), -EISDIR);
	engine_close(e);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_root_contains_the_directory),
		cmocka_unit_test(each_name_has_its_own_inode),
		cmocka_unit_test(inode_numbers_do_not_collide_with_those_of_the_bucket),
		cmocka_unit_test(the_texts_are_json_and_prometheus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
