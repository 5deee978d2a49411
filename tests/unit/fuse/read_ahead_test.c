/* SPDX-License-Identifier: Apache-2.0 */
/* The read-ahead of a mount, with a file in place of the setting in sysfs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuse/read_ahead.h"

static void make(struct read_ahead *r, const char *path)
{
	*r = (struct read_ahead){.is_known = true, .kb = 128};
	strcpy(r->path, path);
	pthread_mutex_init(&r->lock, NULL);
}

static void the_value_in_effect_is_the_one_that_was_set(void **state)
{
	static const unsigned int values[] = {64, 64, 2048};
	char path[] = "/tmp/read_ahead_test.XXXXXX", text[16] = "";
	struct read_ahead r;
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	make(&r, path);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(read_ahead_set(&r, "/", values[i]), values[i]);
		assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
		assert_int_equal(strtoul(text, NULL, 10), values[i]);
	}
	close(fd);
	unlink(path);
	pthread_mutex_destroy(&r.lock);
}

/* Without permission, or if the kernel refuses the value, the old one stays in effect. */
static void a_value_that_is_refused_is_not_in_effect(void **state)
{
	static const char *const paths[] = {"/nonexistent/read_ahead_kb", "/dev/full"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct read_ahead r;
		make(&r, paths[i]);
		assert_int_equal(read_ahead_set(&r, "/", 64), 128);
		assert_int_equal(read_ahead_set(&r, "/", 2048), 128);
		pthread_mutex_destroy(&r.lock);
	}
}

/* This is no mount point, so nothing can be set. */
static void the_default_of_the_kernel_is_in_effect(void **state)
{
	struct read_ahead r = {.is_known = false};
	pthread_mutex_init(&r.lock, NULL);
	assert_int_equal(read_ahead_set(&r, "/no/such/mount", 64), 128);
	pthread_mutex_destroy(&r.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_value_in_effect_is_the_one_that_was_set),
		cmocka_unit_test(a_value_that_is_refused_is_not_in_effect),
		cmocka_unit_test(the_default_of_the_kernel_is_in_effect),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
