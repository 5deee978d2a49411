/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: the contract with and without workers, and keys that a directory cannot
 * hold. */
#include "store_contract.h"

static int mem_inline(void **state)
{
	struct fixture *f = fixture_new(0);
	f->s = store_mem_new(&f->env, NULL);
	*state = f;
	return f->s ? 0 : -1;
}

static int mem_workers(void **state)
{
	struct fixture *f = fixture_new(4);
	f->s = store_mem_new(&f->env, NULL);
	*state = f;
	return f->s ? 0 : -1;
}

static void test_object_and_prefix(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	put_text(s, "a", "1");
	put_text(s, "a/b", "2");
	put_text(s, "a-b", "3");
	assert_object(s, "a", "1");
	assert_object(s, "a/b", "2");
	assert_listing(s, "", false, "a a-b a/b");
	assert_listing(s, "", true, "a a-b a/");
	assert_int_equal(call_delete(s, "a", NULL, NULL), 0);
	assert_listing(s, "", true, "a-b a/");
}

static void test_no_space(void **state)
{
	uint64_t free_bytes, total;
	assert_int_equal(store_space(((struct fixture *)*state)->s, &free_bytes, &total),
			 -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(mem_inline),
		CONTRACT_TESTS(mem_workers),
		CONTRACT_TEST(test_object_and_prefix, mem_inline),
		CONTRACT_TEST(test_no_space, mem_inline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
