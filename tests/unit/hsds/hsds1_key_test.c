/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of schema v1. Those of real objects are from a bucket that the service wrote. */
#include "schema_test.h"

#include "schema/hsds/hsds1.h"

#define UUID "953ef986-e555-11f1-b213-02fc00000001"

static void object_keys(void **state)
{
	static const struct {
		const char *id, *key;
	} rows[] = {
		{"g-99e12932-e555-11f1-b213-02fc00000001",
		 "00e0f-g-99e12932-e555-11f1-b213-02fc00000001"},
		{"d-90ad91ca-e555-11f1-b213-02fc00000001",
		 "084c4-d-90ad91ca-e555-11f1-b213-02fc00000001"},
		{"d-95397bb4-e555-11f1-b213-02fc00000001",
		 "788b9-d-95397bb4-e555-11f1-b213-02fc00000001"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct schema_id id = test_id(rows[i].id);
		char key[SCHEMA_KEY_MAX + 1];
		const int n = hsds1_object_key(&id, key, sizeof(key));
		assert_int_equal(n, strlen(rows[i].key));
		assert_string_equal(key, rows[i].key);
		assert_true(hsds1_is_storage(key));
		for (size_t cap = 0; cap <= (size_t)n; cap++)
			assert_int_equal(hsds1_object_key(&id, key, cap), -ENAMETOOLONG);
	}
}

/* A dataset of schema v1 whose grid has the given shape. */
static struct object *dataset_of(struct parsed *p, const char *id_text, const char *dims,
				 const char *layout)
{
	const struct schema_id id = test_id(id_text);
	const struct schema_id root = test_id("g-" UUID);
	char text[512];
	*p = (struct parsed){.err = ERR_INIT};
	snprintf(text, sizeof(text),
		 "{\"id\":\"%s\",\"root\":\"g-" UUID "\",\"created\":1,\"lastModified\":2,"
		 "\"type\":\"H5T_STD_I32LE\",\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":%s},"
		 "\"layout\":%s,\"attributes\":{}}",
		 id_text, dims, layout);
	p->arena = arena_new(1 << 20);
	p->rc = schema_object_parse(p->arena, p->arena, &id, &root, text, strlen(text), NULL, NULL,
				    NULL, NULL, &p->o, &p->err);
	assert_string_equal(p->err.msg, "");
	return &p->o;
}

static void chunk_keys(void **state)
{
	static const struct {
		const char *id, *dims, *layout;
		uint64_t number;
		const char *key;
	} rows[] = {
		{"d-93a8fa5e-e555-11f1-b213-02fc00000001", "[100]", "{\"dims\":[100]}", 0,
		 "0110e-c-93a8fa5e-e555-11f1-b213-02fc00000001_0"},
		{"d-9633b048-e555-11f1-b213-02fc00000001", "[4,4]", "{\"dims\":[4,4]}", 0,
		 "02571-c-9633b048-e555-11f1-b213-02fc00000001_0_0"},
		/* 17 * 29 + 3 * 31 modulo 7 is 5; the hash is computed with another program */
		{"d-" UUID, "[40,40]", "{\"dims\":[2,2],\"partition_count\":7}", 17 * 20 + 3,
		 "185df-c5-" UUID "_17_3"},
		{"d-" UUID, "[40,40]", "{\"dims\":[2,2],\"partition_count\":1}", 17 * 20 + 3,
		 "5623d-c-" UUID "_17_3"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p;
		const struct object *o = dataset_of(&p, rows[i].id, rows[i].dims, rows[i].layout);
		char key[SCHEMA_KEY_MAX + 1];
		struct chunk_place place = {.key = key, .room = sizeof(key)};
		uint64_t number = 99;
		unsigned int step = 0;
		assert_int_equal(
			hsds1_ops.locate(o, NULL, rows[i].number, &step, NULL, &place, NULL), 0);
		assert_string_equal(key, rows[i].key);
		assert_true(place.length == CHUNK_TO_END);
		assert_true(hsds1_ops.chunk_of_key(o, key, &number));
		assert_int_equal(number, rows[i].number);
		assert_true(hsds1_is_storage(key));
		assert_int_equal(hsds1_ops.chunk_prefix(o, key, sizeof(key)), -EOPNOTSUPP);
		parsed_release(&p);
	}
}

/* Keys that are no chunks of the dataset. */
static void other_chunk_keys(void **state)
{
	static const char *const keys[] = {
		"00000-c-" UUID "_17_3",			    /* another hash */
		"5623d-c-" UUID "_17",				    /* another rank */
		"5623d-c-" UUID "_17_3_0", "5623d-c-" UUID "_20_3", /* out of range */
		"5623d-c1-" UUID "_17_3",  "5623d-c-953ef986-e555-11f1-b213-02fc00000002_17_3",
		"89d9f-d-" UUID,	   "5623d-c-" UUID,
		"5623d-c-" UUID "_017_3",  "5623d-c-" UUID "_18446744073709551616_3",
	};
	struct parsed p;
	const struct object *o = dataset_of(&p, "d-" UUID, "[40,40]", "{\"dims\":[2,2]}");
	uint64_t number;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (hsds1_chunk_of_key(o, keys[i], &number))
			fail_msg("accepted: %s", keys[i]);
	parsed_release(&p);
}

/* The dataset with the most dimensions and the longest coordinates. */
static void the_longest_key(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	uint64_t coords[DSPACE_MAX_RANK];
	struct hsds2_locator loc = {.id = test_id("d-" UUID), .partition_count = INT32_MAX};
	struct object o = {.kind = OBJECT_DATASET, .dataset = {.locator = &loc}};
	o.dataset.grid.rank = DSPACE_MAX_RANK;
	for (size_t d = 0; d < DSPACE_MAX_RANK; d++)
		coords[d] = UINT64_MAX;
	assert_true(hsds1_chunk_key(&o, coords, key, sizeof(key)) > 0);
	assert_int_equal(hsds1_chunk_key(&o, coords, key, 32), -ENAMETOOLONG);
}

static void files_of_the_service(void **state)
{
	static const char *const hidden[] = {"headnode", "topleveldomains.txt"};
	static const char *const shown[] = {"headnode/",       "home/headnode",
					    "topleveldomains", "topleveldomains.txt2",
					    "groups.txt",      "home"};
	static const char *const catalogs[] = {
		".groups.txt",
		"a/.groups.txt",
		"a/b/.datasets.txt",
		"a/b/.datatypes.txt",
		"a/.d-" UUID ".chunks.txt",
	};
	static const char *const others[] = {
		"a/groups.txt",
		"a/.groups.txt/x",
		"a/x.groups.txt",
		"a/.g-" UUID ".chunks.txt",
		"a/.d-00112233-44556677-0002-000000-000000.chunks.txt",
		"a/.d-" UUID ".chunks",
		"a/d-" UUID ".chunks.txt",
		"a/.d-" UUID,
		"a/.",
		"a/",
		"",
	};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_true(hsds1_is_storage(hidden[i]));
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		assert_false(hsds1_is_storage(shown[i]));
	for (size_t i = 0; i < sizeof(catalogs) / sizeof(catalogs[0]); i++)
		assert_true(hsds1_ops.is_document(catalogs[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(hsds1_ops.is_document(others[i]));
}

static void catalog_keys(void **state)
{
	char key[SCHEMA_KEY_MAX + 1];
	assert_int_equal(hsds1_catalog_key("home/x.h5", OBJECT_GROUP, key, sizeof(key)), 21);
	assert_string_equal(key, "home/x.h5/.groups.txt");
	assert_true(hsds1_catalog_key("", OBJECT_DATASET, key, sizeof(key)) > 0);
	assert_string_equal(key, ".datasets.txt");
	assert_int_equal(hsds1_catalog_key("x", OBJECT_DATATYPE, key, 16), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object_keys),		cmocka_unit_test(chunk_keys),
		cmocka_unit_test(other_chunk_keys),	cmocka_unit_test(the_longest_key),
		cmocka_unit_test(files_of_the_service), cmocka_unit_test(catalog_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
