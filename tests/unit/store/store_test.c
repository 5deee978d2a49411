/* SPDX-License-Identifier: Apache-2.0 */
/* The checked calls over stores that behave badly. */
#include "store_fixture.h"

struct bad_store {
	struct store base;
	int code;	    /* of gets */
	unsigned int lists; /* pages asked for */
};

static void get_bare(struct store *s, const struct store_get *req)
{
	struct store_get_result res = {.code = ((struct bad_store *)s)->code};
	req->done(req->arg, &res);
}

/* A server that says "more" for ever, with the same page. */
static int list_again(struct store *s, const struct store_list *req, struct store_page *page,
		      struct err *err)
{
	((struct bad_store *)s)->lists++;
	page->arena = arena_new(4096);
	page->more = true;
	page->next = "same";
	return page->arena ? 0 : -ENOMEM;
}

static const struct store_ops bad_ops = {.name = "bad", .get = get_bare, .list = list_again};

static void test_failure_without_words(void **state)
{
	const struct env env = env_real(NULL, NULL);
	struct bad_store bad = {.base = {.ops = &bad_ops, .env = &env}, .code = -EIO};
	struct store_get_result res;
	struct err err = ERR_INIT;
	assert_int_equal(store_get(&bad.base, "k/x", 0, 1, 0, NULL, &res, &err), -EIO);
	assert_int_equal(err.code, -EIO);
	assert_non_null(strstr(err.msg, "k/x"));
	bad.code = 0;
	assert_int_equal(store_head(&bad.base, "k/x", NULL, NULL), 0);
}

static void test_listing_that_does_not_advance(void **state)
{
	const struct env env = env_real(NULL, NULL);
	struct bad_store bad = {.base = {.ops = &bad_ops, .env = &env}};
	struct store_page page;
	struct err err = ERR_INIT;
	assert_int_equal(store_list_all(&bad.base, "", false, 10, &page, &err), -EIO);
	assert_int_equal(bad.lists, 2);
	assert_non_null(strstr(err.msg, "advance"));
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
	store_page_release(&page);
	store_page_release(&page);
	assert_int_equal(store_list_many(NULL, NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failure_without_words),
		cmocka_unit_test(test_listing_that_does_not_advance),
		cmocka_unit_test(test_space_is_optional),
		cmocka_unit_test(test_nothing_is_fine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
