/* SPDX-License-Identifier: Apache-2.0 */
/* Valid and invalid keys. */
#include "store_fixture.h"

static void test_table(void **state)
{
	static const struct {
		const char *key;
		bool ok;
	} cases[] = {
		{"a", true},	    {"a/b", true},     {"...", true},	  {".a", true},
		{"a..", true},	    {"..a/b..", true}, {"a/.b/c", true},  {"\n", true},
		{"\xff/x", true},   {" ", true},       {"", false},	  {"/", false},
		{"/a", false},	    {"a/", false},     {"a//b", false},	  {".", false},
		{"..", false},	    {"./a", false},    {"../a", false},	  {"a/.", false},
		{"a/..", false},    {"a/./b", false},  {"a/../b", false}, {"//", false},
		{"a/b/../", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(store_key_ok(cases[i].key), cases[i].ok);
	assert_false(store_key_ok(NULL));
}

static void test_length(void **state)
{
	char key[STORE_KEY_MAX + 2];
	memset(key, 'x', sizeof(key));
	key[STORE_KEY_MAX + 1] = '\0';
	assert_false(store_key_ok(key));
	key[STORE_KEY_MAX] = '\0';
	assert_true(store_key_ok(key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
