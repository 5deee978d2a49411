/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that an update has removed: when they are deleted, and when they are not. */
#include "update_edits.h"
#include <bucket/schemas.h>

static int collect(struct world *w, const char *path, uint64_t *deleted)
{
	const struct domain_bucket bucket = {
		.env = &w->f.env, .store = &w->gate->base, .schemas = schema_all()};
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
	world_must_update(w, 2, 0);
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

/* The document of a group: as it is, and with one more link, which leads to b/inner. */
struct group {
	char key[SCHEMA_KEY_MAX + 1];
	char *without, *with;
};

static void group_begin(struct world *w, const char *path, struct group *g)
{
	const struct tree *t = domain_tree(w->domain);
	const char *inner = tree_object(t, find_object(t, "b/inner"))->o.id;
	world_key(w, path, g->key);
	g->without = world_text(w, g->key);
	const char *links = strstr(g->without, "\"links\"");
	assert_non_null(links);
	const char *open = strchr(links, '{') + 1;
	const char *comma = open[strspn(open, " \n")] == '}' ? "" : ",";
	assert_true(asprintf(&g->with,
			     "%.*s\"back\": {\"class\": \"H5L_TYPE_HARD\", \"created\": 1, "
			     "\"id\": \"%s\"}%s%s",
			     (int)(open - g->without), g->without, inner, comma, open) > 0);
}

static void group_end(struct group *g)
{
	free(g->without);
	free(g->with);
}

/* Another program has linked one of the objects again. */
static void what_is_linked_again_stays(void **state)
{
	uint64_t deleted;
	char key[SCHEMA_KEY_MAX + 1];
	struct group g;
	struct world *w = remove_group();
	group_begin(w, "a/empty", &g);
	gate_put(w->gate, g.key, g.with, strlen(g.with));
	group_end(&g);
	/* b, b/refs, and its chunk. */
	assert_int_equal(collect(w, DOMAIN_PATH, &deleted), 0);
	assert_int_equal(deleted, 3);
	world_key(w, "b/inner/below", key);
	assert_true(world_has(w, key));
	world_end(w);
}

static struct group from, to;
static struct gate *moved;
static unsigned int period; /* in requests */

static void move_back(struct store *bucket)
{
	const struct group was = from;
	gate_put(moved, to.key, to.with, strlen(to.with));
	gate_put(moved, from.key, from.without, strlen(from.without));
	from = to;
	to = was;
	moved->other_at += period;
}

/* Another program moves the link to another group, and back, all the time. If the group that gets
 * it was read before, and the other one is read afterwards, none of the two has the link. */
static void what_is_moved_all_the_time_stays(void **state)
{
	for (unsigned int i = 0; i < 6; i++) {
		uint64_t deleted;
		char key[SCHEMA_KEY_MAX + 1];
		struct world *w = remove_group();
		group_begin(w, "a/empty", &from);
		group_begin(w, "d", &to);
		gate_put(w->gate, from.key, from.with, strlen(from.with));
		world_key(w, "b/inner", key);
		gate_open(w->gate);
		moved = w->gate;
		moved->other = move_back;
		moved->other_at = 1 + i / 3;
		period = 1 + i % 3;
		const int rc = collect(w, DOMAIN_PATH, &deleted);
		assert_true(rc == 0 || rc == -ESTALE);
		assert_true(world_has(w, key));
		group_end(&from);
		group_end(&to);
		world_end(w);
	}
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
		TEST(what_is_moved_all_the_time_stays),
		TEST(nothing_is_deleted_if_a_part_is_damaged),
		TEST(what_has_changed_stays),
		TEST(another_domain_is_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
