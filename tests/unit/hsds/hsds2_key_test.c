/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_test.h"

#include "schema/hsds/hsds_load.h"

#define PREFIX "db/00112233-44556677/"

static void domain_keys(void **state)
{
	static const struct {
		const char *path, *key;
	} rows[] = {
		{"", ".domain.json"},
		{"top.h5", "top.h5/.domain.json"},
		{"home/ünï folder/x.h5", "home/ünï folder/x.h5/.domain.json"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char key[SCHEMA_KEY_MAX];
		size_t path_len = 99;
		assert_int_equal(hsds2_domain_key(rows[i].path, key, sizeof(key)),
				 strlen(rows[i].key));
		assert_string_equal(key, rows[i].key);
		assert_true(hsds2_is_domain_key(key, &path_len));
		assert_int_equal(path_len, strlen(rows[i].path));
	}
	size_t n;
	assert_false(hsds2_is_domain_key("", &n));
	assert_false(hsds2_is_domain_key("a.domain.json", &n));
	assert_false(hsds2_is_domain_key("/.domain.json", &n));
	assert_false(hsds2_is_domain_key("a/.domain.jsonx", &n));
	assert_true(hsds2_is_storage("db"));
	assert_true(hsds2_is_storage("db/x"));
	assert_false(hsds2_is_storage("db.h5"));
	assert_false(hsds2_is_storage("home/db"));
}

static void object_keys(void **state)
{
	static const struct {
		const char *id, *key;
	} rows[] = {
		{ROOT_ID, PREFIX ".group.json"},
		{GROUP_ID, PREFIX "g/0001-000000-000000/.group.json"},
		{DATASET_ID, PREFIX "d/0002-000000-000000/.dataset.json"},
		{TYPE_ID, PREFIX "t/0003-000000-000000/.datatype.json"},
		/* only a group can be the root */
		{"d-00112233-44556677-8899-aabbcc-ddeeff",
		 PREFIX "d/8899-aabbcc-ddeeff/.dataset.json"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct schema_id id = test_id(rows[i].id);
		struct hsds2_key k;
		char key[SCHEMA_KEY_MAX];
		assert_int_equal(hsds2_object_key(&id, key, sizeof(key)), strlen(rows[i].key));
		assert_string_equal(key, rows[i].key);
		hsds2_key_classify(key, &k);
		assert_int_equal(k.cls, HSDS2_KEY_OBJECT);
		assert_true(schema_id_equal(&k.id, &id));
	}
}

static void prefixes(void **state)
{
	struct schema_id root = test_id(ROOT_ID);
	struct schema_id want = test_id(TYPE_ID);
	struct schema_id id;
	char key[SCHEMA_KEY_MAX];
	assert_true(hsds2_storage_prefix(&root, key, sizeof(key)) > 0);
	assert_string_equal(key, PREFIX);
	assert_true(hsds2_info_key(&root, key, sizeof(key)) > 0);
	assert_string_equal(key, PREFIX ".info.json");
	static const char *const all[] = {PREFIX "g/", PREFIX "d/", PREFIX "t/"};
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(hsds2_object_prefix(&root, i, key, sizeof(key)) > 0);
		assert_string_equal(key, all[i]);
	}
	assert_int_equal(hsds2_object_prefix(&root, 3, key, sizeof(key)), 0);
	assert_true(hsds2_object_of_prefix(PREFIX "t/0003-000000-000000/", &id));
	assert_true(schema_id_equal(&id, &want));
	assert_false(hsds2_object_of_prefix(PREFIX "t/0003-000000-000000", &id));
	assert_false(hsds2_object_of_prefix(PREFIX "t/0003-000000-000000/p1/", &id));
	assert_false(hsds2_object_of_prefix(PREFIX "x/0003-000000-000000/", &id));
	assert_false(hsds2_object_of_prefix(PREFIX "g/8899-aabbcc-ddeeff/", &id)); /* root */
}

static void too_long(void **state)
{
	struct schema_id id = test_id(DATASET_ID);
	char key[SCHEMA_KEY_MAX + 1];
	char path[SCHEMA_KEY_MAX + 8];
	int n = hsds2_object_key(&id, key, sizeof(key));
	assert_true(n > 0);
	assert_int_equal(hsds2_object_key(&id, key, (size_t)n), -ENAMETOOLONG);
	assert_int_equal(hsds2_object_key(&id, key, (size_t)n + 1), n);
	assert_int_equal(hsds2_object_key(&id, key, 0), -ENAMETOOLONG);
	memset(path, 'x', sizeof(path));
	path[SCHEMA_KEY_MAX - 13] = '\0';
	assert_int_equal(hsds2_domain_key(path, key, sizeof(key)), SCHEMA_KEY_MAX);
	path[SCHEMA_KEY_MAX - 13] = 'x';
	path[SCHEMA_KEY_MAX - 12] = '\0';
	char room[2 * SCHEMA_KEY_MAX];
	assert_int_equal(hsds2_domain_key(path, room, sizeof(room)), -ENAMETOOLONG);
}

static struct object *dataset_of(struct parsed *p, const char *dims, const char *layout)
{
	char text[512];
	snprintf(text, sizeof(text),
		 "\"type\":\"H5T_STD_I32LE\",\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":%s},"
		 "\"layout\":%s",
		 dims, layout);
	*p = parse_dataset(text);
	assert_int_equal(p->rc, 0);
	return &p->o;
}

static void chunk_keys(void **state)
{
	static const struct {
		const char *dims, *layout;
		uint64_t coords[3];
		const char *key;
	} rows[] = {
		{"[40]", "{\"dims\":[4]}", {9}, "9"},
		{"[40,9,9]", "{\"dims\":[4,1,1]}", {3, 0, 8}, "3_0_8"},
		{"[9,9]", "{\"dims\":[1,1],\"partition_count\":1}", {3, 4}, "3_4"},
		/* (33 * 29 + 37 * 31) mod 50 */
		{"[100,100]", "{\"dims\":[2,2],\"partition_count\":50}", {33, 37}, "p4/33_37"},
		/* as integers of any size: ((2^60 - 1) * 29) mod 1000 */
		{"[4611686018427387904]",
		 "{\"dims\":[4],\"partition_count\":1000}",
		 {(UINT64_C(1) << 60) - 1},
		 "p275/1152921504606846975"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p;
		struct object *o = dataset_of(&p, rows[i].dims, rows[i].layout);
		char key[SCHEMA_KEY_MAX];
		char want[SCHEMA_KEY_MAX];
		unsigned int step = 0;
		struct chunk_place place = {.key = key, .room = sizeof(key)};
		const uint64_t number = grid_number(&o->dataset.grid, rows[i].coords);
		uint64_t found = 0;
		snprintf(want, sizeof(want), PREFIX "d/0002-000000-000000/%s", rows[i].key);
		assert_int_equal(hsds2_locate(o, NULL, number, &step, NULL, &place, NULL), 0);
		assert_string_equal(key, want);
		assert_true(place.offset == 0 && place.length == CHUNK_TO_END && !place.absent);
		assert_true(hsds2_chunk_of_key(o, key, &found));
		assert_true(found == number);
		parsed_release(&p);
	}
}

/* Keys at which no chunk of the dataset is read. */
static void keys_of_no_chunk(void **state)
{
	static const char *const others[] = {
		"d/0002-000000-000000/.dataset.json", /* its document */
		"d/0003-000000-000000/3_4",	      /* of another dataset */
		"d/0002-000000-000000/3",	      /* of another rank */
		"d/0002-000000-000000/3_4_0",
		"d/0002-000000-000000/9_0", /* outside of the grid */
		"d/0002-000000-000000/0_9",
		"d/0002-000000-000000/p0/3_4", /* a partition */
	};
	struct parsed p;
	struct object *o = dataset_of(&p, "[9,9]", "{\"dims\":[1,1]}");
	uint64_t number;
	assert_true(hsds2_chunk_of_key(o, PREFIX "d/0002-000000-000000/8_8", &number));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		char key[SCHEMA_KEY_MAX];
		snprintf(key, sizeof(key), PREFIX "%s", others[i]);
		if (hsds2_chunk_of_key(o, key, &number))
			fail_msg("%s", key);
	}
	parsed_release(&p);
}

static void classifies_unknown_keys_as_other(void **state)
{
	static const char *const others[] = {
		"",
		"db",
		"db/",
		PREFIX,
		PREFIX ".info.json",
		PREFIX ".group.jsonx",
		PREFIX "g/",
		PREFIX "g/0001-000000-000000/",
		PREFIX "g/0001-000000-000000/.dataset.json",
		PREFIX "g/0001-000000-000000/0",
		PREFIX "g/8899-aabbcc-ddeeff/.group.json",
		PREFIX "d/0002-000000-000000/",
		PREFIX "d/0002-000000-000000/x",
		PREFIX "d/0002-000000-000000/0_",
		PREFIX "d/0002-000000-000000/_0",
		PREFIX "d/0002-000000-000000/00",
		PREFIX "d/0002-000000-000000/-1",
		PREFIX "d/0002-000000-000000/0 ",
		PREFIX "d/0002-000000-000000/18446744073709551616",
		PREFIX "d/0002-000000-000000/p/0",
		PREFIX "d/0002-000000-000000/p3",
		PREFIX "d/0002-000000-000000/p3/",
		PREFIX "d/0002-000000-000000/p03/0",
		PREFIX "d/0002-000000-000000/3/0",
		PREFIX "d/0002-00000A-000000/0",
		"db/0011223-344556677/.group.json",
		"xdb/00112233-44556677/.group.json",
		PREFIX "d/0002-000000-000000/"
		       "0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0_0",
	};
	struct hsds2_key k;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		hsds2_key_classify(others[i], &k);
		if (k.cls != HSDS2_KEY_OTHER)
			fail_msg("class %d: %s", k.cls, others[i]);
	}
	/* A stored chunk may be outside the extent of the dataset. */
	hsds2_key_classify(PREFIX "d/0002-000000-000000/18446744073709551615", &k);
	assert_int_equal(k.cls, HSDS2_KEY_CHUNK);
	assert_true(k.coords[0] == UINT64_MAX);
}

/* Ids, numbers and references of a domain whose hash table has collisions. */
static void objects_by_id(void **state)
{
	enum { N = 100 };
	struct arena *arena = arena_new(1 << 20);
	struct hsds_space s = {0};
	char text[SCHEMA_ID_MAX + 16], key[SCHEMA_KEY_MAX + 1];
	const char *etag;
	for (unsigned int i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "d-00112233-44556677-%04x-000000-000000", i);
		const struct hsds_entry entry = {.id = test_id(text),
						 .etag = i == 7 ? "seven" : ""};
		assert_int_equal(hsds_space_add(&s, arena, &entry), 0);
	}
	for (unsigned int i = 0; i < N; i++) {
		snprintf(text, sizeof(text), "datasets/d-00112233-44556677-%04x-000000-000000", i);
		assert_int_equal(hsds_number(&s, &s.entries[i].id), i);
		assert_int_equal(hsds_resolve(&s.base, text, strlen(text)), i + 1);
	}
	const struct schema_id other = test_id(GROUP_ID);
	assert_int_equal(hsds_number(&s, &other), OBJECT_NONE);
	assert_int_equal(hsds_resolve(&s.base, GROUP_ID, strlen(GROUP_ID)), 0);
	assert_int_equal(hsds_resolve(&s.base, "", 0), 0);
	assert_true(hsds_space_key(&s.base, 7, key, sizeof(key), &etag) > 0);
	assert_string_equal(key, PREFIX "d/0007-000000-000000/.dataset.json");
	assert_string_equal(etag, "seven");
	arena_free(arena);
}

/* A key that does not fit its buffer, which may have no byte at all. */
static void short_buffers(void **state)
{
	const struct schema_id id = test_id(DATASET_ID), root = test_id(ROOT_ID);
	char key[SCHEMA_KEY_MAX + 1];
	const int n = hsds2_object_key(&id, key, sizeof(key));
	assert_int_equal(n, strlen(key));
	for (size_t cap = 0; cap <= (size_t)n; cap++) {
		assert_int_equal(hsds2_object_key(&id, key, cap), -ENAMETOOLONG);
		if (cap <= sizeof("x/.domain.json") - 1)
			assert_int_equal(hsds2_domain_key("x", key, cap), -ENAMETOOLONG);
		if (cap <= sizeof(PREFIX) - 1)
			assert_int_equal(hsds2_storage_prefix(&root, key, cap), -ENAMETOOLONG);
	}
	assert_int_equal(hsds2_object_key(&id, key, (size_t)n + 1), n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domain_keys),
		cmocka_unit_test(object_keys),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(too_long),
		cmocka_unit_test(chunk_keys),
		cmocka_unit_test(keys_of_no_chunk),
		cmocka_unit_test(classifies_unknown_keys_as_other),
		cmocka_unit_test(objects_by_id),
		cmocka_unit_test(short_buffers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
