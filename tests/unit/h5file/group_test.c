/* SPDX-License-Identifier: Apache-2.0 */
/* Links: their order, names that no path can contain, names twice, targets outside of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <h5file/h5file.h>

#include "small_file.h"

static struct h5file *open_root(struct small_file *s)
{
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	small_finish(s, small_end(s));
	if (h5file_open(&s->src.source, NULL, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static void soft(struct small_file *s, const char *name, int64_t corder)
{
	small_add_link(s, &(struct h5_link){.name = name,
					    .name_len = strlen(name),
					    .has_corder = true,
					    .corder = corder,
					    .cls = LINK_SOFT,
					    .path = "x"});
}

static void by_name_or_in_the_order_of_creation(void **state)
{
	for (int tracked = 0; tracked < 2; tracked++) {
		static struct small_file s;
		small_begin(&s);
		small_object(&s);
		small_group(&s, tracked);
		soft(&s, "b", -5);
		soft(&s, "a", 7);
		soft(&s, "\xc3\xa9", 6);
		struct h5file *f = open_root(&s);
		const struct object *o = &tree_object(h5file_tree(f), 0)->o;
		assert_int_equal(o->group.nlinks, 3);
		assert_string_equal(o->group.links[0].name, tracked ? "b" : "a");
		assert_string_equal(o->group.links[1].name, tracked ? "\xc3\xa9" : "b");
		assert_string_equal(o->group.links[2].name, tracked ? "a" : "\xc3\xa9");
		assert_true(o->group.links[2].utf8);
		assert_int_equal(o->group.links_ordered, tracked);
		h5file_close(f);
		small_release(&s);
	}
}

static void links_that_are_left_out(void **state)
{
	static struct small_file s;
	small_begin(&s);
	const uint64_t d = small_numbers(&s, 2);
	small_object(&s);
	small_group(&s, false);
	soft(&s, "a/b", 0);
	small_link(&s, "superblock", 0);
	small_link(&s, "far", UINT64_C(1) << 40);
	small_link(&s, "nowhere", H5_UNDEF);
	small_link(&s, "not an object", 8);
	small_link(&s, "twice", d);
	small_link(&s, "twice", d);
	soft(&s, "\xff\xfe", 0);
	struct h5file *f = open_root(&s);
	const struct object *o = &tree_object(h5file_tree(f), 0)->o;
	assert_int_equal(o->group.nlinks, 2);
	assert_string_equal(o->group.links[0].name, "twice");
	assert_string_equal(o->group.links[1].name, "\xff\xfe");
	assert_false(o->group.links[1].utf8);
	assert_int_equal(h5file_problems(f), 6);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(h5file_problem(f, i)->severity, H5FILE_DAMAGED);
	assert_int_equal(tree_missing(h5file_tree(f)), 1); /* "not an object" */
	h5file_close(f);
	small_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name_or_in_the_order_of_creation),
		cmocka_unit_test(links_that_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
