/* SPDX-License-Identifier: Apache-2.0 */
/* The local file of an import: what is accepted, its version, and reads of every length. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/mem.h>

#include "engine/import_file.h"

enum { SIZE = 200000, DIRECT = 16 << 10 /* DIRECT_MIN of import_file.c */ };

struct place {
	char dir[64], file[96], link[96], folder[96], none[96];
};

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static void write_file(const char *path, size_t n)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		assert_true(putc(byte_at(i), f) != EOF);
	assert_int_equal(fclose(f), 0);
}

static void set_time(const char *path, long ns)
{
	const struct timespec times[2] = {{.tv_sec = 1000000000, .tv_nsec = ns},
					  {.tv_sec = 1000000000, .tv_nsec = ns}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	strcpy(p->dir, "/tmp/import-file-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->file, sizeof(p->file), "%s/run.h5", p->dir);
	snprintf(p->link, sizeof(p->link), "%s/link.h5", p->dir);
	snprintf(p->folder, sizeof(p->folder), "%s/folder", p->dir);
	snprintf(p->none, sizeof(p->none), "%s/none", p->dir);
	write_file(p->file, SIZE);
	set_time(p->file, 1);
	assert_int_equal(symlink("run.h5", p->link), 0);
	assert_int_equal(mkdir(p->folder, 0755), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	unlink(p->file);
	unlink(p->link);
	rmdir(p->folder);
	rmdir(p->dir);
	free(p);
	return 0;
}

static void what_is_accepted(void **state)
{
	const struct place *p = *state;
	const struct {
		const char *path;
		int code;
		const char *error; /* a part of it */
	} cases[] = {
		{p->file, 0, NULL},
		{p->link, 0, NULL},
		{p->folder, -EINVAL, "folder is not a regular file"},
		{p->none, -ENOENT, "none: No such file or directory"},
		{"/dev/null", -EINVAL, "/dev/null is not a regular file"},
		{"-", -EINVAL, "standard input cannot be imported"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct import_source s;
		struct err err = ERR_INIT;
		assert_int_equal(import_source_init(&s, cases[i].path, &err), cases[i].code);
		if (cases[i].code) {
			assert_non_null(strstr(err.msg, cases[i].error));
		} else {
			auto_free char *real = realpath(p->file, NULL);
			assert_string_equal(s.path, real);
			assert_int_equal(s.size, SIZE);
			assert_int_equal(s.mtime_ns, INT64_C(1000000000000000001));
		}
		import_source_release(&s);
	}
}

static void reads_of_every_length(void **state)
{
	static const struct {
		uint64_t offset;
		size_t n;
		int code;
	} cases[] = {
		{0, 1, 0},	    {65530, 12, 0}, /* two pages */
		{1, DIRECT - 1, 0}, {65530, DIRECT, 0},	 {0, SIZE, 0},
		{SIZE - 1, 1, 0},   {SIZE - 1, 2, -EIO}, {SIZE - 1, DIRECT, -EIO},
	};
	const struct place *p = *state;
	struct import_source s;
	struct source *source;
	struct err err = ERR_INIT;
	assert_int_equal(import_source_init(&s, p->file, &err), 0);
	assert_int_equal(import_source_open(&s, &source, &err), 0);
	assert_int_equal(source->size, SIZE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free uint8_t *buf = malloc(cases[i].n);
		assert_non_null(buf);
		const int rc = source_read(source, cases[i].offset, buf, cases[i].n, &err);
		if (rc != cases[i].code)
			fail_msg("%zu: %d: %s", i, rc, err.msg);
		for (size_t k = 0; !rc && k < cases[i].n; k++)
			assert_int_equal(buf[k], byte_at(cases[i].offset + k));
	}
	import_source_release(&s);
}

/* Each change of the file is found before it is opened, and while it is open. */
static void a_file_that_changes(void **state)
{
	enum { TIME, LENGTH, GONE, CHANGES };
	static const int codes[CHANGES] = {-ESTALE, -ESTALE, -ENOENT};
	const struct place *p = *state;
	for (int change = 0; change < CHANGES; change++) {
		for (int open = 0; open < 2; open++) {
			struct import_source s;
			struct source *source;
			struct err err = ERR_INIT;
			write_file(p->file, SIZE);
			set_time(p->file, 1);
			assert_int_equal(import_source_init(&s, p->file, &err), 0);
			if (open)
				assert_int_equal(import_source_open(&s, &source, &err), 0);
			assert_int_equal(import_source_check(&s, &err), 0);
			if (change == GONE)
				unlink(p->file);
			if (change == LENGTH)
				assert_int_equal(truncate(p->file, SIZE - 1), 0);
			if (change != GONE)
				set_time(p->file, change == TIME ? 2 : 1);
			assert_int_equal(import_source_check(&s, &err), codes[change]);
			if (codes[change] == -ESTALE)
				assert_non_null(
					strstr(err.msg, "run.h5 has changed during the import"));
			if (!open)
				assert_int_equal(import_source_open(&s, &source, &err),
						 codes[change]);
			import_source_release(&s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_accepted, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_of_every_length, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_changes, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
