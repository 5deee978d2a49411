/* SPDX-License-Identifier: Apache-2.0 */
/* The counting wrapper: it changes nothing, and its numbers are right. */
#include "store_contract.h"

#include <store/implement.h>

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

static uint64_t result_of(const struct store_counts *n, enum store_op call, const char *name)
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
		enum store_op call;
		const char *result;
		uint64_t n;
	} cases[] = {
		{STORE_GET, "ok", 1},	    {STORE_GET, "absent", 2}, {STORE_GET, "EFBIG", 1},
		{STORE_HEAD, "ok", 1},	    {STORE_HEAD, "EIO", 0},   {STORE_LIST, "ok", 1},
		{STORE_PUT, "ok", 1},	    {STORE_PUT, "EEXIST", 1}, {STORE_DELETE, "ok", 2},
		{STORE_DELETE, "other", 0},
	};
	struct store *s = ((struct fixture *)*state)->s;
	const struct store_cond absent = {.if_none_match = "*"};
	struct call_result res;
	struct store_counts n;
	uint64_t sum = 0, timed = 0;
	put_text(s, "x", "0123456789");
	assert_int_equal(call_put(s, "x", "", 0, &absent, NULL, NULL), -EEXIST);
	assert_object(s, "x", "0123456789");
	assert_code(s, "y", -ENOENT);
	assert_code(s, "z", -ENOENT);
	assert_int_equal(call_get(s, "x", 0, UINT64_MAX, 9, NULL, &res, NULL), -EFBIG);
	assert_int_equal(call_head(s, "x", NULL, NULL), 0);
	assert_listing(s, "", false, "x");
	assert_int_equal(call_delete(s, "x", NULL, NULL), 0);
	assert_int_equal(call_delete(s, "x", NULL, NULL), 0);
	store_count_read(s, &n);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(result_of(&n, cases[i].call, cases[i].result), cases[i].n);
		sum += cases[i].n;
	}
	for (int call = 0; call < STORE_OPS; call++)
		timed += n.seconds[call].count;
	assert_int_equal(timed, sum);
	assert_int_equal(n.seconds[STORE_GET].count, 4);
	assert_int_equal(n.seconds[STORE_DELETE].count, 2);
}

static void test_counts(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct call_result res;
	struct store_counts n;
	put_text(s, "x", "0123456789");
	assert_object(s, "x", "0123456789");
	assert_int_equal(call_get(s, "x", 2, UINT64_MAX, 0, NULL, &res, NULL), 0);
	bytes_release(&res.body);
	assert_int_equal(call_get(s, "x", 0, 3, 0, NULL, &res, NULL), 0);
	bytes_release(&res.body);
	assert_int_equal(call_head(s, "x", NULL, NULL), 0);
	assert_code(s, "y", -ENOENT);
	assert_listing(s, "", false, "x");
	assert_int_equal(call_delete(s, "x", NULL, NULL), 0);
	assert_int_equal(call_put(s, "/", "", 0, NULL, NULL, NULL), -EINVAL); /* never passes */
	store_count_read(s, &n);
	assert_int_equal(n.calls[STORE_GET], 4);
	assert_int_equal(n.range_gets, 2);
	assert_int_equal(n.calls[STORE_HEAD], 1);
	assert_int_equal(n.calls[STORE_LIST], 1);
	assert_int_equal(n.calls[STORE_PUT], 1);
	assert_int_equal(n.calls[STORE_DELETE], 1);
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
		assert_int_equal(call_list_all(s, "d/", true, cases[i].limit, &page, NULL),
				 cases[i].code);
		store_count_read(s, &after);
		assert_int_equal(after.calls[STORE_LIST] - before.calls[STORE_LIST],
				 cases[i].pages);
		assert_int_equal(page.n, cases[i].code ? 0 : 2500);
		assert_false(page.more);
	}
}

/* ---- a store that answers when it is told to ---- */

struct held {
	struct store base;
	struct store_request *reqs[4];
	size_t n;
};

static void hold(struct store *s, struct store_request *req)
{
	struct held *h = (struct held *)s;
	h->reqs[h->n++] = req;
}

static void let_go(struct held *h)
{
	store_fail(&h->base, h->reqs[--h->n], -EIO, "let go");
}

static void free_held(struct store *s)
{
	free(s);
}

static const struct store_ops held_ops = {.name = "held", .submit = hold, .free = free_held};

static void count_done(struct store_request *req)
{
	assert_int_equal(store_failure(&req->answer, NULL), -EIO);
	*(int *)req->arg += 1;
	store_request_free(req);
}

static void start(struct store *s, enum store_op op, int *done)
{
	struct store_request *req = store_request_new(s, op);
	store_request_key(req, "x");
	req->done = count_done;
	req->arg = done;
	store_submit(s, req);
}

static void test_in_flight(void **state)
{
	struct fixture *f = *state;
	struct held *h = calloc(1, sizeof(*h));
	store_init(&h->base, &held_ops, &f->env, 0);
	struct store *s = store_count_new(&h->base, NULL);
	struct store_counts n;
	int done = 0;
	start(s, STORE_GET, &done);
	start(s, STORE_GET, &done);
	start(s, STORE_HEAD, &done);
	let_go(h);
	let_go(h);
	start(s, STORE_GET, &done);
	start(s, STORE_GET, &done);
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
