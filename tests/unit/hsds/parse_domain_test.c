/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_test.h"

static int parse(const char *text, struct arena *a, struct domain_info *d, struct err *err)
{
	return schema_domain_parse(a, text, strlen(text), d, err);
}

static void reads_a_domain(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct domain_info d;
	assert_int_equal(
		parse("{\"root\": \"" ROOT_ID "\", \"owner\": \"test_user1\", \"acls\": "
		      "{\"test_user1\": {\"create\": true, \"read\": true, \"update\": true, "
		      "\"delete\": true, \"readACL\": true, \"updateACL\": true}, \"default\": "
		      "{\"create\": false, \"read\": true, \"domain\": \"broad/x\"}}, \"created\": "
		      "1795231615.5028985, \"lastModified\": 1795231616}",
		      a, &d, NULL),
		0);
	assert_string_equal(d.root, ROOT_ID);
	assert_string_equal(d.owner, "test_user1");
	assert_int_equal(d.nacls, 2);
	assert_string_equal(d.acls[0].user, "test_user1");
	assert_int_equal(d.acls[0].perms, 63);
	assert_string_equal(d.acls[1].user, "default");
	assert_int_equal(d.acls[1].perms, DOMAIN_PERM_READ);
	/* microseconds, the precision of the service */
	assert_int_equal(d.created_ns / 1000, INT64_C(1795231615502898));
	assert_int_equal(d.modified_ns, INT64_C(1795231616000000000));
	arena_free(a);
}

static void reads_folders_and_gaps(void **state)
{
	static const char *const folders[] = {
		"{}",
		"{\"owner\":null,\"acls\":null,\"created\":null,\"root\":null}",
		"{\"owner\":7,\"created\":\"x\",\"lastModified\":1e300}",
		"{\"created\":NaN,\"lastModified\":99999999999999999999}",
	};
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		struct arena *a = arena_new(1 << 20);
		struct domain_info d;
		assert_int_equal(parse(folders[i], a, &d, NULL), 0);
		assert_null(d.root);
		assert_string_equal(d.owner, "");
		assert_int_equal(d.nacls, 0);
		assert_int_equal(d.created_ns, 0);
		assert_int_equal(d.modified_ns, 0);
		arena_free(a);
	}
}

static void refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{",
		"{\"root\":7}",
		"{\"root\":\"\"}",
		"{\"root\":\"" DATASET_ID "\"}",
		"{\"root\":\"d-00112233-4455-6677-8899-aabbccddeeff\"}",
		"{\"root\":\"g-00112233-4455-6677-8899aabbccddeeff\"}",
		"{\"acls\":[]}",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct arena *a = arena_new(1 << 20);
		struct domain_info d;
		struct err err = ERR_INIT;
		assert_int_equal(parse(bad[i], a, &d, &err), -EIO);
		assert_int_equal(err.code, -EIO);
		assert_true(err.msg[0] != '\0');
		arena_free(a);
	}
}

static void out_of_memory_is_told_apart(void **state)
{
	struct arena *a = arena_new(16);
	struct domain_info d;
	assert_int_equal(parse("{\"owner\":\"somebody with a long name\"}", a, &d, NULL), -ENOMEM);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_domain),
		cmocka_unit_test(reads_folders_and_gaps),
		cmocka_unit_test(refuses),
		cmocka_unit_test(out_of_memory_is_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
