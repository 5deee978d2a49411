/* SPDX-License-Identifier: Apache-2.0 */
/* A row of bodies: each is done once, with its own MD5, alone or together. */
#include "store_fixture.h"

#include <stdatomic.h>

#include "s3/digests.h"

enum { N = 200 };

struct wanted {
	struct s3_digest digest;
	struct bytes body;
	atomic_uint *left;
	atomic_uint done;
};

static void count_down(void *arg)
{
	struct wanted *w = arg;
	atomic_fetch_add(&w->done, 1);
	atomic_fetch_sub(w->left, 1);
}

/* Long ones of two lengths, so that some can be done together, between short and empty ones. */
static size_t length_of(size_t i)
{
	static const size_t lengths[] = {40000, 40000, 40000, 40000, 100, 0, 40000, 16385};
	return lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void each_is_done_once(unsigned int workers)
{
	struct fixture *f = fixture_new(workers);
	struct wanted *all = calloc(N, sizeof(*all));
	struct s3_digests row;
	atomic_uint left = N;
	assert_non_null(all);
	assert_int_equal(s3_digests_init(&row, &f->env), 0);
	for (size_t i = 0; i < N; i++) {
		const size_t len = length_of(i);
		assert_int_equal(bytes_reserve(&all[i].body, len), 0);
		for (size_t k = 0; k < len; k++)
			all[i].body.data[k] = (uint8_t)(i + k * 7);
		all[i].body.len = len;
		all[i].left = &left;
	}
	for (size_t i = 0; i < N; i++) {
		all[i].digest = (struct s3_digest){
			.body = &all[i].body, .done = count_down, .arg = &all[i]};
		s3_digests_add(&row, &all[i].digest);
	}
	while (atomic_load(&left))
		usleep(100);
	for (size_t i = 0; i < N; i++) {
		char want[MD5_HEX];
		assert_int_equal(atomic_load(&all[i].done), 1);
		assert_int_equal(digest_md5(all[i].body.len ? (void *)all[i].body.data : "",
					    all[i].body.len, want),
				 0);
		assert_string_equal(all[i].digest.md5, want);
		bytes_release(&all[i].body);
	}
	/* Jobs that found nothing may still be on their way. */
	s3_digests_release(&row);
	memset(&row, 0xff, sizeof(row));
	fixture_free(f);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_workers),
		cmocka_unit_test(with_workers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
