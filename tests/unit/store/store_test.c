/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to stores that break the contract, and the path of a request through a stack. */
#include "store_fixture.h"

#include <store/implement.h>

struct bad_store {
	struct store base;
	unsigned int lists; /* pages requested */
	const struct store_request *seen;
	const char *next; /* NULL: "same" */
	char key[64];
};

/* A server whose every page says that more items follow the key "same". */
static void submit(struct store *s, struct store_request *req)
{
	struct bad_store *bad = (struct bad_store *)s;
	struct store_page *page = &req->answer.page;
	bad->seen = req;
	snprintf(bad->key, sizeof(bad->key), "%s", req->key);
	if (req->op != STORE_LIST) {
		store_fail(s, req, -EIO, "object %s: bad", req->key);
		return;
	}
	bad->lists++;
	page->arena = arena_new(4096);
	page->more = true;
	page->next = bad->next ? bad->next : "same";
	store_present(s, req);
}

static void free_nothing(struct store *s)
{
}

static const struct store_ops bad_ops = {.name = "bad", .submit = submit, .free = free_nothing};

static void bad_init(struct bad_store *bad, const struct env *env)
{
	*bad = (struct bad_store){0};
	store_init(&bad->base, &bad_ops, env, 0);
}

static void test_listing_that_does_not_advance(void **state)
{
	const struct env env = env_real(NULL, NULL);
	struct bad_store bad;
	struct store_page page;
	struct err err = ERR_INIT;
	bad_init(&bad, &env);
	assert_int_equal(call_list_all(&bad.base, "", false, 10, &page, &err), -EIO);
	assert_int_equal(bad.lists, 2);
	assert_non_null(strstr(err.msg, "advance"));
}

/* The next page would begin after a key that no request can hold. */
static void test_listing_with_a_next_key_that_is_too_long(void **state)
{
	const struct env env = env_real(NULL, NULL);
	char next[STORE_KEY_MAX + 2];
	struct bad_store bad;
	struct store_page page;
	struct err err = ERR_INIT;
	memset(next, 'k', sizeof(next) - 1);
	next[sizeof(next) - 1] = '\0';
	bad_init(&bad, &env);
	bad.next = next;
	assert_int_equal(call_list_all(&bad.base, "", false, 10, &page, &err), -EIO);
	assert_int_equal(bad.lists, 1);
	bad.next = next + 1;
	assert_int_equal(call_list_all(&bad.base, "", false, 10, &page, &err), -EIO);
	assert_int_equal(bad.lists, 3);
}

static void test_space_is_optional(void **state)
{
	struct bad_store bad = {.base = {.ops = &bad_ops}};
	uint64_t free_bytes, total;
	assert_int_equal(store_space(&bad.base, &free_bytes, &total), -EOPNOTSUPP);
}

static void test_nothing_is_fine(void **state)
{
	struct store_page page = {0};
	store_free(NULL);
	store_request_free(NULL);
	store_page_release(&page);
	store_page_release(&page);
	store_run_all(NULL, NULL, 0);
}

/* The bottom of a stack gets the caller's own request, and the caller gets it back unchanged. */
static void test_the_request_is_not_copied(void **state)
{
	const struct env env = env_real(NULL, NULL);
	struct bad_store bad;
	bad_init(&bad, &env);
	struct store *s = store_prefix_new(&bad.base, "low", NULL);
	s = store_retry_new(store_fault_new(s, "", NULL), NULL, NULL);
	s = store_count_new(store_prefix_new(s, "high/er", NULL), NULL);
	assert_non_null(s);
	struct store_request *req = store_request_new(s, STORE_GET);
	char *const key = req->key;
	store_request_key(req, "x/y");
	store_run(s, req);
	assert_ptr_equal(bad.seen, req);
	assert_string_equal(bad.key, "low/high/er/x/y");
	assert_ptr_equal(req->key, key);
	assert_string_equal(req->key, "x/y");
	assert_int_equal(store_failure(&req->answer, NULL), -EIO);
	/* The same request for another operation. */
	store_request_reset(req, STORE_HEAD);
	store_request_key(req, "z");
	store_run(s, req);
	assert_string_equal(bad.key, "low/high/er/z");
	store_request_free(req);
	store_free(s);
}

/* A key that is too long, alone or with its prefix, fails with -EINVAL. */
static void test_keys_that_are_too_long(void **state)
{
	const struct env env = env_real(NULL, NULL);
	struct bad_store bad;
	char key[2 * STORE_KEY_MAX];
	bad_init(&bad, &env);
	struct store *s = store_prefix_new(&bad.base, "in/front", NULL);
	for (size_t n = STORE_KEY_MAX - 10; n < sizeof(key); n += 9) {
		memset(key, 'k', n);
		key[n] = '\0';
		struct call_result res;
		const int want = n + strlen("in/front/") <= STORE_KEY_MAX ? -EIO : -EINVAL;
		assert_int_equal(call_get(s, key, 0, STORE_TO_END, 0, NULL, &res, NULL), want);
	}
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listing_that_does_not_advance),
		cmocka_unit_test(test_listing_with_a_next_key_that_is_too_long),
		cmocka_unit_test(test_space_is_optional),
		cmocka_unit_test(test_nothing_is_fine),
		cmocka_unit_test(test_the_request_is_not_copied),
		cmocka_unit_test(test_keys_that_are_too_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
