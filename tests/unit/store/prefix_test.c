/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a bucket below a prefix as a bucket of its own. */
#include "mem_store.h"
#include "store_contract.h"

static int no_store(void **state)
{
	*state = NULL;
	return 0;
}

static int below_mem(void **state)
{
	struct fixture *f = fixture_new(2);
	f->s = store_mem_new(&f->env, NULL);
	put_text(f->s, "a", "outside");
	put_text(f->s, "a/b", "outside");
	put_text(f->s, "a/bc/x", "outside");
	f->s = store_prefix_new(f->s, "a/b", NULL);
	*state = f;
	return f->s ? 0 : -1;
}

static void test_prefixes(void **state)
{
	static const char *const bad[] = {"", "/", "/a", "a//", "a//b", "..", "a/../b"};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(store_prefix_new(f->s, bad[i], &err));
		assert_int_equal(err.code, -EINVAL);
	}
	f->s = store_prefix_new(f->s, "c/", NULL);
	put_text(f->s, "x", "1");
	assert_listing(f->s, "", false, "x");
}

/* A key that is valid alone, but too long with the prefix. */
static void test_too_long(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	char key[STORE_KEY_MAX + 1];
	memset(key, 'k', STORE_KEY_MAX);
	key[STORE_KEY_MAX] = '\0';
	assert_code(s, key, -EINVAL);
	assert_int_equal(call_put(s, key, "1", 1, NULL, NULL, NULL), -EINVAL);
	key[STORE_KEY_MAX - 4] = '\0';
	put_text(s, key, "1");
	assert_object(s, key, "1");
}

/* The marker of the prefix itself is no key of the bucket below it. */
static void test_own_marker(void **state)
{
	struct fixture *f = fixture_new(2);
	const struct call_list list = {.prefix = "", .markers = true, .limit = 10};
	auto_page struct store_page page = {0};
	char text[256];
	f->s = store_mem_new(&f->env, NULL);
	assert_int_equal(store_mem_put_marker(f->s, "a/"), 0);
	assert_int_equal(store_mem_put_marker(f->s, "a/b/"), 0);
	put_text(f->s, "a/c", "1");
	f->s = store_prefix_new(f->s, "a", NULL);
	assert_int_equal(call_list(f->s, &list, true, &page, NULL), 0);
	join_page(&page, text, sizeof(text));
	assert_string_equal(text, "b/ c");
	assert_int_equal(call_delete(f->s, "b/", NULL, NULL), 0);
	assert_listing(f->s, "", true, "c");
	*state = f;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(below_mem),
		CONTRACT_TEST(test_prefixes, below_mem),
		CONTRACT_TEST(test_too_long, below_mem),
		CONTRACT_TEST(test_own_marker, no_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
