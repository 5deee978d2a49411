/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names: what a reader sees if a change ends after any of its requests. */
#include "change_fixture.h"

#include <storage/storage_sum.h>

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
	struct change_versions versions;
	world_init(&w, 0);
	import_as(&w, "a.h5", 1);
	const struct change c = change_of(&w);
	world_open_gate(&w);
	assert_int_equal(change_set_acls(&c, "a.h5", false, &acls, &versions, &err), 0);
	assert_int_equal(w.gate->n, 2);
	assert_string_not_equal(versions.from, versions.to);
	struct schema_document *a = look_up(&w, "a.h5");
	assert_string_equal(a->etag, versions.to);
	assert_int_equal(a->info.nacls, 1);
	assert_string_equal(a->info.acls[0].user, "bob");
	assert_non_null(a->info.root);
	schema_document_unref(a);
	assert_int_equal(change_set_acls(&c, "home", false, &acls, &versions, &err), -ESTALE);
	assert_int_equal(change_set_acls(&c, "home", true, &acls, &versions, &err), 0);
	assert_int_equal(change_set_acls(&c, "home", true, &acls, &versions, &err), -ESTALE);
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
	assert_int_equal(change_remove_domain(&c, "b.h5", b, false, &garbage, &err), -ESTALE);
	assert_false(garbage.storage.schema);
	/* The list of names was put before the rename failed. */
	assert_int_equal(world_keys(&w, ""), keys + 1);
	assert_int_equal(world_objects(&w, "a.h5"), OBJECTS);
	assert_int_equal(world_objects(&w, "b.h5"), OBJECTS);
	schema_document_unref(a);
	schema_document_unref(b);
	world_release(&w);
}

/* ---- a DELETE whose answer is lost ---- */

#define OLD_DOMAIN(n)                                                                              \
	"{\"root\": \"g-0568d8c5-a77e-11e4-9f7a-3c15c2da029" n                                     \
	"\", \"owner\": \"ann\", \"created\": 1" n "}"
#define FOLDER_MADE(n) "{\"owner\": \"ann\", \"created\": 1" n "}"
#define DOCUMENT       "x/.domain.json"

static const char *by_other; /* what another program puts */

static void put_other(struct store *bucket)
{
	struct err err = ERR_INIT;
	assert_int_equal(call_put(bucket, DOCUMENT, by_other, strlen(by_other), NULL, NULL, &err),
			 0);
}

/* The answer to the DELETE is lost, and another program puts a document before it is repeated. */
static int remove_beside(struct world *w, const struct schema_document *old, struct err *err)
{
	struct change_garbage garbage;
	const struct change c = change_of(w);
	const bool is_folder = !old->info.root;
	world_open_gate(w);
	w->gate->at = is_folder ? 2 : 1; /* a folder is listed before */
	w->gate->after = true;
	w->gate->code = -EAGAIN;
	w->gate->other_at = w->gate->at + 1;
	w->gate->other = put_other;
	return is_folder ? change_remove_folder(&c, "x", old, err)
			 : change_remove_domain(&c, "x", old, false, &garbage, err);
}

/* What another program has made stays. What it has changed is still there, so the caller repeats
 * the call. */
static void test_repeated_removals(void **state)
{
	static const struct store_retry_options quick = {.attempts = 4, .base_ms = 1, .cap_ms = 1};
	static const struct {
		const char *old, *now;
		int code;
	} cases[] = {
		{FOLDER_MADE("1"), FOLDER_MADE("2"), 0},
		{FOLDER_MADE("1"), FOLDER_MADE("1") " ", -ESTALE},
		{FOLDER_MADE("1"), OLD_DOMAIN("1"), 0},
		{OLD_DOMAIN("1"), OLD_DOMAIN("2"), 0},
		{OLD_DOMAIN("1"), OLD_DOMAIN("1") " ", -ESTALE},
		{OLD_DOMAIN("1"), FOLDER_MADE("1"), 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct err err = ERR_INIT;
		world_init(&w, 0);
		w.store = store_retry_new(w.store, &quick, &err);
		assert_non_null(w.store);
		world_put(&w, DOCUMENT, cases[i].old);
		struct schema_document *old = look_up(&w, "x");
		by_other = cases[i].now;
		const int rc = remove_beside(&w, old, &err);
		if (rc != cases[i].code)
			fail_msg("%zu: %d %s", i, rc, err.msg);
		assert_int_equal(world_keys(&w, "x/"), 1);
		schema_document_unref(old);
		world_release(&w);
	}
}

/* A listing of several pages has the versions that were put, until one of them changes. */
static void test_sum(void **state)
{
	enum { MANY = 2500, KEY = 160 };
	struct world w;
	struct storage_sum sum;
	struct store_meta meta;
	char key[KEY];
	world_init(&w, 0);
	const struct document_place place = {
		.env = &w.env, .store = w.store, .schema = schema_all()[0]};
	const struct storage storage = schema_storage_of_number(place.schema, 7);
	assert_int_equal(storage_sum_begin(&place, &storage, &sum, NULL), 0);
	for (unsigned int i = MANY; i > 0; i--) {
		snprintf(key, sizeof(key), "%sd/x/%u", storage.prefix, i);
		assert_int_equal(call_put(w.store, key, &i, sizeof(i), NULL, &meta, NULL), 0);
		storage_sum_add(&sum, key, meta.etag);
	}
	assert_int_equal(storage_sum_is_there(&place, &sum, NULL), 1);
	assert_int_equal(call_put(w.store, key, "other", 5, NULL, &meta, NULL), 0);
	assert_int_equal(storage_sum_is_there(&place, &sum, NULL), 0);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_acls),
		cmocka_unit_test(test_folders),
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_conflicts),
		cmocka_unit_test(test_repeated_removals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
