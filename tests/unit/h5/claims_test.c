/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <h5/claims.h>

enum { BATCH = 64 * 1024, METADATA_LIMIT = 4 << 20 };

static struct budget *small_budget(void)
{
	const struct budget_limits limits = {.bytes = 2 * METADATA_LIMIT, .option = "memory"};
	struct budget *b = budget_new(&limits);
	assert_non_null(b);
	return b;
}

static uint64_t charged(struct budget *b)
{
	struct budget_stats stats;
	budget_get_stats(b, &stats);
	return stats.used[BUDGET_TREES];
}

static void test_two_claims(void **state)
{
	static const struct {
		uint64_t addr, n; /* beside [100, 110) */
		bool overlaps;
	} rows[] = {
		{110, 10, false}, {90, 10, false}, {0, 1, false},	{109, 1, true},
		{100, 10, true},  {90, 11, true},  {105, 100, true},	{0, 1000, true},
		{102, 3, true},	  {105, 0, false}, {1 << 20, 1, false}, {100, 1, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* In one batch, in two batches, and in the reverse order. */
		for (int how = 0; how < 3; how++) {
			struct h5_claims *c = h5_claims_new(NULL);
			struct err err = ERR_INIT;
			assert_non_null(c);
			if (how == 2)
				assert_int_equal(
					h5_claim(c, rows[i].addr, rows[i].n, "a node", NULL), 0);
			assert_int_equal(h5_claim(c, 100, 10, "a header", NULL), 0);
			if (how == 1)
				assert_int_equal(h5_claims_check(c, NULL), 0);
			if (how != 2)
				assert_int_equal(
					h5_claim(c, rows[i].addr, rows[i].n, "a node", NULL), 0);
			int rc = h5_claims_check(c, &err);
			if (rc != (rows[i].overlaps ? -EIO : 0))
				fail_msg("row %zu, %d: %d %s", i, how, rc, err.msg);
			h5_claims_free(c);
		}
	}
}

static void test_words(void **state)
{
	struct h5_claims *c = h5_claims_new(NULL);
	struct err err = ERR_INIT;
	h5_claim(c, 96, 8, "local heap", NULL);
	h5_claim(c, 100, 8, "object header", NULL);
	assert_int_equal(h5_claims_check(c, &err), -EIO);
	assert_string_equal(err.msg, "object header at 100 (8 bytes) overlaps local heap at 96");
	/* The names of merged claims are not known. */
	h5_claim(c, 40, 70, "chunk", NULL);
	assert_int_equal(h5_claims_check(c, &err), -EIO);
	assert_string_equal(err.msg, "chunk at 40 (70 bytes) overlaps another structure at 96");
	assert_int_equal(h5_claim(c, UINT64_MAX, 2, "chunk", &err), -EIO);
	assert_string_equal(err.msg, "chunk at 18446744073709551615: 2 bytes end after 2^64");
	/* After that, the list still works. */
	h5_claim(c, 0, 40, "superblock", NULL);
	assert_int_equal(h5_claims_check(c, NULL), 0);
	h5_claim(c, 109, 1, "chunk", NULL);
	assert_int_equal(h5_claims_check(c, NULL), -EIO);
	h5_claims_free(c);
}

static void test_without_a_list(void **state)
{
	assert_int_equal(h5_claim(NULL, 0, 10, "a", NULL), 0);
	assert_int_equal(h5_claim(NULL, 0, 10, "a", NULL), 0);
	assert_int_equal(h5_claims_check(NULL, NULL), 0);
	h5_claims_free(NULL);
}

/* Numbers 0 to 2^bits - 1 in a scattered order. */
static uint64_t scattered(uint64_t i, unsigned int bits)
{
	return i * 0x9e3779b97f4a7c15ULL & ((UINT64_C(1) << bits) - 1);
}

/* Ten million claims that touch need no memory, in the order of addresses, backwards, or by turns
 * in two places with different names. */
static void test_adjacent_claims(void **state)
{
	struct budget *b = small_budget();
	for (int order = 0; order < 3; order++) {
		const uint64_t n = order ? 2000000 : 10000000;
		struct h5_claims *c = h5_claims_new(b);
		for (uint64_t i = 0; i < n; i++) {
			uint64_t at = order == 1 ? n - i : i;
			if (order == 2)
				at = i / 2 + i % 2 * n / 2;
			int rc = h5_claim(c, at * 100, 100, i % 2 ? "chunk" : "B-tree node", NULL);
			assert_int_equal(rc, 0);
		}
		assert_int_equal(h5_claims_check(c, NULL), 0);
		assert_true(charged(b) <= 3 * BATCH * 16 * 3);
		h5_claim(c, 50 * n, 1, "chunk", NULL);
		assert_int_equal(h5_claims_check(c, NULL), -EIO);
		h5_claims_free(c);
		assert_int_equal(charged(b), 0);
	}
	budget_free(b);
}

/* Claims in a scattered order leave one run if they touch, and one run each if they do not. */
static void test_scattered_claims(void **state)
{
	enum { BITS = 18 };
	for (uint64_t gap = 0; gap < 2; gap++) {
		struct h5_claims *c = h5_claims_new(NULL);
		for (uint64_t i = 0; i < 1 << BITS; i++)
			assert_int_equal(
				h5_claim(c, scattered(i, BITS) * 64, 64 - gap, "chunk", NULL), 0);
		assert_int_equal(h5_claims_check(c, NULL), 0);
		/* Every gap is found, and every claim. */
		for (uint64_t i = 0; i < 1 << BITS; i += 997) {
			if (gap)
				h5_claim(c, i * 64 + 63, 1, "hole", NULL);
			assert_int_equal(h5_claims_check(c, NULL), 0);
			h5_claim(c, i * 64 + 17, 1, "hole", NULL);
			assert_int_equal(h5_claims_check(c, NULL), -EIO);
		}
		h5_claims_free(c);
	}
}

/* Claims with gaps take memory, until the budget refuses more.
 */
static void test_budget(void **state)
{
	struct budget *b = small_budget();
	struct h5_claims *c = h5_claims_new(b);
	struct err err = ERR_INIT;
	uint64_t n = 0;
	int rc = 0;
	for (; n < 1000000 && !rc; n++)
		rc = h5_claim(c, n * 64, 63, "chunk", &err);
	assert_int_equal(rc, -ENOMEM);
	assert_true(n > BATCH);
	assert_true(charged(b) <= METADATA_LIMIT);
	h5_claims_free(c);
	assert_int_equal(charged(b), 0);
	budget_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_claims),	 cmocka_unit_test(test_words),
		cmocka_unit_test(test_without_a_list),	 cmocka_unit_test(test_adjacent_claims),
		cmocka_unit_test(test_scattered_claims), cmocka_unit_test(test_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
