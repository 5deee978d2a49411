/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names: what a reader sees if a change ends after any of its requests. */
#include "import_fixture.h"

#include <domain/change.h>

#include "domain/document.h"

static struct change change_of(const struct world *w)
{
	return (struct change){.env = &w->env,
			       .store = w->store,
			       .schema = schema_all()[0],
			       .owner = "ann",
			       .now_ns = INT64_C(1700000000000000000)};
}

/* The document of a path; NULL if there is none. */
static struct schema_document *look_up(struct world *w, const char *path)
{
	const struct document_place place = {
		.env = &w->env, .store = w->store, .schema = schema_all()[0]};
	struct schema_document *d;
	assert_int_equal(document_get(&place, path, &d, NULL), 0);
	return d;
}

static void import_as(struct world *w, const char *path, uint8_t seed)
{
	w->seed = seed;
	w->opt.path = path;
	world_must_import(w, NULL);
}

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

/* A rename is one put and one delete. At each moment, the old or the new name leads to the domain,
 * and the name that is replaced leads to one of the two domains. */
static void check_rename(bool replace, bool after)
{
	for (unsigned int at = 0; at <= 3; at++) {
		struct world w;
		struct err err = ERR_INIT;
		struct change_garbage garbage;
		uint64_t deleted;
		world_init(&w, 0);
		import_as(&w, "from.h5", 1);
		if (replace)
			import_as(&w, "to.h5", 2);
		const struct change c = change_of(&w);
		struct schema_document *from = look_up(&w, "from.h5"), *to = look_up(&w, "to.h5");
		world_open_gate(&w);
		w.gate->at = at;
		w.gate->code = -EIO;
		w.gate->after = after;
		const int rc =
			change_rename_domain(&c, "from.h5", from, "to.h5", to, &garbage, &err);
		assert_int_equal(rc, at == 1 || at == 2 ? -EIO : 0);
		assert_int_equal(w.gate->n, at == 1 ? 1 : 2);
		world_open_gate(&w);
		const bool named = at != 1 || after, gone = rc == 0 || (after && at == 2);
		assert_int_equal(world_objects(&w, "from.h5"), gone ? 0 : OBJECTS);
		assert_int_equal(world_objects(&w, "to.h5"), named || replace ? OBJECTS : 0);
		assert_int_equal(garbage.any, replace && at != 1);
		if (rc == 0) {
			assert_int_equal(change_collect(&c, "to.h5", &garbage, &deleted, &err), 0);
			assert_int_equal(deleted, replace ? OBJECTS + CHUNKS : 0);
			assert_int_equal(world_keys(&w, ""), OBJECTS + CHUNKS + 1);
			assert_int_equal(world_objects(&w, "to.h5"), OBJECTS);
		}
		schema_document_unref(from);
		schema_document_unref(to);
		world_release(&w);
	}
}

static void test_rename(void **state)
{
	check_rename(false, false);
	check_rename(false, true);
	check_rename(true, false);
	check_rename(true, true);
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
	const struct change c = change_of(&w);
	struct schema_document *a = look_up(&w, "a.h5"), *b = look_up(&w, "b.h5");
	assert_int_equal(change_rename_domain(&c, "a.h5", a, "b.h5", NULL, &garbage, &err),
			 -EEXIST);
	w.opt.replace = true;
	import_as(&w, "b.h5", 3);
	char *before = world_content(&w, "");
	assert_int_equal(change_rename_domain(&c, "a.h5", a, "b.h5", b, &garbage, &err), -ESTALE);
	assert_int_equal(change_remove_domain(&c, "b.h5", b, &garbage, &err), -ESTALE);
	assert_false(garbage.any);
	char *content = world_content(&w, "");
	assert_string_equal(content, before);
	free(content);
	free(before);
	schema_document_unref(a);
	schema_document_unref(b);
	world_release(&w);
}

/* Two names of one domain: the storage goes with the second one. */
static void test_shared_storage(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	struct change_garbage garbage;
	uint64_t deleted;
	world_init(&w, 0);
	import_as(&w, "a.h5", 1);
	const struct change c = change_of(&w);
	struct schema_document *a = look_up(&w, "a.h5");
	world_open_gate(&w);
	w.gate->at = 2;
	w.gate->code = -EIO;
	assert_int_equal(change_rename_domain(&c, "a.h5", a, "b.h5", NULL, &garbage, &err), -EIO);
	assert_non_null(strstr(err.msg, "a.h5 has the name b.h5 now, too"));
	world_open_gate(&w);
	struct schema_document *b = look_up(&w, "b.h5");
	assert_int_equal(change_remove_domain(&c, "a.h5", a, &garbage, &err), 0);
	assert_true(garbage.any);
	assert_int_equal(change_collect(&c, "a.h5", &garbage, &deleted, &err), 0);
	assert_int_equal(deleted, 0);
	assert_int_equal(world_objects(&w, "b.h5"), OBJECTS);
	assert_int_equal(change_remove_domain(&c, "b.h5", b, &garbage, &err), 0);
	assert_int_equal(change_collect(&c, "b.h5", &garbage, &deleted, &err), 0);
	assert_int_equal(world_keys(&w, ""), 0);
	schema_document_unref(a);
	schema_document_unref(b);
	world_release(&w);
}

/* A rename into another folder ends after any of its requests. Removing one of the names that are
 * left keeps the storage as long as the other one leads to it. */
static void test_two_folders(void **state)
{
	static const char *const paths[] = {"home/a.h5", "work/b.h5"};
	for (unsigned int at = 0; at <= 8; at++) {
		struct world w;
		struct err err = ERR_INIT;
		struct change_garbage garbage;
		uint64_t deleted;
		world_init(&w, 0);
		import_as(&w, paths[0], 1);
		const struct change c = change_of(&w);
		struct schema_document *a = look_up(&w, paths[0]);
		world_open_gate(&w);
		w.gate->at = 1 + at / 2;
		w.gate->after = at % 2;
		w.gate->later = true;
		w.gate->code = -EIO;
		const int rc =
			change_rename_domain(&c, paths[0], a, paths[1], NULL, &garbage, &err);
		assert_int_equal(rc, at < 6 ? -EIO : 0);
		world_open_gate(&w);
		w.gate->later = w.gate->after = false;
		assert_int_equal(world_objects(&w, paths[1]), at >= 3 ? OBJECTS : 0);
		for (unsigned int first = at % 3 == 0, i = 0; i < 2; i++) {
			const char *path = paths[(first + i) % 2],
				   *other = paths[(first + i + 1) % 2];
			struct schema_document *d = look_up(&w, path);
			if (!d)
				continue;
			assert_int_equal(change_remove_domain(&c, path, d, &garbage, &err), 0);
			assert_int_equal(change_collect(&c, path, &garbage, &deleted, &err), 0);
			schema_document_unref(d);
			d = look_up(&w, other);
			assert_int_equal(world_objects(&w, other), d ? OBJECTS : 0);
			schema_document_unref(d);
		}
		assert_int_equal(world_keys(&w, ""), 0);
		schema_document_unref(a);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_acls),	       cmocka_unit_test(test_folders),
		cmocka_unit_test(test_rename),	       cmocka_unit_test(test_conflicts),
		cmocka_unit_test(test_shared_storage), cmocka_unit_test(test_two_folders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
