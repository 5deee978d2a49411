/* SPDX-License-Identifier: Apache-2.0 */
/* A row of bodies: each has its own MD5, alone or together, whoever computes it. */
#include "store_fixture.h"

#include <stdatomic.h>

#include "s3/digests.h"

enum { N = 200 };

struct wanted {
	struct s3_digest digest; /* first */
	struct bytes body;
	struct s3_digests *row;
	struct pool *pool;
	struct pool_job job;
	atomic_uint *left;
	atomic_uint done;
};

static void come_for(void *arg)
{
	struct wanted *w = arg;
	atomic_uint *left = w->left;
	if (!s3_digests_get(w->row, &w->digest))
		return;
	atomic_fetch_add(&w->done, 1);
	atomic_fetch_sub(left, 1);
}

static void resume(struct s3_digest *d)
{
	struct wanted *w = (struct wanted *)d;
	w->job = (struct pool_job){.fn = come_for, .arg = w};
	assert_int_equal(pool_run(w->pool, &w->job), 0);
}

/* Long ones of two lengths, so that some can be done together, between short and empty ones. */
static size_t length_of(size_t i)
{
	static const size_t lengths[] = {40000, 40000, 40000, 40000, 100, 0, 40000, 16385};
	return lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void prepare(struct wanted *w, size_t i)
{
	const size_t len = length_of(i);
	assert_int_equal(bytes_reserve(&w->body, len), 0);
	for (size_t k = 0; k < len; k++)
		w->body.data[k] = (uint8_t)(i + k * 7);
	w->body.len = len;
	w->digest = (struct s3_digest){.body = &w->body, .resume = resume};
}

static void check(struct wanted *w)
{
	char want[MD5_HEX];
	assert_int_equal(atomic_load(&w->done), 1);
	assert_int_equal(digest_md5(&(struct piece){w->body.data, w->body.len}, 1, want), 0);
	assert_string_equal(w->digest.md5, want);
	bytes_release(&w->body);
}

static void each_is_done_once(unsigned int workers)
{
	struct fixture *f = fixture_new(workers);
	struct wanted *all = calloc(N, sizeof(*all));
	struct s3_digests row;
	atomic_uint left = N;
	assert_non_null(all);
	s3_digests_init(&row);
	for (size_t i = 0; i < N; i++) {
		all[i].row = &row;
		all[i].pool = f->env.pool;
		all[i].left = &left;
		prepare(&all[i], i);
		s3_digests_add(&row, &all[i].digest);
	}
	for (size_t i = 0; i < N; i++)
		resume(&all[i].digest);
	while (atomic_load(&left))
		usleep(100);
	fixture_free(f);
	for (size_t i = 0; i < N; i++)
		check(&all[i]);
	assert_null(row.head);
	s3_digests_release(&row);
	free(all);
}

static void without_workers(void **state)
{
	each_is_done_once(0);
}

static void with_workers(void **state)
{
	each_is_done_once(4);
}

/* The first who comes computes the others of its length: they find theirs done. */
static void bodies_of_one_length_are_done_together(void **state)
{
	struct wanted all[3] = {0};
	struct s3_digests row;
	s3_digests_init(&row);
	for (size_t i = 0; i < 3; i++) {
		prepare(&all[i], i);
		s3_digests_add(&row, &all[i].digest);
	}
	assert_true(s3_digests_get(&row, &all[1].digest));
	assert_null(row.head);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(all[i].digest.state, S3_DIGEST_DONE);
		assert_true(s3_digests_get(&row, &all[i].digest));
		all[i].done = 1;
		check(&all[i]);
	}
	s3_digests_release(&row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_workers),
		cmocka_unit_test(with_workers),
		cmocka_unit_test(bodies_of_one_length_are_done_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
