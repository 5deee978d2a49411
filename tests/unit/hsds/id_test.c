/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_test.h"

static void parses_and_formats(void **state)
{
	static const char *const good[] = {ROOT_ID, DATASET_ID, TYPE_ID,
					   "d-deadbeef-01234567-89ab-cdef00-112233",
					   "d-deadbeef-0123-4567-89ab-cdef00112233"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct schema_id id;
		char text[SCHEMA_ID_MAX];
		assert_true(schema_id_parse(good[i], strlen(good[i]), &id));
		schema_id_format(&id, text);
		assert_string_equal(text, good[i]);
	}
	assert_int_equal(test_id(good[3]).kind, OBJECT_DATASET);
	assert_hex(test_id(good[3]).b, 16, "deadbeef0123456789abcdef00112233");
	assert_hex(test_id(good[4]).b, 16, "deadbeef0123456789abcdef00112233");
	assert_int_equal(test_id(good[3]).form, SCHEMA_ID_V2);
	assert_int_equal(test_id(good[4]).form, SCHEMA_ID_V1);
	/* The same digits in the other form are another object. */
	const struct schema_id v2 = test_id(good[3]), v1 = test_id(good[4]);
	assert_false(schema_id_equal(&v2, &v1));
	assert_string_equal(schema_id_version(v1.form), "v1");
	assert_string_equal(schema_id_version(v2.form), "v2");
}

static void takes_collections_and_padding(void **state)
{
	static const char padded[48] = "datasets/" DATASET_ID;
	struct schema_id want = test_id(DATASET_ID);
	struct schema_id id;
	assert_true(schema_id_parse(padded, sizeof(padded), &id));
	assert_true(schema_id_equal(&id, &want));
	assert_true(schema_id_parse(DATASET_ID "   ", strlen(DATASET_ID) + 3, &id));
	assert_true(schema_id_equal(&id, &want));
	assert_true(schema_id_parse("groups/" ROOT_ID, 7 + 38, &id));
	assert_true(schema_id_parse("datatypes/" TYPE_ID, 10 + 38, &id));
	want.kind = OBJECT_GROUP;
	assert_false(schema_id_equal(&id, &want));
}

static void refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"d",
		"groups/" DATASET_ID,
		"/" DATASET_ID,
		"xdatasets/" DATASET_ID,
		DATASET_ID "0",
		"c-00112233-44556677-0002-000000-000000",
		"d-00112233-44556677-0002-000000-00000",
		"d-00112233-44556677-0002-000000-00000g",
		"d-00112233-44556677-0002-000000-00000A",
		"d-00112233x44556677-0002-000000-000000",
		"d-00112233-4455-6677-8899-aabbccddeef",
		"d-00112233-4455-6677-8899-aabbccddeeff0",
		"d-00112233-4455-6677-8899aaabbccddeeff",
		"d-00112233-445566-77-8899-aabbccddeeff",
		"<HDF5 object reference>",
	};
	struct schema_id id;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (schema_id_parse(bad[i], strlen(bad[i]), &id))
			fail_msg("accepted: %s", bad[i]);
	static const char nul_inside[] = "datasets\0" DATASET_ID;
	assert_false(schema_id_parse(nul_inside, sizeof(nul_inside), &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_and_formats),
		cmocka_unit_test(takes_collections_and_padding),
		cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
