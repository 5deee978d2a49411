/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of metadata and chunks, and what happens when they are reached. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <base/budget.h>

struct holder {
	struct budget *budget;
	struct budget_charge idle[4];
	unsigned int nidle, calls, room_changed;
};

static bool free_idle(void *ctx)
{
	struct holder *h = ctx;
	h->calls++;
	if (h->nidle == 0)
		return false;
	assert_int_equal(budget_set(&h->idle[--h->nidle], 0, NULL), 0);
	return true;
}

static void room_changed(void *ctx)
{
	((struct holder *)ctx)->room_changed++;
}

static struct budget *make(uint64_t bytes, uint64_t metadata_min)
{
	struct budget *b = budget_new(&(struct budget_limits){
		.bytes = bytes, .metadata_min = metadata_min, .option = "cache_size"});
	assert_non_null(b);
	return b;
}

static void metadata_has_half_or_its_minimum(void **state)
{
	static const struct {
		uint64_t bytes, min, limit;
	} cases[] = {{1000, 0, 500}, {1000, 400, 500}, {1000, 800, 800}, {0, 64, 64}, {0, 0, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct budget *b = make(cases[i].bytes, cases[i].min);
		struct budget_charge tree = {.budget = b, .use = BUDGET_TREES};
		struct budget_charge plan = {.budget = b, .use = BUDGET_PLANS};
		struct budget_stats st;
		budget_get_stats(b, &st);
		assert_int_equal(st.metadata_limit, cases[i].limit);
		assert_int_equal(budget_set(&tree, cases[i].limit / 4, NULL), 0);
		assert_int_equal(budget_set(&plan, cases[i].limit - cases[i].limit / 4, NULL), 0);
		assert_int_equal(budget_set(&plan, plan.bytes + 1, NULL), -ENOMEM);
		assert_int_equal(budget_set(&tree, UINT64_MAX, NULL), -ENOMEM);
		budget_get_stats(b, &st);
		assert_int_equal(st.used[BUDGET_TREES], cases[i].limit / 4);
		assert_int_equal(st.used[BUDGET_PLANS], cases[i].limit - cases[i].limit / 4);
		assert_int_equal(budget_set(&tree, 0, NULL), 0);
		assert_int_equal(budget_set(&plan, 0, NULL), 0);
		budget_free(b);
	}
}

static void a_refusal_says_what_to_do(void **state)
{
	struct budget *b = make(1000, 0);
	struct budget_charge tree = {.budget = b, .use = BUDGET_TREES};
	struct budget_charge other = {.budget = b, .use = BUDGET_TREES};
	struct err err = ERR_INIT;
	assert_int_equal(budget_set(&other, 123, NULL), 0);
	assert_int_equal(budget_set(&tree, 400, &err), -ENOMEM);
	assert_int_equal(err.code, -ENOMEM);
	assert_string_equal(err.msg,
			    "out of memory: metadata takes 123 of the 500 bytes that "
			    "cache_size=1000 allows it, 400 more do not fit; close files or use a "
			    "larger cache_size");
	assert_int_equal(tree.bytes, 0);
	assert_int_equal(budget_set(&other, 0, NULL), 0);
	budget_free(b);
}

static void holders_free_metadata_before_a_charge_is_refused(void **state)
{
	struct budget *b = make(1000, 0);
	struct holder h = {.budget = b, .nidle = 3};
	struct budget_charge tree = {.budget = b, .use = BUDGET_TREES};
	budget_add_holder(b, &(struct budget_holder){free_idle, room_changed, &h});
	for (unsigned int i = 0; i < 3; i++) {
		h.idle[i] = (struct budget_charge){.budget = b, .use = BUDGET_PLANS};
		assert_int_equal(budget_set(&h.idle[i], 100, NULL), 0);
	}
	assert_int_equal(budget_set(&tree, 200, NULL), 0);
	assert_int_equal(h.calls, 0);
	/* The holder frees no more than is needed. */
	assert_int_equal(budget_set(&tree, 350, NULL), 0);
	assert_int_equal(h.calls, 2);
	assert_int_equal(h.nidle, 1);
	assert_int_equal(budget_set(&tree, 501, NULL), -ENOMEM);
	assert_int_equal(h.nidle, 0);
	assert_int_equal(budget_set(&tree, 500, NULL), 0);
	assert_int_equal(budget_set(&tree, 0, NULL), 0);
	budget_remove_holder(b, &h);
	h.calls = h.room_changed = 0;
	assert_int_equal(budget_set(&tree, 501, NULL), -ENOMEM);
	assert_int_equal(h.calls + h.room_changed, 0);
	budget_free(b);
}

static void chunks_get_what_metadata_leaves(void **state)
{
	struct budget *b = make(1000, 2000);
	struct holder h = {.budget = b};
	struct budget_charge tree = {.budget = b, .use = BUDGET_TREES};
	budget_add_holder(b, &(struct budget_holder){NULL, room_changed, &h});
	assert_int_equal(budget_room(b), 1000);
	budget_take(b, BUDGET_CHUNKS, 600);
	budget_take(b, BUDGET_LOADS, 100);
	assert_int_equal(h.room_changed, 0);
	assert_true(budget_fits(b, 300));
	assert_false(budget_fits(b, 301));
	/* Metadata is accepted although chunks take its room; the holder is notified. */
	assert_int_equal(budget_set(&tree, 400, NULL), 0);
	assert_int_equal(h.room_changed, 1);
	assert_int_equal(budget_room(b), 600);
	assert_false(budget_fits(b, 0));
	budget_return(b, BUDGET_CHUNKS, 200);
	assert_true(budget_fits(b, 100));
	/* Chunks always keep half of the budget. */
	assert_int_equal(budget_set(&tree, 2000, NULL), 0);
	assert_int_equal(budget_room(b), 500);
	assert_int_equal(budget_set(&tree, 0, NULL), 0);
	assert_int_equal(h.room_changed, 3);
	budget_return(b, BUDGET_CHUNKS, 400);
	budget_return(b, BUDGET_LOADS, 100);
	budget_remove_holder(b, &h);
	budget_free(b);
}

static void give_chunks_back(void *ctx)
{
	struct holder *h = ctx;
	struct budget_stats stats;
	h->room_changed++;
	budget_get_stats(h->budget, &stats);
	const uint64_t taken = stats.used[BUDGET_CHUNKS] + stats.used[BUDGET_LOADS];
	if (taken > budget_room(h->budget))
		budget_return(h->budget, BUDGET_CHUNKS, taken - budget_room(h->budget));
}

static void loads_get_half_even_if_chunks_have_all(void **state)
{
	struct budget *b = make(1000, 2000);
	struct holder h = {.budget = b};
	struct budget_stats stats;
	budget_add_holder(b, &(struct budget_holder){NULL, give_chunks_back, &h});
	budget_take(b, BUDGET_CHUNKS, 1000);
	budget_trim(b);
	assert_int_equal(h.room_changed, 0);
	assert_false(budget_fits(b, 1));
	assert_true(budget_fits_loads(b, 500));
	assert_false(budget_fits_loads(b, 501));
	budget_take(b, BUDGET_LOADS, 300);
	budget_trim(b);
	assert_int_equal(h.room_changed, 1);
	budget_get_stats(b, &stats);
	assert_int_equal(stats.used[BUDGET_CHUNKS], 700);
	assert_true(budget_fits_loads(b, 200));
	assert_false(budget_fits_loads(b, 201));
	/* Without chunks, loads may have everything. */
	budget_return(b, BUDGET_CHUNKS, 700);
	assert_true(budget_fits_loads(b, 700));
	assert_false(budget_fits_loads(b, 701));
	budget_return(b, BUDGET_LOADS, 300);
	budget_remove_holder(b, &h);
	budget_free(b);
}

static void without_a_budget_there_is_no_limit(void **state)
{
	struct budget_charge tree = {.use = BUDGET_TREES};
	assert_int_equal(budget_set(&tree, UINT64_MAX, NULL), 0);
	assert_int_equal(tree.bytes, UINT64_MAX);
	assert_int_equal(budget_set(&tree, 0, NULL), 0);
}

static void a_share_has_a_limit_and_charges_steps(void **state)
{
	enum { K = 1 << 10, PART = 1 << 20 };
	struct budget *b = make(0, 4 * PART);
	struct budget_share s = budget_share_of(b, 4);
	struct budget_charge plan = {.budget = b, .use = BUDGET_PLANS};
	struct budget_stats st;
	assert_true(budget_share_take(&s, 1));
	budget_get_stats(b, &st);
	const uint64_t step = st.used[BUDGET_NAMES];
	assert_in_range(step, 1, PART / 8);
	assert_true(budget_share_take(&s, step - 1));
	budget_get_stats(b, &st);
	assert_int_equal(st.used[BUDGET_NAMES], step);
	assert_true(budget_share_take(&s, PART - step));
	assert_false(budget_share_take(&s, 1));
	assert_false(budget_share_take(&s, UINT64_MAX));
	assert_in_range(budget_share_less(&s), PART / 2, PART - 1);
	budget_share_return(&s, PART - K);
	budget_get_stats(b, &st);
	assert_in_range(st.used[BUDGET_NAMES], K, 3 * step);
	/* It does not take what others have. */
	assert_int_equal(budget_set(&plan, 4 * PART - 3 * step, NULL), 0);
	assert_false(budget_share_take(&s, PART - K));
	assert_true(budget_share_take(&s, K));
	budget_share_return(&s, 2 * K);
	budget_get_stats(b, &st);
	assert_int_equal(st.used[BUDGET_NAMES], 0);
	assert_int_equal(budget_set(&plan, 0, NULL), 0);
	budget_free(b);
}

enum { THREADS = 4, ROUNDS = 20000, EACH = 40, LIMIT = 100 };

static void *charge_and_give_back(void *arg)
{
	struct budget *b = arg;
	struct budget_stats st;
	for (int i = 0; i < ROUNDS; i++) {
		struct budget_charge c = {.budget = b, .use = BUDGET_PLANS};
		if (budget_set(&c, EACH, NULL) == 0) {
			budget_get_stats(b, &st);
			assert_in_range(st.used[BUDGET_PLANS], EACH, LIMIT);
			assert_int_equal(budget_set(&c, 0, NULL), 0);
		}
	}
	return NULL;
}

static void threads_never_exceed_it(void **state)
{
	struct budget *b = make(2 * LIMIT, 0);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, charge_and_give_back, b), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	budget_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metadata_has_half_or_its_minimum),
		cmocka_unit_test(a_refusal_says_what_to_do),
		cmocka_unit_test(holders_free_metadata_before_a_charge_is_refused),
		cmocka_unit_test(chunks_get_what_metadata_leaves),
		cmocka_unit_test(loads_get_half_even_if_chunks_have_all),
		cmocka_unit_test(without_a_budget_there_is_no_limit),
		cmocka_unit_test(a_share_has_a_limit_and_charges_steps),
		cmocka_unit_test(threads_never_exceed_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
