/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that an update has removed: when they are deleted, and when they are not. */
#include "update_edits.h"
#include <bucket/schemas.h>

static int collect(struct world *w, const char *path, uint64_t *deleted)
{
	const struct domain_bucket bucket = {
		.env = &w->f.env, .store = w->gate->base.inner, .schemas = schema_all()};
	struct err err = ERR_INIT;
	auto_gc_kept struct gc_kept kept = {.event.path = NULL};
	assert_int_equal(gc_log_get(w->log, w->result.removed, &kept, NULL), 0);
	kept.event.path = path;
	return update_collect(&bucket, &kept.event, NULL, deleted, &err);
}

static struct world *remove_group(void)
{
	struct world *w = world_begin();
	edit_delete_group(w->draft);
	world_must_update(w, 1, 1);
	assert_int_not_equal(w->result.removed, GC_NONE);
	return w;
}

static void removed_objects_are_deleted(void **state)
{
	uint64_t deleted;
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = remove_group();
	world_key(w, "b/inner", key);
	assert_true(world_has(w, key));
	const size_t before = gate_keys(w->gate, "");
	assert_int_equal(collect(w, DOMAIN_PATH, &deleted), 0);
	/* b, b/inner, b/inner/below, b/refs, and its chunk. */
	assert_int_equal(deleted, 5);
	assert_int_equal(gate_keys(w->gate, ""), before - 5);
	assert_false(world_has(w, key));
	world_check_same(w);
	/* It may be done twice. */
	assert_int_equal(collect(w, DOMAIN_PATH, &deleted), 0);
	assert_int_equal(gate_keys(w->gate, ""), before - 5);
	assert_int_equal(collect(w, "home/u/none.h5", &deleted), 0);
	assert_int_equal(deleted, 0);
	world_end(w);
}

/* Another program has linked one of the objects again. */
static void what_is_linked_again_stays(void **state)
{
	uint64_t deleted;
	char inner[64], key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_id(w, "b/inner", inner);
	world_end(w);
	w = remove_group();
	world_key(w, "a/empty", key);
	auto_free char *text = world_text(w, key);
	char *links = strstr(text, "\"links\"");
	assert_non_null(links);
	char *open = strchr(links, '{');
	auto_free char *new = malloc(strlen(text) + 200);
	sprintf(new,
		"%.*s{\"back\": {\"class\": \"H5L_TYPE_HARD\", \"created\": 1, \"id\": \"%s\"}%s",
		(int)(open - text), text, inner, open + 1);
	gate_put(w->gate, key, new, strlen(new));
	/* b, b/refs, and its chunk. */
	assert_int_equal(collect(w, DOMAIN_PATH, &deleted), 0);
	assert_int_equal(deleted, 3);
	world_key(w, "b/inner/below", key);
	assert_true(world_has(w, key));
	world_end(w);
}

/* What leads to an object is not known. */
static void nothing_is_deleted_if_a_part_is_damaged(void **state)
{
	uint64_t deleted;
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = remove_group();
	world_key(w, "a", key);
	gate_put(w->gate, key, "{", 1);
	const size_t before = gate_keys(w->gate, "");
	assert_int_equal(collect(w, DOMAIN_PATH, &deleted), -EIO);
	assert_int_equal(deleted, 0);
	assert_int_equal(gate_keys(w->gate, ""), before);
	world_end(w);
}

/* Another program has written to one of the objects since. */
static void what_has_changed_stays(void **state)
{
	uint64_t deleted;
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = remove_group();
	world_key(w, "b/refs", key);
	auto_free char *text = world_text(w, key);
	auto_free char *other = NULL;
	assert_true(asprintf(&other, "%s ", text) > 0);
	gate_put(w->gate, key, other, strlen(other));
	/* b, b/inner, b/inner/below; b/refs and its chunk stay. */
	assert_int_equal(collect(w, DOMAIN_PATH, &deleted), 0);
	assert_int_equal(deleted, 3);
	assert_true(world_has(w, key));
	world_end(w);
}

/* The path has another domain by now. */
static void another_domain_is_left_alone(void **state)
{
	uint64_t deleted;
	struct world *w = remove_group();
	static const char document[] =
		"{\"root\": \"g-11111111-22222222-9999-9999aa-aaaaaa\", \"owner\": \"u\", "
		"\"acls\": {}, \"created\": 1.0, \"lastModified\": 1.0}";
	gate_put(w->gate, DOMAIN_PATH "/.domain.json", document, strlen(document));
	const size_t before = gate_keys(w->gate, "");
	collect(w, DOMAIN_PATH, &deleted);
	assert_int_equal(deleted, 0);
	assert_int_equal(gate_keys(w->gate, ""), before);
	world_end(w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(removed_objects_are_deleted),
		TEST(what_is_linked_again_stays),
		TEST(nothing_is_deleted_if_a_part_is_damaged),
		TEST(what_has_changed_stays),
		TEST(another_domain_is_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
