/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of a store, as tests/unit/store/contract.h has it, over a bucket of a real S3
 * server. The bucket is named by S3_TEST_BUCKET and emptied before each test; endpoint and
 * credentials come from the environment as for any AWS tool.
 */
#include "contract.h"

#include <store/s3.h>

static void empty(struct store *s)
{
	struct err err = ERR_INIT;
	auto_page struct store_page all = {0};
	if (store_list_all(s, "", false, 10000, &all, &err))
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < all.n; i++)
		assert_int_equal(store_delete(s, all.items[i].key, NULL, NULL), 0);
}

static struct fixture *bucket(unsigned int workers, enum store_s3_style style)
{
	struct err err = ERR_INIT;
	struct fixture *f = fixture_new(workers);
	const struct store_s3_options opt = {.bucket = getenv("S3_TEST_BUCKET"), .style = style};
	f->version_is_content = true;
	f->put_knows_no_time = true;
	f->utf8_keys = true;
	f->s = store_s3_new(&f->env, &opt, &err);
	if (!f->s)
		fail_msg("%s", err.msg);
	empty(f->s);
	return f;
}

static int s3_inline(void **state)
{
	*state = bucket(0, STORE_S3_STYLE_PATH);
	return 0;
}

static int s3_workers(void **state)
{
	*state = bucket(4, STORE_S3_STYLE_AUTO);
	return 0;
}

static int s3_virtual_host(void **state)
{
	*state = bucket(4, STORE_S3_STYLE_VIRTUAL);
	return 0;
}

/* As the engine stacks them, below a prefix that is to be left out everywhere. */
static int s3_stack(void **state)
{
	struct fixture *f = bucket(4, STORE_S3_STYLE_AUTO);
	put_text(f->s, "a/outside", "x");
	f->s = store_retry_new(store_prefix_new(f->s, "a/b c/", NULL), NULL, NULL);
	*state = f;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TESTS(s3_inline),
		CONTRACT_TESTS(s3_workers),
		CONTRACT_TESTS(s3_stack),
	};
	const struct CMUnitTest virtual_host[] = {CONTRACT_TESTS(s3_virtual_host)};
	return getenv("S3_TEST_VIRTUAL_HOST") ? cmocka_run_group_tests(virtual_host, NULL, NULL)
					      : cmocka_run_group_tests(tests, NULL, NULL);
}
