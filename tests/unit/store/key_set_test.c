/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a listing: all are found, with their sizes, and no others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "import/import_internal.h"
#include "mem_store.h"
#include "store_calls.h"

enum { KEYS = 5000 /* several pages, and several sizes of the table */ };

static const char *key_of(char *key, size_t room, unsigned int i)
{
	snprintf(key, room, "p/%u_%u", i / 7, i % 7);
	return key;
}

static void fill(struct store *s, unsigned int n)
{
	static const char bytes[64];
	char key[32];
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(
			call_put(s, key_of(key, sizeof(key), i), bytes, i % 60, NULL, NULL, NULL),
			0);
	assert_int_equal(call_put(s, "q/1", bytes, 1, NULL, NULL, NULL), 0);
}

static void test_finds(void **state)
{
	struct env env = env_real(NULL, pool_new(0));
	struct store *s = store_mem_new(&env, NULL);
	struct key_set *set;
	uint64_t size;
	char key[32];
	fill(s, KEYS);
	assert_int_equal(key_set_list(s, env.budget, "p/", NULL, &set, NULL), 0);
	for (unsigned int i = 0; i < KEYS; i++) {
		assert_true(key_set_find(set, key_of(key, sizeof(key), i), &size));
		assert_int_equal(size, i % 60);
	}
	for (unsigned int i = KEYS + 7; i < 3 * KEYS; i++)
		assert_false(key_set_find(set, key_of(key, sizeof(key), i), &size));
	assert_false(key_set_find(set, "q/1", &size));
	key_set_free(set);
	assert_int_equal(key_set_list(s, env.budget, "r/", NULL, &set, NULL), 0);
	assert_null(set);
	assert_false(key_set_find(set, "q/1", &size));
	store_free(s);
	pool_free(env.pool);
}

/* A set that does not fit into the budget has some of the keys, and takes no more memory. */
static void test_budget(void **state)
{
	struct env env = env_real(NULL, pool_new(0));
	struct store *s = store_mem_new(&env, NULL);
	struct budget_stats stats;
	struct key_set *set;
	uint64_t size;
	unsigned int found = 0;
	char key[32];
	fill(s, KEYS);
	env.budget = budget_new(&(struct budget_limits){.bytes = 128 << 10});
	assert_int_equal(key_set_list(s, env.budget, "p/", NULL, &set, NULL), 0);
	for (unsigned int i = 0; i < KEYS; i++)
		found += key_set_find(set, key_of(key, sizeof(key), i), &size);
	assert_true(found > 500 && found < KEYS);
	budget_get_stats(env.budget, &stats);
	assert_true(stats.used[BUDGET_TREES] > 0);
	assert_true(stats.used[BUDGET_TREES] <= stats.metadata_limit);
	key_set_free(set);
	budget_free(env.budget);
	store_free(s);
	pool_free(env.pool);
}

static void test_failure(void **state)
{
	struct env env = env_real(NULL, pool_new(0));
	struct store *mem = store_mem_new(&env, NULL);
	struct err err = ERR_INIT;
	struct key_set *set;
	fill(mem, KEYS);
	struct store *s = store_fault_new(mem, "fail:3:EACCES", NULL);
	assert_int_equal(key_set_list(s, env.budget, "p/", NULL, &set, &err), -EACCES);
	assert_null(set);
	store_free(s);
	pool_free(env.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
