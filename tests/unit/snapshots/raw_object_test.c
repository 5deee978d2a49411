/* SPDX-License-Identifier: Apache-2.0 */
/* Reading plain objects in blocks: the bytes, the requests to the store, and failures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <snapshots/raw_object.h>
#include "mem_store.h"
#include "store_calls.h"

enum { KB = 1 << 10, MB = 1 << 20, BUDGET = 64 * MB };

_Static_assert((int)RAW_OBJECT_BLOCK == (int)MB, "the tests below count blocks of 1 MiB");

struct rig {
	struct env env;
	struct store *store;
	struct cache *cache;
	struct raw_object *plain;
	uint8_t *body;
	size_t size;
};

static struct rig *rig_of(void **state)
{
	return *state;
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	r->env = env_real(NULL, pool_new(0));
	r->store = store_mem_new(&r->env, NULL);
	r->env.budget = budget_new(&(struct budget_limits){.bytes = BUDGET});
	r->cache = cache_new(&r->env, 16, NULL);
	*state = r;
	return r->store && r->cache ? 0 : -1;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	raw_object_close(r->plain);
	cache_free(r->cache);
	budget_free(r->env.budget);
	store_free(r->store);
	pool_free(r->env.pool);
	free(r->body);
	free(r);
	return 0;
}

static void put(struct rig *r, size_t size, uint8_t seed)
{
	r->body = realloc(r->body, size + 1);
	r->size = size;
	for (size_t i = 0; i < size; i++)
		r->body[i] = (uint8_t)(seed + i + (i >> 12) * 7);
	assert_int_equal(call_put(r->store, "o", r->body, size, NULL, NULL, NULL), 0);
}

/* Opens the object over a store that injects faults and counts requests. */
static void open_with(struct rig *r, const char *faults)
{
	struct err err = ERR_INIT;
	r->store = store_count_new(store_fault_new(r->store, faults, &err), &err);
	assert_non_null(r->store);
	struct store_meta meta;
	assert_int_equal(call_head(r->store, "o", &meta, &err), 0);
	assert_int_equal(raw_object_open(r->store, r->cache, "o", &meta, &r->plain, &err), 0);
	assert_string_equal(raw_object_path(r->plain), "o");
}

static struct store_counts counts(struct rig *r)
{
	struct store_counts c;
	store_count_read(r->store, &c);
	return c;
}

static void check_read(struct rig *r, size_t n, uint64_t offset)
{
	uint8_t *buf = malloc(n);
	size_t want = offset < r->size ? (size_t)min_u64(n, r->size - offset) : 0;
	assert_int_equal(raw_object_read(r->plain, buf, n, offset, NULL, NULL), want);
	if (want)
		assert_memory_equal(buf, r->body + offset, want);
	free(buf);
}

static void a_small_object_is_one_request(void **state)
{
	struct rig *r = rig_of(state);
	put(r, 5000, 1);
	open_with(r, "");
	for (uint64_t offset = 0; offset < 6000; offset += 500)
		check_read(r, 700, offset);
	assert_int_equal(counts(r).calls[STORE_GET], 1);
	assert_int_equal(counts(r).bytes_in, 5000);
}

static void an_empty_object_needs_no_request(void **state)
{
	struct rig *r = rig_of(state);
	put(r, 0, 1);
	open_with(r, "");
	check_read(r, 10, 0);
	check_read(r, 10, UINT64_C(1) << 40);
	assert_int_equal(counts(r).calls[STORE_GET], 0);
}

static void any_range_is_right(void **state)
{
	static const struct {
		uint64_t offset;
		size_t n;
	} ranges[] = {
		{0, 1},		  {MB - 1, 1},	    {MB - 1, 2}, {MB, MB},    {MB / 2, 2 * MB},
		{3 * MB - 1, 99}, {3 * MB, 4 * MB}, {0, 8 * MB}, {5, 3 * MB}, {3 * MB + 76, 1},
	};
	struct rig *r = rig_of(state);
	put(r, 3 * MB + 77, 3);
	open_with(r, "");
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		check_read(r, ranges[i].n, ranges[i].offset);
	assert_int_equal(counts(r).calls[STORE_GET], 4);
	assert_int_equal(counts(r).bytes_in, r->size);
}

static void one_block_fetches_one_block(void **state)
{
	struct rig *r = rig_of(state);
	put(r, 16 * MB, 4);
	open_with(r, "");
	check_read(r, 4 * KB, 7 * MB + 100);
	assert_int_equal(counts(r).calls[STORE_GET], 1);
}

static void blocks_are_prefetched_for_a_sequential_reader(void **state)
{
	struct rig *r = rig_of(state);
	struct cache_stats stats;
	put(r, 16 * MB, 5);
	open_with(r, "");
	for (uint64_t offset = 0; offset < 12 * MB; offset += 128 * KB)
		check_read(r, 128 * KB, offset);
	cache_get_stats(r->cache, &stats);
	assert_true(stats.prefetches > 8);
	assert_true(counts(r).calls[STORE_GET] <= 16);
}

/* All blocks of a read are requested before the first of them is waited for. */
static void a_read_of_several_blocks_loads_them_together(void **state)
{
	struct rig *r = rig_of(state);
	struct cache_stats stats;
	put(r, 16 * MB, 5);
	open_with(r, "");
	check_read(r, MB + 2, 3 * MB - 1);
	cache_get_stats(r->cache, &stats);
	assert_int_equal(counts(r).calls[STORE_GET], 3);
	assert_int_equal(stats.prefetches, 3);
}

static void a_replaced_object_is_stale(void **state)
{
	struct rig *r = rig_of(state);
	uint8_t buf[16];
	put(r, 2 * MB, 6);
	open_with(r, "");
	check_read(r, 16, 0);
	put(r, 2 * MB, 7);
	assert_int_equal(raw_object_read(r->plain, buf, 16, MB, NULL, NULL), -ESTALE);
}

static void a_deleted_object_is_stale(void **state)
{
	struct rig *r = rig_of(state);
	uint8_t buf[16];
	put(r, 2 * MB, 6);
	open_with(r, "");
	check_read(r, 16, 0);
	assert_int_equal(call_delete(r->store, "o", NULL, NULL), 0);
	assert_int_equal(raw_object_read(r->plain, buf, 16, MB, NULL, NULL), -ESTALE);
	check_read(r, 16, 0); /* a block that the cache has */
}

static void a_body_of_another_length_is_an_error(void **state)
{
	struct rig *r = rig_of(state);
	struct err err = ERR_INIT;
	uint8_t buf[16];
	put(r, 2 * MB, 8);
	open_with(r, "truncate:1:1000@o");
	assert_int_equal(raw_object_read(r->plain, buf, 16, 0, NULL, &err), -EIO);
	assert_non_null(strstr(err.msg, "object o"));
	assert_non_null(strstr(err.msg, "1000"));
	check_read(r, MB, MB); /* the other block can be read */
}

/* A read returns the bytes before the block that fails; the next read returns the error. */
static void a_read_ends_before_a_block_that_fails(void **state)
{
	struct rig *r = rig_of(state);
	uint8_t *buf = malloc(3 * MB);
	put(r, 3 * MB, 9);
	open_with(r, "fail:3:EACCES@o");
	assert_int_equal(raw_object_read(r->plain, buf, 3 * MB, 0, NULL, NULL), MB);
	assert_int_equal(raw_object_read(r->plain, buf, 2 * MB, MB, NULL, NULL), -EACCES);
	free(buf);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_small_object_is_one_request),
		TEST(an_empty_object_needs_no_request),
		TEST(any_range_is_right),
		TEST(one_block_fetches_one_block),
		TEST(blocks_are_prefetched_for_a_sequential_reader),
		TEST(a_read_of_several_blocks_loads_them_together),
		TEST(a_replaced_object_is_stale),
		TEST(a_deleted_object_is_stale),
		TEST(a_body_of_another_length_is_an_error),
		TEST(a_read_ends_before_a_block_that_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
