/* SPDX-License-Identifier: Apache-2.0 */
/* Single puts whose body is a source, and the limit for the bodies in memory. */
#include "server_fixture.h"

#include "patterned_source.h"

#include "s3/s3_internal.h"

enum { MANY = 64 << 20 };

static void test_limit(void **state)
{
	struct fixture *f = fixture_new(1);
	struct s3_store s = {.base = {.env = &f->env}};
	const struct budget_limits limits = {.bytes = 1 << 30};
	struct budget_stats used;
	f->env.budget = budget_new(&limits);
	s3_bodies_init(&s.bodies);
	struct s3_body *first = s3_body_new(&s, MANY, true);
	struct s3_body *second = s3_body_new(&s, MANY, true);
	assert_non_null(first);
	assert_non_null(second);
	assert_null(s3_body_new(&s, 1, false));
	budget_get_stats(f->env.budget, &used);
	assert_int_equal(used.used[BUDGET_LOADS], 2 * MANY);
	s3_body_free(first);
	struct s3_body *third = s3_body_new(&s, 1, false);
	assert_non_null(third);
	s3_body_free(second);
	s3_body_free(third);
	/* A larger body alone is allowed. */
	struct s3_body *large = s3_body_new(&s, 3 * (size_t)MANY, true);
	assert_non_null(large);
	assert_null(s3_body_new(&s, 1, false));
	s3_body_free(large);
	s3_body_free(NULL);
	budget_get_stats(f->env.budget, &used);
	assert_int_equal(used.used[BUDGET_LOADS], 0);
	s3_bodies_release(&s.bodies);
	budget_free(f->env.budget);
	fixture_free(f);
}

struct waiting {
	struct s3_store *s;
	atomic_int order; /* of those that got a body */
	int large, small;
};

static void *wait_large(void *arg)
{
	struct waiting *w = arg;
	struct s3_body *body = s3_body_new(w->s, 2 * (size_t)MANY, true);
	w->large = atomic_fetch_add(&w->order, 1);
	s3_body_free(body);
	return NULL;
}

static void *wait_small(void *arg)
{
	struct waiting *w = arg;
	struct s3_body *body = s3_body_new(w->s, 1, true);
	w->small = atomic_fetch_add(&w->order, 1);
	s3_body_free(body);
	return NULL;
}

static void await_tickets(struct s3_store *s, uint64_t n)
{
	for (bool reached = false; !reached; usleep(100)) {
		pthread_mutex_lock(&s->bodies.lock);
		reached = s->bodies.ticket == n;
		pthread_mutex_unlock(&s->bodies.lock);
	}
}

/* A small body does not overtake a large one, which would wait forever. */
static void test_first_come_first_served(void **state)
{
	struct fixture *f = fixture_new(1);
	struct s3_store s = {.base = {.env = &f->env}};
	struct waiting w = {.s = &s};
	pthread_t large, small;
	s3_bodies_init(&s.bodies);
	struct s3_body *body = s3_body_new(&s, 1, true);
	pthread_create(&large, NULL, wait_large, &w);
	await_tickets(&s, 2);
	pthread_create(&small, NULL, wait_small, &w);
	await_tickets(&s, 3);
	assert_null(s3_body_new(&s, 1, false));
	s3_body_free(body);
	pthread_join(large, NULL);
	pthread_join(small, NULL);
	assert_int_equal(w.large, 0);
	assert_int_equal(w.small, 1);
	s3_bodies_release(&s.bodies);
	fixture_free(f);
}

static int read_x(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memset(buf, 'x', n);
	return 0;
}

/* The MD5 of the answer is compared with the bytes of the source. */
static void test_single_put(void **state)
{
	static const struct {
		const char *header;
		int code;
	} cases[] = {
		{"ETag: \"9dd4e461268c8034f5c8564e155c67a6\"\r\n", 0}, /* of one "x" */
		{"ETag: \"d41d8cd98f00b204e9800998ecf8427e\"\r\n", -EAGAIN},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = fixture_new(1);
		struct server server = {.status = {200}, .header = cases[i].header};
		struct source x = {.size = 1, .read_at = read_x};
		server_start(&server);
		server_open(&server, f, STORE_S3_VERIFY_AUTO);
		assert_int_equal(call_put_source(f->s, "k", &x, true, NULL, NULL, NULL),
				 cases[i].code);
		fixture_free(f);
		server_stop(&server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_first_come_first_served),
		cmocka_unit_test(test_single_put),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
