/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a directory: what can be opened with openat2(2) and without it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/beneath.h>
#include <base/fd.h>

static char dir[64], root[80];

static void put_file(const char *path)
{
	char name[128];
	snprintf(name, sizeof(name), "%s/%s", dir, path);
	auto_close int fd = open(name, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
}

static void put_link(const char *to, const char *path)
{
	char name[128];
	snprintf(name, sizeof(name), "%s/%s", dir, path);
	assert_int_equal(symlink(to, name), 0);
}

static int setup(void **state)
{
	char below[96];
	strcpy(dir, "/tmp/beneath-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(below, sizeof(below), "%s/below", root);
	assert_int_equal(mkdir(root, 0700), 0);
	assert_int_equal(mkdir(below, 0700), 0);
	put_file("secret");
	put_file("root/file");
	put_file("root/below/file");
	put_link("below/file", "root/inside");
	put_link("../file", "root/below/up");
	put_link("below", "root/folder");
	put_link("../secret", "root/out");
	put_link("/etc/passwd", "root/absolute");
	put_link("loop", "root/loop");
	return 0;
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void opens_nothing_outside(void **state)
{
	static const struct {
		const char *path;
		int with, without; /* openat2(2): 0, or the code */
	} rows[] = {
		{"file", 0, 0},
		{"below/file", 0, 0},
		{"inside", 0, -ELOOP},
		{"below/up", 0, -ELOOP},
		{"folder/file", 0, -ENOTDIR},
		{"none", -ENOENT, -ENOENT},
		{"file/none", -ENOTDIR, -ENOTDIR},
		{"out", -EXDEV, -ELOOP},
		{"absolute", -EXDEV, -ELOOP},
		{"loop", -ELOOP, -ELOOP},
	};
	auto_close int at = open(root, O_PATH | O_DIRECTORY);
	const bool has = beneath_has_openat2(at);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int how = 0; how <= has; how++) {
			auto_close int fd = beneath_open(at, how, rows[i].path, O_RDONLY);
			const int code = how ? rows[i].with : rows[i].without;
			if (fd < 0 ? fd != code : code != 0)
				fail_msg("%s, %d: %d instead of %d", rows[i].path, how, fd, code);
		}
	}
}

/* Renames a file again and again, which disturbs every ".." that is resolved meanwhile. */
static void *rename_files(void *end)
{
	char a[128], b[128];
	snprintf(a, sizeof(a), "%s/renamed", dir);
	snprintf(b, sizeof(b), "%s/renamed2", dir);
	put_file("renamed");
	while (!atomic_load((atomic_bool *)end)) {
		rename(a, b);
		rename(b, a);
	}
	return NULL;
}

static void opens_while_files_are_renamed(void **state)
{
	enum { LINKS = 30, OPENS = 300 };
	atomic_bool end = false;
	pthread_t renames;
	auto_close int at = open(root, O_PATH | O_DIRECTORY);
	if (!beneath_has_openat2(at))
		skip();
	put_link("file", "root/link0");
	for (int i = 1; i <= LINKS; i++) {
		char name[32], to[32];
		snprintf(name, sizeof(name), "root/link%d", i);
		snprintf(to, sizeof(to), "below/../link%d", i - 1);
		put_link(to, name);
	}
	assert_int_equal(pthread_create(&renames, NULL, rename_files, &end), 0);
	int failed = 0;
	for (int i = 0; i < OPENS; i++) {
		auto_close int fd = beneath_open(at, true, "link30", O_RDONLY);
		failed += fd < 0;
	}
	atomic_store(&end, true);
	pthread_join(renames, NULL);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_nothing_outside),
		cmocka_unit_test(opens_while_files_are_renamed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
