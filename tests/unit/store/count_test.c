/* SPDX-License-Identifier: Apache-2.0 */
/* The counting wrapper: it changes nothing, and its numbers are right. */
#include "store_contract.h"

static int counted_mem(void **state)
{
	struct fixture *f = fixture_new(0);
	struct store *mem = store_mem_new(&f->env, NULL);
	f->s = mem ? store_count_new(mem, NULL) : NULL;
	*state = f;
	return f->s ? 0 : -1;
}

static int counted_dir_workers(void **state)
{
	struct fixture *f = fixture_new(4);
	fixture_dir(f);
	f->s = store_count_new(f->s, NULL);
	*state = f;
	return f->s ? 0 : -1;
}

static uint64_t result_of(const struct store_counts *n, enum store_call call, const char *name)
{
	for (unsigned int i = 0; i < STORE_RESULTS; i++)
		if (strcmp(store_result_name(i), name) == 0)
			return n->results[call][i];
	fail_msg("no result is called %s", name);
	return 0;
}

/* Each call in one place, by what came of it, and in the histogram of its kind. */
static void test_results(void **state)
{
	static const struct {
		enum store_call call;
		const char *result;
		uint64_t n;
	} cases[] = {
		{STORE_CALL_GET, "ok", 1},    {STORE_CALL_GET, "ENOENT", 2},
		{STORE_CALL_GET, "EFBIG", 1}, {STORE_CALL_HEAD, "ok", 1},
		{STORE_CALL_HEAD, "EIO", 0},  {STORE_CALL_LIST, "ok", 1},
		{STORE_CALL_PUT, "ok", 1},    {STORE_CALL_PUT, "EEXIST", 1},
		{STORE_CALL_DELETE, "ok", 2}, {STORE_CALL_DELETE, "other", 0},
	};
	struct store *s = ((struct fixture *)*state)->s;
	const struct store_cond absent = {.if_none_match = "*"};
	struct store_get_result res;
	struct store_counts n;
	uint64_t sum = 0, timed = 0;
	put_text(s, "x", "0123456789");
	assert_int_equal(store_put(s, "x", "", 0, &absent, NULL, NULL), -EEXIST);
	assert_object(s, "x", "0123456789");
	assert_code(s, "y", -ENOENT);
	assert_code(s, "z", -ENOENT);
	assert_int_equal(store_get(s, "x", 0, UINT64_MAX, 9, NULL, &res, NULL), -EFBIG);
	assert_int_equal(store_head(s, "x", NULL, NULL), 0);
	assert_listing(s, "", false, "x");
	assert_int_equal(store_delete(s, "x", NULL, NULL), 0);
	assert_int_equal(store_delete(s, "x", NULL, NULL), 0);
	store_count_read(s, &n);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(result_of(&n, cases[i].call, cases[i].result), cases[i].n);
		sum += cases[i].n;
	}
	for (int call = 0; call < STORE_CALLS; call++)
		timed += n.seconds[call].count;
	assert_int_equal(timed, sum);
	assert_int_equal(n.seconds[STORE_CALL_GET].count, 4);
	assert_int_equal(n.seconds[STORE_CALL_DELETE].count, 2);
}

static void test_counts(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct store_get_result res;
	struct store_counts n;
	put_text(s, "x", "0123456789");
	assert_object(s, "x", "0123456789");
	assert_int_equal(store_get(s, "x", 2, UINT64_MAX, 0, NULL, &res, NULL), 0);
	bytes_release(&res.body);
	assert_int_equal(store_get(s, "x", 0, 3, 0, NULL, &res, NULL), 0);
	bytes_release(&res.body);
	assert_int_equal(store_head(s, "x", NULL, NULL), 0);
	assert_code(s, "y", -ENOENT);
	assert_listing(s, "", false, "x");
	assert_int_equal(store_delete(s, "x", NULL, NULL), 0);
	assert_int_equal(store_put(s, "/", "", 0, NULL, NULL, NULL), -EINVAL); /* never passes */
	store_count_read(s, &n);
	assert_int_equal(n.gets, 4);
	assert_int_equal(n.range_gets, 2);
	assert_int_equal(n.heads, 1);
	assert_int_equal(n.lists, 1);
	assert_int_equal(n.puts, 1);
	assert_int_equal(n.deletes, 1);
	assert_int_equal(n.bytes_in, 10 + 8 + 3);
	assert_int_equal(n.bytes_out, 10);
	assert_int_equal(n.failures, 1);
	assert_int_equal(n.in_flight_max, 1);
}

/* Over a store with pages of 1000. */
static void test_pages_asked_for(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	static const struct {
		uint32_t limit;
		int code;
		unsigned int pages;
	} cases[] = {
		{500, -E2BIG, 1},  {999, -E2BIG, 1}, {1000, -E2BIG, 1}, {2000, -E2BIG, 2},
		{2499, -E2BIG, 3}, {2500, 0, 3},     {100000, 0, 3},	{UINT32_MAX, 0, 3},
	};
	for (int i = 0; i < 2500; i++) {
		char key[16];
		snprintf(key, sizeof(key), "d/%d", i);
		put_text(s, key, "");
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_counts before, after;
		auto_page struct store_page page = {0};
		store_count_read(s, &before);
		assert_int_equal(store_list_all(s, "d/", true, cases[i].limit, &page, NULL),
				 cases[i].code);
		store_count_read(s, &after);
		assert_int_equal(after.lists - before.lists, cases[i].pages);
		assert_int_equal(page.n, cases[i].code ? 0 : 2500);
		assert_false(page.more);
	}
}

/* ---- a store that answers when it is told to ---- */

struct held {
	struct store base;
	struct store_get reqs[4];
	size_t n;
};

static void hold(struct store *s, const struct store_get *req)
{
	struct held *h = (struct held *)s;
	h->reqs[h->n++] = *req;
}

static void let_go(struct held *h)
{
	struct store_get_result res = {.code = -EIO};
	err_set(&res.err, -EIO, "let go");
	h->n--;
	h->reqs[h->n].done(h->reqs[h->n].arg, &res);
}

static void free_held(struct store *s)
{
	free(s);
}

static const struct store_ops held_ops = {.name = "held", .get = hold, .free = free_held};

static void count_done(void *arg, struct store_get_result *res)
{
	assert_int_equal(res->code, -EIO);
	*(int *)arg += 1;
}

static void test_in_flight(void **state)
{
	struct fixture *f = *state;
	struct held *h = calloc(1, sizeof(*h));
	h->base.ops = &held_ops;
	h->base.env = &f->env;
	struct store *s = store_count_new(&h->base, NULL);
	struct store_counts n;
	int done = 0;
	const struct store_get get = {
		.key = "x", .length = UINT64_MAX, .done = count_done, .arg = &done};
	const struct store_get head = {
		.op = STORE_HEAD, .key = "x", .done = count_done, .arg = &done};
	store_get_async(s, &get);
	store_get_async(s, &get);
	store_get_async(s, &head);
	let_go(h);
	let_go(h);
	store_get_async(s, &get);
	store_get_async(s, &get);
	while (h->n)
		let_go(h);
	store_count_read(s, &n);
	assert_int_equal(n.in_flight_max, 3);
	assert_int_equal(n.failures, 5);
	assert_int_equal(done, 5);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(counted_mem),
		CONTRACT_TESTS(counted_dir_workers),
		CONTRACT_TEST(test_counts, counted_mem),
		CONTRACT_TEST(test_results, counted_mem),
		CONTRACT_TEST(test_pages_asked_for, counted_mem),
		CONTRACT_TEST(test_in_flight, counted_mem),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
