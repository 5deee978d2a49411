/* SPDX-License-Identifier: Apache-2.0 */
/* Ids, times and keys of new domains. */
#include "schema_test.h"

#include <data/tree.h>
#include <bucket/schemas.h>

#include "schema/hsds/parse.h"
#include "shape_arena.h"
#include "storages.h"

#define DOMAIN UINT64_C(0x0123456789abcdef)
#define NOW    (INT64_C(1700000000) * 1000000000 + 123456789)

static const struct schema_ops *ops(void)
{
	return schema_all()[0];
}

static struct tree *tree_of(uint32_t n, enum object_kind kind)
{
	struct tree *t = tree_new(64 << 20);
	uint32_t number;
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(tree_add(t, &number, NULL), 0);
		tree_edit(t, i)->kind = i ? kind : OBJECT_GROUP;
	}
	return t;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void ids_follow_from_domain_and_number(void **state)
{
	enum { N = 100000 };
	struct tree *a = tree_of(N, OBJECT_GROUP), *b = tree_of(10, OBJECT_DATATYPE);
	const char **ids = calloc(N, sizeof(*ids));
	assert_int_equal(ops()->writer->adopt(a, STORAGE(DOMAIN), NOW, NULL), 0);
	assert_int_equal(ops()->writer->adopt(b, STORAGE(DOMAIN), NOW + 1, NULL), 0);
	assert_string_equal(tree_object(a, 0)->o.id, "g-01234567-89abcdef-89ab-cdef01-234567");
	for (uint32_t i = 0; i < N; i++) {
		struct schema_id id = test_id(tree_object(a, i)->o.id);
		assert_int_equal(hsds2_is_root(&id), i == 0);
		assert_memory_equal(id.b, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
		ids[i] = tree_object(a, i)->o.id;
	}
	for (uint32_t i = 1; i < 10; i++)
		assert_string_equal(tree_object(b, i)->o.id + 1, ids[i] + 1);
	qsort(ids, N, sizeof(*ids), compare_ids);
	for (uint32_t i = 1; i < N; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
	free(ids);
	tree_free(a);
	tree_free(b);
}

/* The own times of links are kept while they increase by a microsecond. */
static void times_are_distinct_and_increase(void **state)
{
	static const struct {
		int64_t own, expected;
	} rows[] = {
		{0, NOW / 1000 * 1000},
		{0, NOW / 1000 * 1000 + 1000},
		{NOW + 5000000, (NOW + 5000000) / 1000 * 1000},
		{NOW + 5000000, (NOW + 5000000) / 1000 * 1000 + 1000},
		{NOW, (NOW + 5000000) / 1000 * 1000 + 2000},
		{-7, (NOW + 5000000) / 1000 * 1000 + 3000},
		{2 * NOW, 2 * NOW / 1000 * 1000},
	};
	enum { N = sizeof(rows) / sizeof(rows[0]) };
	struct tree *t = tree_of(2, OBJECT_GROUP);
	struct object *o = tree_edit(t, 0);
	o->group.links = arena_array(tree_arena(t), N, sizeof(*o->group.links));
	o->attrs = arena_array(tree_arena(t), N, sizeof(*o->attrs));
	o->group.nlinks = o->nattrs = N;
	for (uint32_t i = 0; i < N; i++)
		o->group.links[i].created_ns = o->attrs[i].created_ns = rows[i].own;
	tree_edit(t, 1)->modified_ns = 77;
	assert_int_equal(ops()->writer->adopt(t, STORAGE(DOMAIN), NOW, NULL), 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(o->group.links[i].created_ns, rows[i].expected);
		assert_int_equal(o->attrs[i].created_ns, rows[i].expected);
	}
	assert_int_equal(o->created_ns, NOW);
	assert_int_equal(o->modified_ns, NOW);
	assert_int_equal(tree_object(t, 1)->o.created_ns, 77);
	tree_free(t);
}

/* A million links a microsecond apart keep their order in JSON, whose numbers are doubles. */
static void times_stay_distinct_in_json(void **state)
{
	int64_t last = 0;
	for (int64_t i = 0; i < 1000000; i += 7) {
		const int64_t ns = INT64_C(4000000000) * 1000000000 + 999000000 + i * 1000;
		char text[40];
		snprintf(text, sizeof(text), "%lld.%06lld", (long long)(ns / 1000000000),
			 (long long)(ns % 1000000000 / 1000));
		json_t *real = json_real(strtod(text, NULL));
		const int64_t read = schema_time_ns(real);
		json_decref(real);
		assert_true(read > last);
		last = read;
	}
}

static void keys_are_those_of_the_loader(void **state)
{
	struct tree *t = tree_of(3, OBJECT_DATASET);
	struct dataset *ds = &tree_edit(t, 1)->dataset;
	char key[SCHEMA_KEY_MAX + 1];
	struct chunk_place place = {.key = key, .room = sizeof(key)};
	unsigned int step = 0;
	char expected[SCHEMA_KEY_MAX + 1];
	uint64_t number;
	grid_init(shape_arena(), &ds->grid, 2, (const uint64_t[]){7, 9}, (const uint64_t[]){2, 3},
		  NULL);
	tree_edit(t, 2)->kind = OBJECT_DATATYPE;
	assert_int_equal(ops()->writer->adopt(t, STORAGE(DOMAIN), NOW, NULL), 0);
	assert_true(ops()->writer->object_key(t, 0, key, sizeof(key)) > 0);
	assert_string_equal(key, "db/01234567-89abcdef/.group.json");
	int n = ops()->writer->object_key(t, 1, key, sizeof(key));
	assert_int_equal(n, strlen(key));
	assert_memory_equal(key, "db/01234567-89abcdef/d/", 23);
	assert_int_equal(ops()->writer->object_key(t, 1, key, 30), -ENAMETOOLONG);
	assert_true(ops()->writer->chunk_key(t, 1, 5, expected, sizeof(expected)) > 0);
	assert_int_equal(ops()->locate(&tree_object(t, 1)->o, NULL, 5, &step, NULL, &place, NULL),
			 0);
	assert_string_equal(key, expected);
	assert_string_equal(strrchr(key, '/'), "/1_2");
	assert_true(ops()->chunk_of_key(&tree_object(t, 1)->o, key, &number));
	assert_int_equal(number, 5);
	assert_int_equal(ops()->writer->chunk_key(t, 1, 12, key, sizeof(key)), -EINVAL);
	assert_int_equal(ops()->writer->chunk_key(t, 2, 0, key, sizeof(key)), -EINVAL);
	assert_string_equal(STORAGE(DOMAIN)->prefix, "db/01234567-89abcdef/");
	assert_true(ops()->documents->key("home/u/a.h5", key, sizeof(key)) > 0);
	assert_string_equal(key, "home/u/a.h5/.domain.json");
	tree_free(t);
}

static void an_object_without_id_has_no_key(void **state)
{
	struct tree *t = tree_of(2, OBJECT_DATASET);
	char key[SCHEMA_KEY_MAX + 1];
	assert_int_equal(ops()->writer->object_key(t, 1, key, sizeof(key)), -EINVAL);
	assert_int_equal(ops()->writer->chunk_key(t, 1, 0, key, sizeof(key)), -EINVAL);
	tree_free(t);
}

static void the_root_tells_the_domain(void **state)
{
	struct err err = ERR_INIT;
	struct storage storage;
	assert_int_equal(schema_storage_of_root(ops(), "g-01234567-89abcdef-89ab-cdef01-234567",
						&storage, &err),
			 0);
	assert_true(same_storage(&storage, STORAGE(DOMAIN)));
	assert_true(storage_number(&storage) == DOMAIN);
	static const char *const bad[] = {"", "g-01234567-89abcdef-89ab-cdef01-234568",
					  "d-01234567-89abcdef-89ab-cdef01-234567", "x"};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(schema_storage_of_root(ops(), bad[i], &storage, &err), -EIO);
	assert_contains(err.msg, "is not the id of a root group");
}

/* Numbers have the order of keys, also of keys that are in no storage. */
static void keys_have_the_order_of_numbers(void **state)
{
	static const struct {
		const char *key;
		uint64_t number;
	} rows[] = {
		{"", 0},
		{"db/", 0},
		{"db/.import-01", 0},
		{"db/01234567-89abcdef/.group.json", DOMAIN},
		{"db/01234567-89abcdef0", DOMAIN},
		{"db/01234567-89abcdeg", DOMAIN},
		{"db/0123456:", UINT64_C(0x0123456fffffffff)},
		{"db/ffffffff-ffffffff/d/x", UINT64_MAX},
		{"db/x", UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(ops()->storage->number(rows[i].key) == rows[i].number);
}

static void import_keys_are_hidden(void **state)
{
	char a[SCHEMA_KEY_MAX + 1], b[SCHEMA_KEY_MAX + 1];
	int n = ops()->writer->import_key("home/a.h5", a, sizeof(a));
	assert_int_equal(n, strlen(a));
	assert_true(ops()->writer->import_key("home/b.h5", b, sizeof(b)) > 0);
	assert_string_not_equal(a, b);
	assert_true(ops()->is_storage(a));
	assert_false(ops()->is_document(a));
	struct hsds2_key k;
	hsds2_key_classify(a, &k);
	assert_int_equal(k.cls, HSDS2_KEY_OTHER);
	n = ops()->writer->import_key("home/a.h5", b, sizeof(b));
	assert_int_equal(n, strlen(b));
	assert_string_equal(a, b);
	assert_int_equal(ops()->writer->import_key("home/a.h5", b, 10), -ENAMETOOLONG);
}

/* Half of the objects keep their ids, which adopt() has given. */
static void new_objects_get_ids_of_their_own(void **state)
{
	enum { N = 20000 };
	struct tree *a = tree_of(N, OBJECT_DATASET), *b = tree_of(N, OBJECT_DATASET),
		    *c = tree_of(N, OBJECT_DATASET);
	struct tree *const trees[] = {a, b, c};
	const char **ids = calloc((size_t)3 * N, sizeof(*ids));
	size_t n = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ops()->writer->adopt(trees[i], STORAGE(DOMAIN), NOW, NULL), 0);
		for (uint32_t k = N / 2; k < N; k++) {
			tree_edit(trees[i], k)->id = NULL;
			tree_edit(trees[i], k)->dataset.locator = NULL;
			tree_edit(trees[i], k)->created_ns = 0;
			tree_edit(trees[i], k)->modified_ns = 0;
		}
		const char *kept = tree_object(trees[i], 7)->o.id;
		assert_int_equal(
			ops()->editor->adopt_new(trees[i], i == 2 ? 1 : DOMAIN, NOW + 5, NULL), 0);
		assert_ptr_equal(kept, tree_object(trees[i], 7)->o.id);
		for (uint32_t k = 0; k < N; k++)
			if (i == 0 || (i == 2 && k >= N / 2))
				ids[n++] = tree_object(trees[i], k)->o.id;
	}
	for (uint32_t k = 0; k < N; k++) {
		const struct object *o = &tree_object(a, k)->o;
		const struct schema_id id = test_id(o->id);
		assert_string_equal(o->id, tree_object(b, k)->o.id);
		assert_memory_equal(id.b, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
		assert_int_equal(o->created_ns, k < N / 2 ? NOW : NOW + 5);
		if (k == 0)
			continue;
		const struct hsds2_locator *loc = o->dataset.locator;
		assert_true(schema_id_equal(&loc->id, &id));
		assert_int_equal(loc->partition_count, 1);
	}
	qsort(ids, n, sizeof(*ids), compare_ids);
	for (size_t i = 1; i < n; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
	free(ids);
	for (int i = 0; i < 3; i++)
		tree_free(trees[i]);
}

/* If an object has the id that a new one would get, the new one gets another. */
static void taken_ids_are_not_given_again(void **state)
{
	struct tree *a = tree_of(3, OBJECT_GROUP), *b = tree_of(3, OBJECT_GROUP);
	tree_edit(a, 0)->id = tree_edit(b, 0)->id = "g-01234567-89abcdef-89ab-cdef01-234567";
	assert_int_equal(ops()->editor->adopt_new(a, 9, NOW, NULL), 0);
	tree_edit(b, 1)->id = tree_object(a, 2)->o.id;
	assert_int_equal(ops()->editor->adopt_new(b, 9, NOW, NULL), 0);
	assert_ptr_equal(tree_object(b, 1)->o.id, tree_object(a, 2)->o.id);
	assert_string_not_equal(tree_object(b, 2)->o.id, tree_object(a, 2)->o.id);
	tree_free(a);
	tree_free(b);
}

static void new_objects_need_a_root(void **state)
{
	struct tree *t = tree_of(2, OBJECT_GROUP);
	assert_int_equal(ops()->editor->adopt_new(t, 1, NOW, NULL), -EINVAL);
	tree_edit(t, 0)->id = "g-01234567-89abcdef-89ab-cdef01-234568";
	assert_int_equal(ops()->editor->adopt_new(t, 1, NOW, NULL), -EINVAL);
	assert_null(tree_object(t, 1)->o.id);
	tree_free(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_follow_from_domain_and_number),
		cmocka_unit_test(times_are_distinct_and_increase),
		cmocka_unit_test(times_stay_distinct_in_json),
		cmocka_unit_test(keys_are_those_of_the_loader),
		cmocka_unit_test(an_object_without_id_has_no_key),
		cmocka_unit_test(new_objects_get_ids_of_their_own),
		cmocka_unit_test(taken_ids_are_not_given_again),
		cmocka_unit_test(new_objects_need_a_root),
		cmocka_unit_test(the_root_tells_the_domain),
		cmocka_unit_test(keys_have_the_order_of_numbers),
		cmocka_unit_test(import_keys_are_hidden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
