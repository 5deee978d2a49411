/* SPDX-License-Identifier: Apache-2.0 */
/* External links: from the name of a domain to a file name that libhdf5 finds in the mount. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "rendered.h"

static int add_extension(const char *suffix, char *path, size_t cap)
{
	size_t len = strlen(path);
	if (strchr(path, '.'))
		return 0;
	return snprintf(path + len, cap - len, ".h5") >= (int)(cap - len) ? -ENAMETOOLONG : 0;
}

static void names_become_relative_paths(void **state)
{
	static const struct {
		const char *dir, *domain, *file;
	} cases[] = {
		{"", "x.h5", "x.h5"},
		{"", "/a/x.h5", "a/x.h5"},
		{"a", "x.h5", "x.h5"},
		{"a", "/a/x.h5", "x.h5"},
		{"a/b", "/a/x.h5", "../x.h5"},
		{"a/b", "hdf5://a/b/x.h5", "x.h5"},
		{"a/b", "hdf5://c/x.h5", "../../c/x.h5"},
		{"a/b", "../x.h5", "../x.h5"},
		{"ab", "/abc/x.h5", "../abc/x.h5"},
		{"abc", "/ab/x.h5", "../ab/x.h5"},
		{"a", "./b//x.h5", "b/x.h5"},
		{"a/b", "../../../../etc/passwd.h5", "../../etc/passwd.h5"},
		{"a", "run", "run.h5"},
		{"12345678", "/12345678/x.h5", "x.h5"},
	};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct image_options opt = {.domain_dir = cases[i].dir,
						  .file_name = add_extension};
		char json[1024];
		struct h5_link link;
		snprintf(json, sizeof(json),
			 "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'x':{'class':"
						    "'H5L_TYPE_EXTERNAL','h5path':'/"
						    "p','h5domain':'%s',"
						    "'created':1}},'attributes':{}}",
			 cases[i].domain);
		assert_int_equal(small_put(r->store, SMALL_PREFIX "/.group.json", json), 0);
		assert_int_equal(rendered_make(r, &opt, NULL), 0);
		assert_true(rendered_link(r, rendered_root(r), "x", &link));
		assert_int_equal(link.cls, LINK_EXTERNAL);
		assert_string_equal(link.file, cases[i].file);
		assert_string_equal(link.path, "/p");
	}
}

/* The file name has up to 4,095 bytes, here "../../" and 4,089 bytes. */
static void names_that_are_too_long_become_a_dot(void **state)
{
	struct rendered *r = *state;
	const struct image_options opt = {.domain_dir = "a/b"};
	for (int n = 4080; n < 4100; n++) {
		struct h5_link link;
		rendered_put(r, SMALL_PREFIX "/.group.json",
			     "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'x':{'class':"
							"'H5L_TYPE_EXTERNAL','h5path':'/p',"
							"'h5domain':'/%0*d','created':1}},"
							"'attributes':{}}",
			     n, 0);
		assert_int_equal(rendered_make(r, &opt, NULL), 0);
		assert_true(rendered_link(r, rendered_root(r), "x", &link));
		if (n <= 4089)
			assert_int_equal(strlen(link.file), 6 + n);
		else
			assert_string_equal(link.file, ".");
	}
}

static void too_many_directories_become_a_dot(void **state)
{
	enum { DEPTH = 1500 };
	struct rendered *r = *state;
	struct h5_link link;
	char dir[2 * DEPTH];
	for (size_t i = 0; i < DEPTH; i++)
		memcpy(dir + 2 * i, "a/", 2);
	dir[sizeof(dir) - 1] = '\0';
	const struct image_options opt = {.domain_dir = dir};
	rendered_put(r, SMALL_PREFIX "/.group.json",
		     "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'x':{'class':'H5L_TYPE_EXTERNAL',"
						"'h5path':'/p','h5domain':'%s','created':1}},"
						"'attributes':{}}",
		     "/x.h5");
	assert_int_equal(rendered_make(r, &opt, NULL), 0);
	assert_true(rendered_link(r, rendered_root(r), "x", &link));
	assert_string_equal(link.file, ".");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_become_relative_paths, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(too_many_directories_become_a_dot, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(names_that_are_too_long_become_a_dot,
						rendered_setup, rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
