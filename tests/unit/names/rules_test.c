/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rules for look-up and listing, and the functions for names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "names/rules.h"

/* All combinations of documents and children. */
static void each_case_has_its_rule(void **state)
{
	enum {
		DIR = SHOWN_DIR,
		DOMAIN = SHOWN_DOMAIN,
		UNLISTABLE = SHOWN_UNLISTABLE,
		NOTHING = SHOWN_NOTHING
	};
	static const int children[] = {CHILDREN_NONE, CHILDREN_DOC, CHILDREN_MORE, -EACCES};
	/* For each of the children: what is shown; B: also as the file of a bare domain; ?: only if
	 * the directory's listing shows it. */
	static const struct {
		enum names_doc_kind doc;
		const char *path;
		int own[4];
		const char *bare, *if_listed;
	} rows[] = {
		{NAMES_DOC_NONE, "d/x.h5", {NOTHING, NOTHING, DIR, UNLISTABLE}, "----", "---?"},
		{NAMES_DOC_NONE, "d.h5/x", {NOTHING, NOTHING, DIR, UNLISTABLE}, "----", "---?"},
		{NAMES_DOC_FOLDER, "d/x.h5", {DIR, DIR, DIR, DIR}, "----", "----"},
		{NAMES_DOC_FOLDER, "x", {DIR, DIR, DIR, DIR}, "----", "----"},
		{NAMES_DOC_ROOT, "d/x.h5", {DOMAIN, DOMAIN, DOMAIN, DOMAIN}, "----", "----"},
		{NAMES_DOC_ROOT, "d.h5/x", {NOTHING, NOTHING, DIR, UNLISTABLE}, "BBBB", "---?"},
		{NAMES_DOC_BROKEN, "d/x.h5", {DOMAIN, DOMAIN, DIR, UNLISTABLE}, "----", "?--?"},
		{NAMES_DOC_BROKEN, "d.h5/x", {NOTHING, NOTHING, DIR, UNLISTABLE}, "BBB-", "?--?"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t k = 0; k < 4; k++) {
			const struct names_rule r =
				names_rule(rows[i].doc, rows[i].path, children[k]);
			if ((int)r.own != rows[i].own[k] || r.bare != (rows[i].bare[k] == 'B') ||
			    r.if_listed != (rows[i].if_listed[k] == '?'))
				fail_msg("document %d, %s, children %d: %d %d %d", rows[i].doc,
					 rows[i].path, children[k], r.own, r.bare, r.if_listed);
		}
}

static void children_are_listed_if_they_decide(void **state)
{
	static const struct {
		enum names_doc_kind doc;
		bool named, bare;
	} rows[] = {
		{NAMES_DOC_NONE, true, true},
		{NAMES_DOC_FOLDER, false, false},
		{NAMES_DOC_ROOT, false, true},
		{NAMES_DOC_BROKEN, true, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(names_needs_children(rows[i].doc, "x.h5") == rows[i].named);
		assert_true(names_needs_children(rows[i].doc, "x") == rows[i].bare);
	}
}

static void an_unlistable_prefix_is_shown_by_its_name(void **state)
{
	assert_int_equal(names_unlistable_kind(NAMES_DOC_BROKEN, "d/x.NC4"), NAMES_DOMAIN);
	assert_int_equal(names_unlistable_kind(NAMES_DOC_BROKEN, "x.h5/john.doe"), NAMES_DIR);
	assert_int_equal(names_unlistable_kind(NAMES_DOC_BROKEN, ".h5"), NAMES_DIR);
	assert_int_equal(names_unlistable_kind(NAMES_DOC_NONE, "d/x.h5"), NAMES_DIR);
}

static void a_bare_domain_s_file_has_a_suffix(void **state)
{
	static const struct {
		const char *domain, *file;
	} rows[] = {
		{"run", "run.h5"}, {"run.h5", "run.h5"},      {"a.b/run", "a.b/run.h5"},
		{"end.", "end."},  {".hidden", ".hidden.h5"}, {"a/x.nc", "a/x.nc"},
	};
	static const struct {
		const char *file, *bare;
	} files[] = {
		{"run", NULL},	   {"a.b/run", NULL},	      {"run.h5", "run"},
		{"a.b.h5", NULL},  {"a.b/run.h5", "a.b/run"}, {"run.nc", NULL},
		{".x.h5", ".x"},   {".x.h5.Q3ZrN", NULL},     {".h5", NULL},
		{".h5.h5", ".h5"}, {"run.zarr", "run"},	      {"run.zarr.h5", "run"},
	};
	static const struct schema_ops h5 = {.suffix = ".h5"}, again = {.suffix = ".h5"},
				       zarr = {.suffix = ".zarr"}, both = {.suffix = ".zarr.h5"};
	const struct schema_ops *const schemas[] = {&h5, &again, &zarr, &both, NULL};
	char path[64];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		strcpy(path, rows[i].domain);
		assert_int_equal(names_of_domain(".h5", path, sizeof(path)), 0);
		assert_string_equal(path, rows[i].file);
	}
	strcpy(path, "run");
	assert_int_equal(names_of_domain(".h5", path, sizeof("run.h5") - 1), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		auto_free char *bare = NULL;
		assert_int_equal(names_bare(schemas, files[i].file, &bare), 0);
		if (!files[i].bare)
			assert_null(bare);
		else
			assert_string_equal(bare, files[i].bare);
	}
	auto_free char *file = names_with_suffix("a/run", ".h5");
	assert_string_equal(file, "a/run.h5");
	size_t i = 0;
	assert_string_equal(names_next_suffix(schemas, &i), ".h5");
	assert_string_equal(names_next_suffix(schemas, &i), ".zarr");
	assert_string_equal(names_next_suffix(schemas, &i), ".zarr.h5");
	assert_null(names_next_suffix(schemas, &i));
}

/* A name of 252 bytes has room for ".h5". */
static void a_domain_is_listed_under_a_name_that_fits(void **state)
{
	char path[NAMES_MAX + 3] = "d/", shown[STORE_KEY_MAX + 1];
	assert_int_equal(names_shown(".h5", "a/run", shown), 0);
	assert_string_equal(shown, "a/run.h5");
	assert_int_equal(names_shown(".h5", "a/run.nc", shown), 0);
	assert_string_equal(shown, "a/run.nc");
	memset(path + 2, 'x', NAMES_MAX - 3);
	path[2 + NAMES_MAX - 3] = '\0';
	assert_int_equal(names_shown(".h5", path, shown), 0);
	strcat(path, "x");
	assert_int_equal(names_shown(".h5", path, shown), -ENAMETOOLONG);
}

static void names_fit_in_a_directory(void **state)
{
	char longest[NAMES_MAX + 2];
	memset(longest, 'x', sizeof(longest));
	assert_true(names_ok(longest, NAMES_MAX));
	assert_false(names_ok(longest, NAMES_MAX + 1));
	assert_false(names_ok("", 0));
	assert_false(names_ok(".", 1));
	assert_false(names_ok("..", 2));
	assert_true(names_ok("...", 3));
	assert_true(names_ok("x.", 2));
	assert_true(names_ok(".x", 2));
	assert_false(names_ok("a/b", 3));
	assert_false(names_ok("a\0b", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case_has_its_rule),
		cmocka_unit_test(children_are_listed_if_they_decide),
		cmocka_unit_test(an_unlistable_prefix_is_shown_by_its_name),
		cmocka_unit_test(a_bare_domain_s_file_has_a_suffix),
		cmocka_unit_test(names_fit_in_a_directory),
		cmocka_unit_test(a_domain_is_listed_under_a_name_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
