/* SPDX-License-Identifier: Apache-2.0 */
/* A local file as a source: contents, its size, and files that are something else or shrink. */
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

#include <base/fd.h>
#include <base/source_file.h>

static int make(char *path, const void *bytes, size_t n)
{
	strcpy(path, "/tmp/hsmount-source-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	return fd;
}

static void reads_what_is_there(void **state)
{
	char path[64], got[8] = "";
	struct source_file *f = NULL;
	struct err err = ERR_INIT;
	auto_close int fd = make(path, "0123456789", 10);
	assert_int_equal(source_file_open(path, &f, &err), 0);
	struct source *s = source_file_source(f);
	assert_int_equal(s->size, 10);
	assert_int_equal(source_read(s, 3, got, 4, &err), 0);
	assert_string_equal(got, "3456");
	assert_int_equal(source_read(s, 8, got, 3, &err), -EIO);
	assert_int_equal(s->reads, 1);
	assert_int_equal(s->bytes, 4);
	source_file_close(f);
	unlink(path);
}

static void tells_a_file_that_became_shorter(void **state)
{
	char path[64], got[8];
	struct source_file *f = NULL;
	struct err err = ERR_INIT;
	auto_close int fd = make(path, "0123456789", 10);
	assert_int_equal(source_file_open(path, &f, &err), 0);
	assert_int_equal(ftruncate(fd, 5), 0);
	assert_int_equal(source_read(source_file_source(f), 3, got, 4, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "became shorter"));
	source_file_close(f);
	unlink(path);
}

static void refuses_other_things(void **state)
{
	char dir[] = "/tmp/hsmount-source-XXXXXX", fifo[64];
	struct source_file *f = NULL;
	struct err err = ERR_INIT;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(source_file_open(dir, &f, &err), -EISDIR);
	assert_non_null(strstr(err.msg, dir));
	assert_int_equal(source_file_open("/nonexistent/file", &f, &err), -ENOENT);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(source_file_open(fifo, &f, &err), -EINVAL);
	unlink(fifo);
	rmdir(dir);
	source_file_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_is_there),
		cmocka_unit_test(tells_a_file_that_became_shorter),
		cmocka_unit_test(refuses_other_things),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
