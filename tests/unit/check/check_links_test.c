/* SPDX-License-Identifier: Apache-2.0 */
/* Soft links: paths that exist, that do not, circles, and paths that are not followed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "check/check.h"

static int take_finding(void *arg, const struct engine_check_finding *f)
{
	assert_int_equal(f->severity, ENGINE_CHECK_NOTE);
	str_addf(arg, "%s: %s\n", f->object, f->text);
	return 0;
}

static struct tree *tree_with(const char *path)
{
	struct tree *t = tree_new(1 << 20);
	uint32_t number;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tree_add(t, &number, NULL), 0);
		struct object *o = tree_edit(t, number);
		*o = (struct object){.kind = OBJECT_GROUP, .id = "id"};
		o->group.links = arena_array(tree_arena(t), 8, sizeof(struct link));
	}
	struct object *root = tree_edit(t, 0), *g = tree_edit(t, 1);
	root->group.nlinks = 5;
	root->group.links[0] = (struct link){.name = "g", .cls = LINK_HARD, .target = 1};
	root->group.links[1] = (struct link){.name = "gg", .cls = LINK_HARD, .target = 1};
	root->group.links[2] = (struct link){.name = "to-g", .cls = LINK_SOFT, .path = "/g"};
	root->group.links[3] = (struct link){.name = "loop", .cls = LINK_HARD, .target = 0};
	root->group.links[4] =
		(struct link){.name = "away", .cls = LINK_EXTERNAL, .path = "/x", .domain = "y.h5"};
	g->group.nlinks = 3;
	g->group.links[0] = (struct link){.name = "up", .cls = LINK_HARD, .target = 0};
	g->group.links[1] = (struct link){.name = "soft", .cls = LINK_SOFT, .path = path};
	g->group.links[2] = (struct link){.name = "sibling", .cls = LINK_SOFT, .path = "up"};
	assert_int_equal(tree_finish(t, NULL), 0);
	return t;
}

static void assert_finding(const char *path, const char *text)
{
	auto_str struct str seen = {0};
	const struct engine_check_sink sink = {.finding = take_finding, .arg = &seen};
	struct check c = {.sink = &sink};
	struct tree *t = tree_with(path);
	struct domain_check dc = {.c = &c, .tree = t, .paths = object_paths_new(t)};
	assert_int_equal(check_links(&dc), 0);
	assert_string_equal(str_text(&seen), text);
	object_paths_free(dc.paths);
	tree_free(t);
}

static void paths_that_exist(void **state)
{
	static const char *const paths[] = {
		"/",	     "/g",	 "/g/",		 "//g//up/gg",	 "up/g",  "./up/./g/up",
		"sibling/g", "/to-g/up", "/loop/loop/g", "/away/beyond", "/to-g", "."};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_finding(paths[i], "");
}

static void paths_that_do_not_exist(void **state)
{
	static const char *const paths[] = {"/h", "g", "/g/x", "/gg/x", "/ggg", "/t", "/g/up/x"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char text[128];
		snprintf(text, sizeof(text),
			 "/g: soft link \"soft\" leads to \"%s\", which does not exist\n",
			 paths[i]);
		assert_finding(paths[i], text);
	}
}

static void circles(void **state)
{
	assert_finding("/g/soft", "/g: soft link \"soft\" leads to \"/g/soft\", through more than "
				  "16 soft links, perhaps in a circle\n");
	assert_finding("soft/x", "/g: soft link \"soft\" leads to \"soft/x\", through more than 16 "
				 "soft links, perhaps in a circle\n");
}

/* Round and round through a hard link to the root group. */
static void long_paths(void **state)
{
	auto_str struct str path = {0}, text = {0};
	for (int i = 0; i < 4096; i++)
		str_add(&path, "/loop");
	assert_finding(str_text(&path), "");
	str_add(&path, "/g");
	str_addf(&text, "/g: soft link \"soft\" leads to \"%s\", through more than 4096 names\n",
		 str_text(&path));
	assert_finding(str_text(&path), str_text(&text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_that_exist),
		cmocka_unit_test(paths_that_do_not_exist),
		cmocka_unit_test(circles),
		cmocka_unit_test(long_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
