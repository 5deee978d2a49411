/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: the contract with and without workers, keys that a directory cannot hold,
 * services without conditions, uploads in parts, and listings that lag. */
#include "mem_store.h"
#include "store_contract.h"

static int mem_inline(void **state)
{
	struct fixture *f = fixture_new(0);
	f->s = store_mem_new(&f->env, NULL);
	*state = f;
	return f->s ? 0 : -1;
}

static int mem_workers(void **state)
{
	struct fixture *f = fixture_new(4);
	f->s = store_mem_new(&f->env, NULL);
	*state = f;
	return f->s ? 0 : -1;
}

static void test_object_and_prefix(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	put_text(s, "a", "1");
	put_text(s, "a/b", "2");
	put_text(s, "a-b", "3");
	assert_object(s, "a", "1");
	assert_object(s, "a/b", "2");
	assert_listing(s, "", false, "a a-b a/b");
	assert_listing(s, "", true, "a a-b a/");
	assert_int_equal(call_delete(s, "a", NULL, NULL), 0);
	assert_listing(s, "", true, "a-b a/");
}

static void assert_markers(struct store *s, const char *prefix, bool delimit, const char *want)
{
	const struct call_list list = {
		.prefix = prefix, .markers = true, .delimit = delimit, .limit = 100};
	auto_page struct store_page page = {0};
	char text[256];
	assert_int_equal(call_list(s, &list, true, &page, NULL), 0);
	join_page(&page, text, sizeof(text));
	assert_string_equal(text, want);
}

static void test_markers(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	assert_int_equal(store_mem_put_marker(s, "a/"), 0);
	assert_int_equal(store_mem_put_marker(s, "b/c/"), 0);
	put_text(s, "b/x", "1");
	assert_listing(s, "", false, "b/x");
	assert_listing(s, "", true, "a/ b/");
	assert_markers(s, "", false, "a/ b/c/ b/x");
	assert_markers(s, "a/", true, "a/");
	assert_markers(s, "b/", true, "b/c/ b/x");
	assert_int_equal(call_delete(s, "a/", NULL, NULL), 0);
	assert_listing(s, "", true, "b/");
}

static void test_no_space(void **state)
{
	uint64_t free_bytes, total;
	assert_int_equal(store_space(((struct fixture *)*state)->s, &free_bytes, &total),
			 -EOPNOTSUPP);
}

/* ---- what the service lacks ---- */

/* Another writer between two steps of a request. */
struct other {
	struct store *s;
	unsigned int calls, at; /* it writes at this call, from 1 */
	bool deletes;
};

static void write_between(void *arg, const char *key)
{
	struct other *o = arg;
	if (++o->calls != o->at)
		return;
	if (o->deletes)
		assert_int_equal(call_delete(o->s, key, NULL, NULL), 0);
	else
		put_text(o->s, key, "other");
}

static void test_marks_are_dropped(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	const struct store_cond absent = {.if_none_match = "*"};
	const struct store_cond again = {.if_none_match = "*", .retried = true};
	store_mem_set_lacks(s, STORE_MEM_NO_MARKS, NULL, NULL);
	assert_int_equal(store_keeps_marks(s), STORE_MARKS_DROPPED);
	assert_int_equal(call_put_mark(s, "x", "1", "m", NULL, NULL, NULL), 0);
	assert_mark(s, "x", "");
	assert_int_equal(call_put_mark(s, "x", "1", "m", &absent, NULL, NULL), -EEXIST);
	assert_int_equal(call_put_mark(s, "x", "2", "m", &again, NULL, NULL), -EEXIST);
	assert_int_equal(call_put_mark(s, "x", "1", "m", &again, NULL, NULL), 0);
}

static void test_no_condition_of_delete(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct other other = {.s = s, .at = 1};
	struct store_meta meta;
	bool was_absent;
	assert_int_equal(call_put(s, "x", "1", 1, NULL, &meta, NULL), 0);
	assert_int_equal(call_delete_version(s, "x", "other", &was_absent), -ESTALE);
	store_mem_set_lacks(s, STORE_MEM_NO_DELETE_IF, write_between, &other);
	assert_int_equal(call_delete_version(s, "x", "other", &was_absent), -ESTALE);
	assert_int_equal(other.calls, 0);
	assert_int_equal(call_delete_version(s, "x", meta.etag, &was_absent), 0);
	assert_int_equal(other.calls, 1);
	assert_code(s, "x", -ENOENT); /* the other writer's object is lost */
	assert_int_equal(call_delete(s, "x", NULL, NULL), 0);
	assert_int_equal(other.calls, 1);
}

static void test_no_conditions_of_put(void **state)
{
	static const struct {
		bool exists;	 /* the object, before the put, which names its version then */
		unsigned int at; /* when another writer changes it; 0: never */
		bool deletes;
		int code;
		const char *want;
	} cases[] = {
		{true, 0, false, 0, "mine"},	    {false, 0, false, 0, "mine"},
		{true, 1, false, 0, "mine"},	    {false, 1, false, 0, "mine"},
		{true, 2, false, -ESTALE, "other"}, {false, 2, false, -ESTALE, "other"},
		{true, 2, true, -ESTALE, NULL},
	};
	struct store *s = ((struct fixture *)*state)->s;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct other other = {.s = s, .at = cases[i].at, .deletes = cases[i].deletes};
		struct store_meta meta;
		store_mem_set_lacks(s, 0, NULL, NULL);
		assert_int_equal(call_put(s, "x", "old", 3, NULL, &meta, NULL), 0);
		if (!cases[i].exists)
			assert_int_equal(call_delete(s, "x", NULL, NULL), 0);
		const struct store_cond cond = {
			.if_match = cases[i].exists ? meta.etag : NULL,
			.if_none_match = cases[i].exists ? NULL : "*",
		};
		store_mem_set_lacks(s, STORE_MEM_NO_IF_MATCH | STORE_MEM_NO_IF_NONE_MATCH,
				    write_between, &other);
		assert_int_equal(call_put(s, "x", "mine", 4, &cond, NULL, NULL), cases[i].code);
		assert_int_equal(other.calls, 2);
		if (cases[i].want)
			assert_object(s, "x", cases[i].want);
		else
			assert_code(s, "x", -ENOENT);
		/* What is seen before the put is still a conflict. */
		put_text(s, "x", "third");
		assert_int_equal(call_put(s, "x", "mine", 4, &cond, NULL, NULL),
				 cases[i].exists ? -ESTALE : -EEXIST);
		assert_int_equal(other.calls, 2);
	}
}

static int put_in_parts(struct store *s, const char *text, const struct store_cond *cond)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	const struct piece piece = {text, strlen(text)};
	store_request_key(req, "x");
	req->pieces = &piece;
	req->n_pieces = 1;
	req->in_parts = true;
	req->cond = *cond;
	store_run(s, req);
	return store_failure(&req->answer, NULL);
}

/* Other writers may come while two parts are sent, before the completion if its condition is not
 * checked, and before the look at the object if the answer to the completion is lost. */
static void test_uploads_in_parts(void **state)
{
	enum { LOST = STORE_MEM_PARTS_LOST, NO_IF = STORE_MEM_NO_PARTS_IF };
	static const struct {
		unsigned int lacks;
		bool exists;
		unsigned int at; /* when another writer puts the object; 0: never */
		unsigned int calls;
		int code;
		const char *want;
	} cases[] = {
		{0, true, 0, 2, 0, "mine"},
		{0, false, 0, 2, 0, "mine"},
		{0, true, 2, 2, -ESTALE, "other"},
		{0, false, 2, 2, -EEXIST, "other"},
		{LOST, true, 0, 3, 0, "mine"},
		{LOST, true, 3, 3, -ESTALE, "other"},
		{LOST, false, 3, 3, -EEXIST, "other"},
		{NO_IF, true, 2, 2, -ESTALE, "other"},
		{NO_IF, true, 3, 4, 0, "mine"}, /* that of the other writer is lost */
		{NO_IF, true, 4, 4, -ESTALE, "other"},
		{NO_IF | LOST, true, 4, 4, -EIO, "other"},
	};
	struct store *s = ((struct fixture *)*state)->s;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct other other = {.s = s, .at = cases[i].at};
		struct store_meta meta;
		store_mem_set_lacks(s, 0, NULL, NULL);
		assert_int_equal(call_put(s, "x", "old", 3, NULL, &meta, NULL), 0);
		if (!cases[i].exists)
			assert_int_equal(call_delete(s, "x", NULL, NULL), 0);
		const struct store_cond cond = {
			.if_match = cases[i].exists ? meta.etag : NULL,
			.if_none_match = cases[i].exists ? NULL : "*",
		};
		store_mem_set_lacks(s, STORE_MEM_PARTS | cases[i].lacks, write_between, &other);
		assert_int_equal(put_in_parts(s, "mine", &cond), cases[i].code);
		assert_int_equal(other.calls, cases[i].calls);
		assert_object(s, "x", cases[i].want);
	}
}

static int64_t now_ns;

static int64_t clock_of_test(void)
{
	return now_ns;
}

/* Of eight listings, each one shows another moment of the last 80 ns. */
static void test_listings_lag(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	static const char *const want[8] = {"b c", "a b", "b c", "a b", "b", "b c", "a b", "b"};
	store_mem_set_clock(s, clock_of_test);
	store_mem_set_lag(s, 80);
	now_ns = 100;
	put_text(s, "a", "1");
	put_text(s, "b", "1");
	now_ns = 160;
	assert_int_equal(call_delete(s, "a", NULL, NULL), 0);
	put_text(s, "b", "2");
	now_ns = 175;
	put_text(s, "c", "1");
	now_ns = 200;
	for (size_t i = 0; i < 8; i++)
		assert_listing(s, "", false, want[i]);
	assert_code(s, "a", -ENOENT);
	assert_object(s, "b", "2");
}

static void test_no_move(void **state)
{
	struct fixture *f = *state;
	f->no_move = true;
	store_mem_set_lacks(f->s, STORE_MEM_NO_MOVE, NULL, NULL);
	put_text(f->s, "a", "1");
	test_move(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(mem_inline),
		CONTRACT_TESTS(mem_workers),
		CONTRACT_TEST(test_object_and_prefix, mem_inline),
		CONTRACT_TEST(test_markers, mem_inline),
		CONTRACT_TEST(test_no_space, mem_inline),
		CONTRACT_TEST(test_marks_are_dropped, mem_inline),
		CONTRACT_TEST(test_no_condition_of_delete, mem_inline),
		CONTRACT_TEST(test_no_conditions_of_put, mem_inline),
		CONTRACT_TEST(test_uploads_in_parts, mem_inline),
		CONTRACT_TEST(test_listings_lag, mem_inline),
		CONTRACT_TEST(test_no_move, mem_inline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
