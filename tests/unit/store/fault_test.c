/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapper that injects failures: which requests it hits, and how. */
#include "mem_store.h"
#include "store_contract.h"

static int harmless_mem(void **state)
{
	struct fixture *f = fixture_new(0);
	struct store *mem = store_mem_new(&f->env, NULL);
	f->s = mem ? store_fault_new(mem, "", NULL) : NULL;
	*state = f;
	return f->s ? 0 : -1;
}

/* Gets go through a worker twice, so completions cross threads. */
static int delayed_dir_workers(void **state)
{
	struct fixture *f = fixture_new(3);
	fixture_dir(f);
	f->s = store_fault_new(f->s, "delay:*1:1", NULL);
	*state = f;
	return f->s ? 0 : -1;
}

/* A faulty store over a counting one over memory, with x = "0123456789". */
static struct store *faulty(struct fixture *f, const char *spec, struct store **counting)
{
	struct err err = ERR_INIT;
	*counting = store_count_new(store_mem_new(&f->env, NULL), NULL);
	put_text(*counting, "x", "0123456789");
	put_text(*counting, "d/y.json", "{}");
	struct store *s = store_fault_new(*counting, spec, &err);
	if (!s)
		fail_msg("%s: %s", spec, err.msg);
	return s;
}

static void test_failing_requests_do_not_reach_the_store(void **state)
{
	struct store *counting, *s = faulty(*state, "fail:1+:ESTALE", &counting);
	struct store_counts n;
	struct store_page page;
	struct err err = ERR_INIT;
	assert_code(s, "x", -ESTALE);
	assert_int_equal(call_head(s, "x", NULL, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "injected"));
	assert_int_equal(call_put(s, "x", "1", 1, NULL, NULL, &err), -ESTALE);
	assert_int_equal(call_delete(s, "x", NULL, &err), -ESTALE);
	assert_int_equal(call_list_all(s, "", false, 10, &page, &err), -ESTALE);
	store_count_read(counting, &n);
	assert_int_equal(n.calls[STORE_GET] + n.calls[STORE_HEAD] + n.calls[STORE_LIST] +
				 n.calls[STORE_DELETE],
			 0);
	assert_int_equal(n.calls[STORE_PUT], 2); /* by the test itself */
	store_free(s);
}

/* If several rules fail a request, the first one decides. */
static void test_the_first_failure_counts(void **state)
{
	struct store *counting, *s = faulty(*state, "fail:1:EACCES,fail:1:ESTALE", &counting);
	assert_code(s, "x", -EACCES);
	store_free(s);
}

static void test_which_are_hit(void **state)
{
	static const struct {
		const char *spec, *want; /* ten GETs of x: o = ok, F = failed */
	} cases[] = {
		{"", "oooooooooo"},
		{"fail:3", "ooFooooooo"},
		{"fail:8+", "oooooooFFF"},
		{"fail:*3", "ooFooFooFo"},
		{"fail:0%", "oooooooooo"},
		{"fail:100%", "FFFFFFFFFF"},
		{"fail:1,fail:3", "FoFooooooo"},
		{"fail:1+@d/*", "oooooooooo"},
		{"fail:1+@y", "oooooooooo"},
		{"fail:1+@x", "FFFFFFFFFF"},
		{"fail:*5@[xyz]", "ooooFooooF"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store *counting, *s = faulty(*state, cases[i].spec, &counting);
		char seen[11] = "", text[16];
		for (int k = 0; k < 10; k++)
			seen[k] = get_text(s, "x", text, sizeof(text)) ? 'F' : 'o';
		assert_string_equal(seen, cases[i].want);
		store_free(s);
	}
}

static void test_chance_is_repeatable(void **state)
{
	enum { N = 2000 };
	char first[N], second[N];
	char *runs[] = {first, second}, text[16];
	unsigned int failed = 0;
	for (int run = 0; run < 2; run++) {
		struct store *counting, *s = faulty(*state, "fail:5%", &counting);
		for (int k = 0; k < N; k++)
			runs[run][k] = get_text(s, "x", text, sizeof(text)) != 0;
		store_free(s);
	}
	for (int k = 0; k < N; k++)
		failed += first[k] != 0;
	assert_memory_equal(first, second, N);
	assert_in_range(failed, 60, 140);
}

static void test_bodies(void **state)
{
	static const struct {
		const char *spec, *want;
	} cases[] = {
		{"truncate:1:4", "0123"},
		{"truncate:1", ""},
		{"truncate:1:99", "0123456789"},
		{"truncate:2:4", "0123456789"},
		{"flip:1:1", "0\xce"
			     "23456789"},
		{"flip:1:10", "0123456789"},
		{"flip:1:1,flip:1:2", "0\xce\xcd"
				      "3456789"},
		{"truncate:1:2@*.json", "0123456789"},
		{"truncate:1:2,flip:1:2", "01"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store *counting, *s = faulty(*state, cases[i].spec, &counting);
		assert_int_equal(call_head(s, "x", NULL, NULL), 0); /* no body: not counted */
		assert_object(s, "x", cases[i].want);
		assert_object(counting, "x", "0123456789");
		store_free(s);
	}
}

static void test_delays(void **state)
{
	struct fixture *f = *state;
	struct store *counting, *s = faulty(f, "delay:*2:30,delay:1+:5@d/*", &counting);
	assert_object(s, "x", "0123456789");
	assert_int_equal(f->slept_ns, 0);
	assert_object(s, "x", "0123456789");
	assert_int_equal(f->slept_ns, 30000000);
	assert_object(s, "d/y.json", "{}");
	assert_int_equal(f->slept_ns, 35000000);
	assert_listing(s, "d/", true, "d/y.json");
	assert_int_equal(f->slept_ns, 70000000);
	store_free(s);
}

/* A move counts once for each rule that one of its keys matches. */
static void test_moves(void **state)
{
	static const struct {
		const char *spec;
		int code;
		uint64_t slept_ms;
	} cases[] = {
		{"fail:1:ENOSPC@x", -ENOSPC, 0}, {"fail:1:EIO@new", -EIO, 0},
		{"fail:1:ENOENT", -EIO, 0},	 {"fail:2:EACCES", 0, 0},
		{"truncate:1,flip:1", 0, 0},	 {"delay:1:30@[xn]*", 0, 30},
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store *counting, *s = faulty(f, cases[i].spec, &counting);
		struct err err = ERR_INIT;
		f->slept_ns = 0;
		assert_int_equal(store_move(s, "x", "", "new", NULL, NULL, &err), cases[i].code);
		assert_int_equal(f->slept_ns, cases[i].slept_ms * 1000000);
		assert_code(counting, "x", cases[i].code ? 0 : -ENOENT);
		store_free(s);
	}
}

static void test_bad_spec_keeps_inner(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	put_text(f->s, "x", "1");
	assert_null(store_fault_new(f->s, "fail", &err));
	assert_int_equal(err.code, -EINVAL);
	assert_object(f->s, "x", "1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(harmless_mem),
		CONTRACT_TESTS(delayed_dir_workers),
		CONTRACT_TEST(test_failing_requests_do_not_reach_the_store, harmless_mem),
		CONTRACT_TEST(test_the_first_failure_counts, harmless_mem),
		CONTRACT_TEST(test_which_are_hit, harmless_mem),
		CONTRACT_TEST(test_chance_is_repeatable, harmless_mem),
		CONTRACT_TEST(test_bodies, harmless_mem),
		CONTRACT_TEST(test_delays, harmless_mem),
		CONTRACT_TEST(test_moves, harmless_mem),
		CONTRACT_TEST(test_bad_spec_keeps_inner, harmless_mem),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
