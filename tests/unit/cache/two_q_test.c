/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares 2Q with plain LRU over the same trace of uses: which chunks stay in the cache? A use is
 * several reads of one chunk in succession.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_source.h"

enum { BUDGET = 200 /* chunks */, READS = 4 /* of a use */, TRACE = 1 << 14 };

/* Including the entry itself. */
enum { SIZE = 64 * 1024 };

struct trace {
	size_t n;
	uint64_t chunk[TRACE];
};

static void use(struct trace *t, uint64_t chunk)
{
	assert_true(t->n < TRACE);
	t->chunk[t->n++] = chunk;
}

/* Hits of chunks below `limit`, in thousandths of their uses from `from` on. */
static unsigned int hits_of_lru(const struct trace *t, size_t from, uint64_t limit)
{
	uint64_t kept[BUDGET], n = 0, uses = 0, hits = 0;
	for (size_t i = 0; i < t->n; i++) {
		uint64_t at = 0;
		while (at < n && kept[at] != t->chunk[i])
			at++;
		if (i >= from && t->chunk[i] < limit) {
			uses++;
			hits += at < n;
		}
		if (at == n)
			at = n < BUDGET ? n++ : BUDGET - 1;
		memmove(&kept[1], &kept[0], at * sizeof(kept[0]));
		kept[0] = t->chunk[i];
	}
	return (unsigned int)(uses ? hits * 1000 / uses : 0);
}

static unsigned int hits_of_cache(const struct trace *t, size_t from, uint64_t limit)
{
	struct fake_source f;
	uint64_t uses = 0, hits = 0;
	fake_open(&f, SIZE, UINT64_C(1) << 40, BUDGET);
	for (size_t i = 0; i < t->n; i++) {
		const uint64_t before = fake_stats(&f).misses;
		for (int k = 0; k < READS; k++)
			assert_true(fake_read(&f, NULL, 0, t->chunk[i]));
		if (i >= from && t->chunk[i] < limit) {
			uses++;
			hits += fake_stats(&f).misses == before;
		}
		f.nloads = 0;
	}
	struct cache_stats st = fake_stats(&f);
	assert_true(st.bytes <= st.budget);
	fake_close(&f);
	return (unsigned int)(uses ? hits * 1000 / uses : 0);
}

/* A working set of six tenths, used twice before the scan and, during it, once for each `pace`
 * chunks of a scan of ten budgets. */
static void work_and_scan(struct trace *t, uint64_t pace, size_t *from)
{
	enum { SET = BUDGET * 6 / 10 };
	t->n = 0;
	for (uint64_t i = 0; i < 2 * SET; i++)
		use(t, i % SET);
	*from = t->n;
	for (uint64_t i = 0; i < 10 * BUDGET; i++) {
		use(t, 1000 + i);
		if (i % pace == 0)
			use(t, i / pace % SET);
	}
}

static void a_scan_does_not_ruin_a_working_set(void **state)
{
	enum { SET = BUDGET * 6 / 10 };
	static struct trace t;
	size_t from;
	for (uint64_t pace = 1; pace <= 2; pace++) {
		work_and_scan(&t, pace, &from);
		const unsigned int ours = hits_of_cache(&t, from, SET);
		const unsigned int lru = hits_of_lru(&t, from, SET);
		print_message("one use for %u of the scan: %u of 1000 hits, LRU %u\n",
			      (unsigned int)pace, ours, lru);
		assert_true(ours >= 900);
		assert_true(lru < 900);
	}
}

/* The set is main before the scan, so it may be used rarely. */
static void a_set_in_use_survives_a_fast_scan(void **state)
{
	enum { SET = BUDGET * 6 / 10 };
	static struct trace t;
	t.n = 0;
	for (uint64_t i = 0; i < 2 * BUDGET; i++) {
		use(&t, i % SET);
		use(&t, 1000 + i);
	}
	const size_t from = t.n;
	for (uint64_t i = 0; i < 10 * BUDGET; i++) {
		use(&t, 5000 + i);
		if (i % 8 == 0)
			use(&t, i / 8 % SET);
	}
	const unsigned int ours = hits_of_cache(&t, from, SET), lru = hits_of_lru(&t, from, SET);
	print_message("%u of 1000 hits, LRU %u\n", ours, lru);
	assert_true(ours >= 900);
	assert_true(lru < 100);
}

static void a_set_that_fits_stays(void **state)
{
	static struct trace t;
	t.n = 0;
	for (uint64_t i = 0; i < 20 * BUDGET; i++)
		use(&t, i % (BUDGET * 9 / 10));
	assert_int_equal(hits_of_cache(&t, BUDGET, UINT64_MAX), 1000);
}

static void a_loop_over_more_than_the_budget_is_like_lru(void **state)
{
	static struct trace t;
	t.n = 0;
	for (uint64_t i = 0; i < 20 * BUDGET; i++)
		use(&t, i % (BUDGET * 11 / 10));
	const unsigned int ours = hits_of_cache(&t, BUDGET, UINT64_MAX);
	print_message("%u of 1000 hits\n", ours);
	assert_true(ours >= hits_of_lru(&t, BUDGET, UINT64_MAX));
}

/* A new working set replaces the old one. */
static void an_unused_set_is_evicted(void **state)
{
	enum { SET = BUDGET * 7 / 10 };
	static struct trace t;
	t.n = 0;
	for (uint64_t i = 0; i < 6 * SET; i++) {
		use(&t, i % SET);
		use(&t, 1000 + i);
	}
	for (uint64_t i = 0; i < 4 * SET; i++)
		use(&t, 5000 + i % SET);
	const size_t from = t.n;
	for (uint64_t i = 0; i < 4 * SET; i++)
		use(&t, 5000 + i % SET);
	const unsigned int ours = hits_of_cache(&t, from, UINT64_MAX);
	print_message("%u of 1000 hits\n", ours);
	assert_true(ours >= 950);
}

/* A plane read row by row reads each chunk once per row, then never again: one use. */
static void rows_of_a_plane_are_a_scan(void **state)
{
	enum { SET = BUDGET * 6 / 10, ROW = BUDGET / 8, ROWS = 6 };
	static struct trace t;
	t.n = 0;
	for (uint64_t i = 0; i < 3 * SET; i++) {
		use(&t, i % SET);
		use(&t, 100000 + i);
	}
	const size_t from = t.n;
	for (uint64_t chunks = 0; chunks < 6 * BUDGET / ROW; chunks++)
		for (uint64_t row = 0; row < ROWS; row++)
			for (uint64_t i = 0; i < ROW; i++)
				use(&t, 1000 + chunks * ROW + i);
	for (uint64_t i = 0; i < SET; i++)
		use(&t, i);
	const unsigned int ours = hits_of_cache(&t, from, SET);
	print_message("%u of 1000 hits, LRU %u\n", ours, hits_of_lru(&t, from, SET));
	assert_true(ours >= 900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scan_does_not_ruin_a_working_set),
		cmocka_unit_test(a_set_in_use_survives_a_fast_scan),
		cmocka_unit_test(a_set_that_fits_stays),
		cmocka_unit_test(a_loop_over_more_than_the_budget_is_like_lru),
		cmocka_unit_test(an_unused_set_is_evicted),
		cmocka_unit_test(rows_of_a_plane_are_a_scan),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
