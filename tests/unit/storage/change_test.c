/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names: what a reader sees if a change ends after any of its requests. */
#include "change_fixture.h"

static void test_folders(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	world_init(&w, 0);
	const struct change c = change_of(&w);
	assert_int_equal(change_make_folder(&c, "home", &err), 0);
	assert_int_equal(change_make_folder(&c, "home", &err), -EEXIST);
	assert_int_equal(change_make_folder(&c, "home/a", &err), 0);
	struct schema_document *home = look_up(&w, "home"), *a = look_up(&w, "home/a");
	assert_null(home->info.root);
	assert_string_equal(home->info.owner, "ann");
	assert_int_equal(home->info.nacls, 2);
	assert_int_equal(change_remove_folder(&c, "home", home, &err), -ENOTEMPTY);
	assert_int_equal(change_remove_folder(&c, "home/a", a, &err), 0);
	assert_int_equal(change_remove_folder(&c, "home", home, &err), 0);
	assert_int_equal(world_keys(&w, ""), 0);
	/* The directory of a file system that has no document. */
	assert_int_equal(change_remove_folder(&c, "home", NULL, &err), 0);
	assert_int_equal(world_keys(&w, ""), 0);
	schema_document_unref(home);
	schema_document_unref(a);
	world_release(&w);
}

/* One get and one put. A document that was deleted meanwhile is not made again. */
static void test_acls(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	struct domain_acl acl = {.user = "bob", .perms = DOMAIN_PERM_READ};
	const struct domain_info acls = {.owner = "", .nacls = 1, .acls = &acl};
	world_init(&w, 0);
	import_as(&w, "a.h5", 1);
	const struct change c = change_of(&w);
	world_open_gate(&w);
	assert_int_equal(change_set_acls(&c, "a.h5", false, &acls, &err), 0);
	assert_int_equal(w.gate->n, 2);
	struct schema_document *a = look_up(&w, "a.h5");
	assert_int_equal(a->info.nacls, 1);
	assert_string_equal(a->info.acls[0].user, "bob");
	assert_non_null(a->info.root);
	schema_document_unref(a);
	assert_int_equal(change_set_acls(&c, "home", false, &acls, &err), -ESTALE);
	assert_int_equal(change_set_acls(&c, "home", true, &acls, &err), 0);
	assert_int_equal(change_set_acls(&c, "home", true, &acls, &err), -ESTALE);
	struct schema_document *home = look_up(&w, "home");
	assert_null(home->info.root);
	assert_string_equal(home->info.owner, "ann");
	assert_int_equal(home->info.acls[0].perms, DOMAIN_PERM_READ);
	schema_document_unref(home);
	world_release(&w);
}

/* Another program was faster: nothing changes. */
static void test_conflicts(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	struct change_garbage garbage;
	world_init(&w, 0);
	import_as(&w, "a.h5", 1);
	import_as(&w, "b.h5", 2);
	const size_t keys = world_keys(&w, "");
	const struct change c = change_of(&w);
	struct schema_document *a = look_up(&w, "a.h5"), *b = look_up(&w, "b.h5");
	assert_int_equal(change_rename_domain(&c, "a.h5", a, "b.h5", NULL, &garbage, &err),
			 -EEXIST);
	w.opt.replace = true;
	import_as(&w, "b.h5", 3);
	assert_int_equal(change_rename_domain(&c, "a.h5", a, "b.h5", b, &garbage, &err), -ESTALE);
	assert_int_equal(change_remove_domain(&c, "b.h5", b, &garbage, &err), -ESTALE);
	assert_false(garbage.storage.schema);
	/* The list of names was put before the rename failed. */
	assert_int_equal(world_keys(&w, ""), keys + 1);
	assert_int_equal(world_objects(&w, "a.h5"), OBJECTS);
	assert_int_equal(world_objects(&w, "b.h5"), OBJECTS);
	schema_document_unref(a);
	schema_document_unref(b);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_acls),
		cmocka_unit_test(test_folders),
		cmocka_unit_test(test_conflicts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
