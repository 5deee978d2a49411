/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_test.h"

static void reads_totals(void **state)
{
	static const char text[] =
		"{\"lastModified\": 1795231618.5, \"num_groups\": 3, \"num_datatypes\": 2, "
		"\"datasets\": {\"" DATASET_ID "\": {\"num_chunks\": 7}}, \"num_chunks\": 7, "
		"\"allocated_bytes\": 4096, \"metadata_bytes\": 3252, \"logical_bytes\": 8192}";
	struct schema_info info;
	assert_int_equal(schema_info_parse(text, sizeof(text) - 1, &info, NULL), 0);
	assert_int_equal(info.num_objects, 6);
	assert_int_equal(info.num_chunks, 7);
	assert_int_equal(info.allocated_bytes, 4096);
	assert_int_equal(info.metadata_bytes, 3252);
	assert_int_equal(info.logical_bytes, 8192);
	assert_int_equal(info.modified_ns, INT64_C(1795231618500000000));
	assert_int_equal(schema_info_parse("{}", 2, &info, NULL), 0);
	assert_int_equal(info.num_objects, 0);
}

static void refuses(void **state)
{
	static const char *const bad[] = {"", "{", "{\"num_chunks\":-1}", "{\"num_groups\":\"3\"}",
					  "{\"logical_bytes\":1.5}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct schema_info info;
		struct err err = ERR_INIT;
		assert_int_equal(schema_info_parse(bad[i], strlen(bad[i]), &info, &err), -EIO);
		assert_true(err.msg[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_totals),
		cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
