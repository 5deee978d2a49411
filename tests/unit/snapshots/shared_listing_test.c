/* SPDX-License-Identifier: Apache-2.0 */
/* Listings that show the keys of several domains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <schema/schema.h>
#include <store/store.h>

#include "snapshots/shared_listing.h"
#include "mem_store.h"
#include "storages.h"
#include "store_calls.h"

enum { MANY = 8 }; /* domains */

struct fixture {
	struct env env;
	struct store *store;
	struct shared_keys domains[MANY];
	struct shared_reach reach;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->env = env_real(NULL, pool_new(0));
	f->store = store_count_new(store_mem_new(&f->env, NULL), NULL);
	*state = f;
	return f->store ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < MANY; i++)
		store_page_release(&f->domains[i].keys);
	store_free(f->store);
	pool_free(f->env.pool);
	free(f);
	return 0;
}

/* n keys of the domain with this number. */
static void put_keys(struct fixture *f, uint32_t number, unsigned int n)
{
	char key[64];
	for (unsigned int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "db/%08x-00000000/d/%04u", (unsigned int)number, i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
}

/* Lists n domains, the last of them from number `first` on. */
static void list(struct fixture *f, uint32_t first, size_t n)
{
	struct shared_keys *domains[MANY];
	for (size_t i = 0; i < n; i++) {
		domains[i] = &f->domains[i];
		store_page_release(&f->domains[i].keys);
		const uint64_t number = (uint64_t)(first + i) << 32;
		f->domains[i] =
			(struct shared_keys){.storage = storage_nth(number), .number = number};
	}
	shared_listing(f->store, NULL, domains, n, &f->reach);
}

static void assert_keys(const struct shared_keys *domain, size_t n)
{
	assert_true(domain->is_listed);
	assert_int_equal(domain->keys.n, n);
	for (size_t i = 0; i < n; i++) {
		const char *key = domain->keys.items[i].key;
		assert_int_equal(strtoul(key + strlen("db/"), NULL, 16), domain->number >> 32);
		assert_int_equal(atoi(strrchr(key, '/') + 1), i);
	}
}

static void one_request_shows_all_keys(void **state)
{
	struct fixture *f = *state;
	struct store_counts counts;
	for (uint32_t i = 1; i <= 6; i++)
		put_keys(f, i, i == 4 ? 0 : i);
	list(f, 2, 5);
	store_count_read(f->store, &counts);
	assert_int_equal(counts.calls[STORE_LIST], 1);
	for (uint32_t i = 0; i < 5; i++)
		assert_keys(&f->domains[i], i == 2 ? 0 : i + 2);
}

/* A domain whose keys the page does not show to the end is not taken for a smaller one. */
static void a_page_ends_within_a_domain(void **state)
{
	struct fixture *f = *state;
	for (uint32_t i = 1; i <= 4; i++)
		put_keys(f, i, 400);
	list(f, 1, 4);
	assert_keys(&f->domains[0], 400);
	assert_keys(&f->domains[1], 400);
	for (size_t i = 2; i < 4; i++) {
		assert_false(f->domains[i].is_listed);
		assert_int_equal(f->domains[i].keys.n, 0);
	}
}

/* The page ends with the last key of a domain: only the next page would show that it is the last.
 */
static void a_page_ends_after_a_domain(void **state)
{
	struct fixture *f = *state;
	put_keys(f, 1, 500);
	put_keys(f, 2, 500);
	list(f, 1, 2);
	assert_keys(&f->domains[0], 500);
	assert_keys(&f->domains[1], 500);
	put_keys(f, 3, 1);
	list(f, 1, 2);
	assert_keys(&f->domains[0], 500);
	assert_false(f->domains[1].is_listed);
}

static void a_large_domain_is_not_listed(void **state)
{
	struct fixture *f = *state;
	put_keys(f, 1, 1001);
	put_keys(f, 2, 1);
	list(f, 1, 2);
	assert_false(f->domains[0].is_listed);
	assert_false(f->domains[1].is_listed);
}

static void a_failure_lists_nothing(void **state)
{
	struct fixture *f = *state;
	put_keys(f, 1, 1);
	f->store = store_fault_new(f->store, "fail:1:EIO@db/", NULL);
	list(f, 1, 2);
	assert_false(f->domains[0].is_listed);
	assert_false(f->domains[1].is_listed);
	assert_int_equal(f->reach.cell, 0);
	list(f, 1, 2);
	assert_keys(&f->domains[0], 1);
}

/* A cell is three quarters of what a page covers. The last page of a bucket shows no smaller one.
 */
static void a_page_shows_how_far_it_reaches(void **state)
{
	struct fixture *f = *state;
	for (uint32_t i = 0; i < 60; i++)
		put_keys(f, 16 * i, 20);
	list(f, 0, 1);
	assert_in_range(f->reach.cell, UINT64_C(585) << 32, UINT64_C(590) << 32);
	const uint64_t cell = f->reach.cell;
	list(f, 16 * 59, 1);
	assert_true(f->reach.cell >= cell);
	for (uint32_t i = 0; i < 60; i++)
		put_keys(f, 16 * i, 100);
	list(f, 0, 1);
	assert_in_range(f->reach.cell, UINT64_C(100) << 32, UINT64_C(120) << 32);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_request_shows_all_keys), TEST(a_page_ends_within_a_domain),
		TEST(a_page_ends_after_a_domain), TEST(a_large_domain_is_not_listed),
		TEST(a_failure_lists_nothing),	  TEST(a_page_shows_how_far_it_reaches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
