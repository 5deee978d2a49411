/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of a store (tests/support/store_contract.h) with a bucket of a real S3 server. The
 * environment has the name of the bucket in S3_TEST_BUCKET, and endpoint and credentials as for any
 * AWS tool. Each test empties the bucket first. S3_TEST_GROUP: bare (the default), stack (with the
 * wrappers of the engine, for a server with faults) or virtual-host.
 */
#include "store_contract.h"

#include <s3/s3.h>

static void empty(struct store *s)
{
	struct err err = ERR_INIT;
	auto_page struct store_page all = {0};
	if (call_list_all(s, "", false, 10000, &all, &err))
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < all.n; i++)
		assert_int_equal(call_delete(s, all.items[i].key, NULL, NULL), 0);
}

static struct fixture *bucket(unsigned int workers, enum store_s3_style style, bool asks_again)
{
	struct err err = ERR_INIT;
	struct fixture *f = fixture_new(workers);
	/* With faults, servers do not answer. Without, a busy machine may take long to answer. */
	const struct store_s3_options opt = {.bucket = getenv("S3_TEST_BUCKET"),
					     .style = style,
					     .first_byte_ms = asks_again ? 1000 : 0,
					     .low_speed_s = asks_again ? 1 : 0};
	f->version_is_content = true;
	f->put_knows_no_time = true;
	f->utf8_keys = true;
	f->no_move = true;
	f->s = store_s3_new(&f->env, &opt, &err);
	if (!f->s)
		fail_msg("%s", err.msg);
	if (asks_again)
		f->s = store_retry_new(f->s, NULL, NULL);
	empty(f->s);
	return f;
}

static int s3_inline(void **state)
{
	*state = bucket(0, STORE_S3_STYLE_PATH, false);
	return 0;
}

static int s3_workers(void **state)
{
	*state = bucket(4, STORE_S3_STYLE_AUTO, false);
	return 0;
}

static int s3_virtual_host(void **state)
{
	*state = bucket(4, STORE_S3_STYLE_VIRTUAL, false);
	return 0;
}

/* With the wrappers of the engine, including one for a prefix. */
static int s3_stack(void **state)
{
	struct fixture *f = bucket(4, STORE_S3_STYLE_AUTO, true);
	put_text(f->s, "a/outside", "x");
	f->s = store_prefix_new(f->s, "a/b c/", NULL);
	*state = f;
	return 0;
}

/* A server with Nagle's algorithm waits for an acknowledgement. The kernel delays it by 40 ms,
 * unless TCP_QUICKACK is set each time. */
static void test_small_answers_are_not_delayed(void **state)
{
	enum { N = 20 };
	const struct fixture *f = *state;
	static const char body[1000];
	struct call_result res;
	assert_int_equal(call_put(f->s, "small", body, sizeof(body), NULL, NULL, NULL), 0);
	const uint64_t started = f->env.now(&f->env);
	for (int i = 0; i < N; i++) {
		assert_int_equal(call_get(f->s, "small", 0, UINT64_MAX, 0, NULL, &res, NULL), 0);
		bytes_release(&res.body);
	}
	assert_true(f->env.now(&f->env) - started < UINT64_C(25000000) * N);
}

static int put_large(struct store *s, const struct piece *pieces, size_t n,
		     const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	store_request_key(req, "large");
	req->pieces = pieces;
	req->n_pieces = n;
	req->in_parts = true;
	req->cond = *cond;
	store_run(s, req);
	*meta = req->answer.meta;
	return store_failure(&req->answer, err);
}

/* An object that is put in parts: its bytes, its conditions, and a bucket that does not exist. The
 * pieces do not end where the parts end. */
static void test_put_in_parts(void **state)
{
	enum { SIZE = (80 << 20) + 12345, FIRST = (20 << 20) + 1 };
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_meta meta, other;
	struct call_result res;
	auto_free uint8_t *bytes = malloc(SIZE);
	for (uint32_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 24);
	const struct piece pieces[] = {
		{bytes, 1}, {bytes + 1, FIRST}, {bytes + 1 + FIRST, SIZE - 1 - FIRST}};
	struct store_cond cond = {.if_none_match = "*"};
	if (put_large(f->s, pieces, 3, &cond, &meta, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(meta.size, SIZE);
	assert_non_null(strstr(meta.etag, "-6"));
	assert_int_equal(call_get(f->s, "large", 0, UINT64_MAX, 0, NULL, &res, NULL), 0);
	assert_int_equal(res.body.len, SIZE);
	assert_memory_equal(res.body.data, bytes, SIZE);
	assert_string_equal(res.meta.etag, meta.etag);
	bytes_release(&res.body);
	assert_int_equal(put_large(f->s, pieces, 3, &cond, &other, &err), -EEXIST);
	cond = (struct store_cond){.if_match = "0"};
	assert_int_equal(put_large(f->s, pieces, 3, &cond, &other, &err), -ESTALE);
	cond.if_match = meta.etag;
	bytes[SIZE - 1] ^= 1;
	assert_int_equal(put_large(f->s, pieces, 3, &cond, &other, &err), 0);
	assert_string_not_equal(other.etag, meta.etag);
	assert_int_equal(call_get(f->s, "large", SIZE - 1, 1, 0, NULL, &res, NULL), 0);
	assert_int_equal(res.body.data[0], bytes[SIZE - 1]);
	bytes_release(&res.body);
	assert_int_equal(call_delete(f->s, "large", NULL, NULL), 0);
}

/* The same from a source, which is read part by part. */
static void test_put_source_in_parts(void **state)
{
	enum { SIZE = (64 << 20) + 12345 };
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_meta meta;
	struct call_result res;
	struct patterned p;
	patterned_init(&p, SIZE);
	p.fail_at = 17 << 20;
	p.code = -EBADMSG;
	assert_int_equal(call_put_source(f->s, "large", &p.source, true, NULL, NULL, &err),
			 -EBADMSG);
	assert_code(f->s, "large", -ENOENT);
	p.code = 0;
	const struct store_cond cond = {.if_none_match = "*"};
	if (call_put_source(f->s, "large", &p.source, true, &cond, &meta, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(meta.size, SIZE);
	assert_non_null(strstr(meta.etag, "-5"));
	assert_int_equal(call_get(f->s, "large", 0, UINT64_MAX, 0, NULL, &res, NULL), 0);
	patterned_assert(res.body.data, res.body.len, SIZE);
	bytes_release(&res.body);
	assert_int_equal(call_delete(f->s, "large", NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest bare[] = {
		CONTRACT_TESTS(s3_inline),
		CONTRACT_TESTS(s3_workers),
		CONTRACT_TEST(test_small_answers_are_not_delayed, s3_workers),
		CONTRACT_TEST(test_put_in_parts, s3_workers),
		CONTRACT_TEST(test_put_source_in_parts, s3_workers),
	};
	const struct CMUnitTest stack[] = {CONTRACT_TESTS(s3_stack)};
	const struct CMUnitTest virtual_host[] = {CONTRACT_TESTS(s3_virtual_host)};
	const char *group = getenv("S3_TEST_GROUP");
	if (group && strcmp(group, "virtual-host") == 0)
		return cmocka_run_group_tests(virtual_host, NULL, NULL);
	if (group && strcmp(group, "stack") == 0)
		return cmocka_run_group_tests(stack, NULL, NULL);
	return cmocka_run_group_tests(bare, NULL, NULL);
}
