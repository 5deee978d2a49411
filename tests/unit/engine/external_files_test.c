/* SPDX-License-Identifier: Apache-2.0 */
/* External files of an import: which names are found, and files that change. */
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

#include "engine/external_files.h"

struct place {
	char dir[64], file[96];
	struct external_files *x;
};

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	strcpy(p->dir, "/tmp/external-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->file, sizeof(p->file), "%s/raw", p->dir);
	write_file(p->file, "0123456789");
	assert_int_equal(external_files_new(p->dir, &p->x, NULL), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	external_files_free(p->x);
	unlink(p->file);
	rmdir(p->dir);
	free(p);
	return 0;
}

static int open_name(const struct place *p, const char *name, struct source **out, struct err *err)
{
	const struct h5file_external *access = external_files_access(p->x);
	return access->open(access->ctx, name, out, err);
}

static void names(void **state)
{
	struct place *p = *state;
	struct source *a = NULL, *b = NULL;
	char text[5] = "";
	assert_int_equal(open_name(p, "raw", &a, NULL), 0);
	assert_int_equal(open_name(p, p->file, &b, NULL), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(a->size, 10);
	assert_int_equal(source_read(a, 6, text, 4, NULL), 0);
	assert_string_equal(text, "6789");
	assert_int_equal(source_read(a, 7, text, 4, NULL), -EIO);
	char beside[128];
	snprintf(beside, sizeof(beside), "%s2/raw", p->dir);
	const char *const refused[] = {
		"",	"..",	".",	"../raw", "x/../raw", "/etc/passwd", "/",  p->dir,
		beside, "none", "raw/", "raw/x",  "x/..",     "raw/..",	     "//", "/tmp/../etc"};
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct err err = ERR_INIT;
		if (open_name(p, refused[i], &b, &err) != -EOPNOTSUPP)
			fail_msg("%s: %s", refused[i], err.msg);
		assert_non_null(strstr(err.msg, refused[i]));
	}
}

static void a_file_that_changes(void **state)
{
	struct place *p = *state;
	struct source *s = NULL;
	char text[4];
	assert_int_equal(open_name(p, "raw", &s, NULL), 0);
	assert_int_equal(external_files_check(p->x, NULL), 0);
	write_file(p->file, "another text");
	assert_int_equal(external_files_check(p->x, NULL), -ESTALE);
	assert_int_equal(source_read(s, 0, text, 4, NULL), -ESTALE);
	unlink(p->file);
	assert_int_equal(external_files_check(p->x, NULL), -ESTALE);
	assert_int_equal(source_read(s, 0, text, 4, NULL), -ESTALE);
}

static void no_directory(void **state)
{
	struct place *p = *state;
	struct external_files *x = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(external_files_new(p->file, &x, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, p->file));
	assert_int_equal(external_files_new("/none", &x, NULL), -ENOENT);
	assert_null(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(no_directory, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
