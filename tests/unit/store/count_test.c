/* SPDX-License-Identifier: Apache-2.0 */
/* The counting wrapper: it changes no answer, and its counters are right. */
#include "mem_store.h"
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

/* Each request is counted once by its result and once in the histogram of its operation. */
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
	assert_int_equal(call_put(s, "/", "", 0, NULL, NULL, NULL),
			 -EINVAL); /* invalid key: does not reach the wrapper */
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

static void test_moves_are_counted(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct store_counts n;
	put_text(s, "x", "1");
	assert_int_equal(store_move(s, "x", "", "y", NULL, NULL, NULL), 0);
	assert_int_equal(store_move(s, "x", "", "y", NULL, NULL, NULL), -ENOENT);
	store_count_read(s, &n);
	assert_int_equal(n.moves, 2);
	assert_int_equal(n.failures, 1);
	assert_int_equal(n.calls[STORE_PUT], 1);
	assert_int_equal(n.calls[STORE_DELETE], 0);
}

/* Over a store with pages of 1000. */
static void test_number_of_pages(void **state)
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
		assert_null(page.next);
	}
}

/* At the level debug, each request is one line. */
static void test_log_lines(void **state)
{
	static const struct {
		uint64_t first, length;
		const char *text;
	} cases[] = {
		{0, STORE_TO_END, "get x: ok, 10 bytes, "},
		{3, STORE_TO_END, "get x, bytes 3-: ok, 7 bytes, "},
		{3, 4, "get x, bytes 3-6: ok, 4 bytes, "},
		{0, 1, "get x, bytes 0-0: ok, 1 bytes, "},
	};
	struct fixture *f = *state;
	put_text(f->s, "x", "0123456789");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FILE *to = tmpfile();
		const int saved = dup(STDERR_FILENO);
		struct call_result res;
		char text[256] = "";
		assert_true(to && saved >= 0);
		dup2(fileno(to), STDERR_FILENO);
		f->env.log = log_new("test", LOG_LEVEL_DEBUG);
		const int rc =
			call_get(f->s, "x", cases[i].first, cases[i].length, 0, NULL, &res, NULL);
		log_free(f->env.log);
		f->env.log = NULL;
		dup2(saved, STDERR_FILENO);
		close(saved);
		assert_true(pread(fileno(to), text, sizeof(text) - 1, 0) > 0);
		fclose(to);
		assert_int_equal(rc, 0);
		bytes_release(&res.body);
		if (!strstr(text, cases[i].text))
			fail_msg("\"%s\" is not in \"%s\"", cases[i].text, text);
	}
}

/* ---- a store that answers when the test lets it ---- */

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

static void answer_last(struct held *h)
{
	store_fail(&h->base, h->reqs[--h->n], -EIO, "answered by the test");
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
	answer_last(h);
	answer_last(h);
	start(s, STORE_GET, &done);
	start(s, STORE_GET, &done);
	while (h->n)
		answer_last(h);
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
		CONTRACT_TEST(test_moves_are_counted, counted_mem),
		CONTRACT_TEST(test_results, counted_mem),
		CONTRACT_TEST(test_number_of_pages, counted_mem),
		CONTRACT_TEST(test_log_lines, counted_mem),
		CONTRACT_TEST(test_in_flight, counted_mem),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
