/* SPDX-License-Identifier: Apache-2.0 */
/* The last steps of an import: folders, owners, and domains that are replaced. */
#include "import_fixture.h"

static void assert_info(struct world *w, const char *path, const char *owner, unsigned int nacls)
{
	struct call_result res;
	char key[256];
	snprintf(key, sizeof(key), "%s/.domain.json", path);
	if (call_get(w->store, key, 0, STORE_TO_END, 0, NULL, &res, NULL))
		fail_msg("%s is missing", key);
	assert_int_equal(bytes_append(&res.body, "", 1), 0);
	const char *text = (const char *)res.body.data;
	unsigned int n = 0;
	for (const char *p = text; (p = strstr(p, "\"updateACL\"")); p++)
		n++;
	const char *found = strstr(text, "\"owner\": \"");
	if (!found || strncmp(found + 10, owner, strlen(owner)) != 0 || n != nacls)
		fail_msg("%s: %s", path, text);
	bytes_release(&res.body);
}

static void test_folders(void **state)
{
	struct world w;
	world_init(&w, 0);
	w.opt.path = "a/b/c/x.h5";
	world_put(&w, "a/.domain.json", FOLDER);
	world_open_gate(&w);
	world_must_import(&w, NULL);
	assert_info(&w, "a/b/c/x.h5", "olaf", 1);
	assert_info(&w, "a/b/c", "olaf", 2);
	assert_info(&w, "a/b", "olaf", 2);
	assert_int_equal(w.gate->ops[STORE_PUT], STORED + 2 + 2);
	w.opt.owner = "eve";
	w.opt.service_user = "sam";
	w.seed = 3;
	w.opt.path = "a/b/y.h5";
	world_must_import(&w, NULL);
	assert_info(&w, "a/b/y.h5", "eve", 1);
	w.opt.owner = NULL;
	w.seed = 5;
	w.opt.path = "a/b/z.h5";
	world_must_import(&w, NULL);
	assert_info(&w, "a/b/z.h5", "sam", 1);
	/* In a bucket without documents of folders none are made. */
	w.seed = 4;
	w.opt.service_user = NULL;
	w.opt.path = "z/b/c/x.h5";
	world_must_import(&w, NULL);
	assert_info(&w, "z/b/c/x.h5", "ann", 1);
	assert_int_equal(world_keys(&w, "z/b/.domain.json") + world_keys(&w, "z/.domain.json"), 0);
	world_release(&w);
}

/* ---- replacing ---- */

enum { OLD = 1, NEW = 2, LATER = 3 };
#define OLD_STORAGE "db/01010101-01010101/"

/* A domain that was imported with the seed OLD, and options that replace it. */
static void init_replace(struct world *w)
{
	world_init(w, 0);
	w->seed = OLD;
	w->opt.owner = "old";
	world_must_import(w, NULL);
	w->seed = NEW;
	w->opt.owner = NULL;
	w->opt.service_user = "sam";
	w->opt.replace = true;
	world_open_gate(w);
}

static void test_replace(void **state)
{
	struct world w;
	init_replace(&w);
	assert_int_equal(world_keys(&w, OLD_STORAGE), STORED);
	world_must_import(&w, NULL);
	assert_string_equal(w.notes, "");
	assert_int_equal(world_keys(&w, OLD_STORAGE), 0);
	assert_int_equal(world_keys(&w, ""), STORED + 1);
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
	assert_info(&w, w.opt.path, "old", 1);
	/* Nothing to replace. */
	w.seed = 7;
	w.opt.path = "home/ann/other.h5";
	world_must_import(&w, NULL);
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
	world_release(&w);
}

static void test_keep_storage(void **state)
{
	struct world w;
	init_replace(&w);
	w.opt.keep_storage = true;
	world_must_import(&w, NULL);
	assert_int_equal(world_keys(&w, OLD_STORAGE), STORED);
	world_release(&w);
}

/* Version 1 of the schema spreads the objects of a domain over the bucket. */
static void test_no_listing_shows_the_storage(void **state)
{
	struct world w;
	world_init(&w, 0);
	w.opt.replace = true;
	world_put(&w, "home/ann/run.h5/.domain.json",
		  "{\"root\": \"g-45f464d8-883e-11e8-a9dc-0242ac12000e\", \"owner\": \"olaf\", "
		  "\"acls\": {}, \"created\": 1.0, \"lastModified\": 1.0}");
	world_must_import(&w, NULL);
	assert_non_null(strstr(w.notes, "is kept, because no listing shows it"));
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
	world_release(&w);
}

/* A domain in the same folder has the same root group. */
static void test_shared_storage(void **state)
{
	struct world w;
	struct call_result res;
	init_replace(&w);
	assert_int_equal(call_get(w.store, "home/ann/run.h5/.domain.json", 0, STORE_TO_END, 0, NULL,
				  &res, NULL),
			 0);
	assert_int_equal(call_put(w.store, "home/ann/twin.h5/.domain.json", res.body.data,
				  res.body.len, NULL, NULL, NULL),
			 0);
	bytes_release(&res.body);
	world_put(&w, "home/ann/plain.txt", "plain");
	world_must_import(&w, NULL);
	assert_non_null(strstr(w.notes, "another domain uses it"));
	assert_int_equal(world_objects(&w, "home/ann/twin.h5"), OBJECTS);
	assert_int_equal(world_objects(&w, "home/ann/run.h5"), OBJECTS);
	world_release(&w);
}

/* The program ends after any request, with or without its effect: the old domain or the new one is
 * there, and whole. Then the same command completes the import. */
static void check_interrupted(bool after)
{
	struct world w;
	struct err err;
	init_replace(&w);
	world_must_import(&w, NULL);
	const unsigned int n = w.gate->n;
	world_release(&w);
	for (unsigned int i = 1; i <= n; i++) {
		init_replace(&w);
		w.gate->later = true;
		w.gate->after = after;
		(void)world_import_failing(&w, i, -EIO, &err);
		assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
		w.seed = LATER; /* of a new import, if the first one was complete */
		world_must_import(&w, NULL);
		if (world_keys(&w, "") != STORED + 1 || world_keys(&w, OLD_STORAGE))
			fail_msg("request %u: %zu keys (%s)", i, world_keys(&w, ""), w.notes);
		assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
		world_release(&w);
	}
}

static void test_interrupted(void **state)
{
	check_interrupted(false);
	check_interrupted(true);
}

/* Another program writes the document of the domain during the import. */
static int change_domain(void *ctx, struct err *err)
{
	world_put(ctx, "home/ann/run.h5/.domain.json", FOLDER);
	return 0;
}

static int make_domain(void *ctx, struct err *err)
{
	struct world *w = ctx;
	struct import_options opt = w->opt;
	opt.file.check = world_check_file;
	opt.path = "home/ann/other.h5";
	w->seed = 9;
	assert_int_equal(domain_import(&opt, &(struct import_result){0}, err), 0);
	struct call_result res;
	assert_int_equal(call_get(w->store, "home/ann/other.h5/.domain.json", 0, STORE_TO_END, 0,
				  NULL, &res, NULL),
			 0);
	assert_int_equal(call_put(w->store, "home/ann/run.h5/.domain.json", res.body.data,
				  res.body.len, NULL, NULL, NULL),
			 0);
	bytes_release(&res.body);
	return 0;
}

static void test_changed_meanwhile(void **state)
{
	struct world w;
	struct err err;
	init_replace(&w);
	w.opt.file.check = change_domain;
	assert_int_equal(world_import(&w, NULL, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "the domain was changed during the import; remove "
					"what is stored with --abort before you try again"));
	assert_int_equal(world_keys(&w, OLD_STORAGE), STORED);
	assert_info(&w, w.opt.path, "olaf", 0);
	world_release(&w);
	world_init(&w, 0);
	w.opt.file.check = make_domain;
	assert_int_equal(world_import(&w, NULL, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "was created during the import; remove what is stored "
					"with --abort before you try again"));
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
	w.opt.file.check = world_check_file;
	assert_int_equal(world_import(&w, NULL, &err), -EEXIST);
	world_release(&w);
}

/* The old storage cannot be deleted: the new domain is complete all the same. */
static void test_cannot_delete(void **state)
{
	struct world w;
	struct err err;
	init_replace(&w);
	world_must_import(&w, NULL);
	const unsigned int n = w.gate->n;
	world_release(&w);
	init_replace(&w);
	assert_int_equal(world_import_failing(&w, n - 5, -EACCES, &err), -EACCES);
	assert_non_null(strstr(err.msg, "the domain is complete, but the storage of the replaced"));
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
	world_must_import(&w, NULL);
	assert_int_equal(world_keys(&w, ""), STORED + 1);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folders),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_keep_storage),
		cmocka_unit_test(test_shared_storage),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_changed_meanwhile),
		cmocka_unit_test(test_cannot_delete),
		cmocka_unit_test(test_no_listing_shows_the_storage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
