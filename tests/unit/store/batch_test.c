/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of requests: order, window, requests that are skipped, and errors. */
#include "mem_store.h"
#include "store_fixture.h"

#include <store/implement.h>

#include <pthread.h>

enum { N = 200 };

struct expected {
	size_t requested, taken;
	size_t skip_every; /* 0: none */
	size_t fail_at;	   /* SIZE_MAX: never */
	bool keep;	   /* takes bodies over */
};

static bool request(void *arg, size_t i, struct store_request *req)
{
	struct expected *x = arg;
	assert_int_equal(i, x->requested++);
	if (x->skip_every && i % x->skip_every == 0)
		return false;
	snprintf(req->key, STORE_KEY_MAX, "k/%zu", i);
	return true;
}

static int take(void *arg, size_t i, struct store_request *req)
{
	struct expected *x = arg;
	struct store_answer *a = &req->answer;
	char want[32];
	assert_int_equal(i, x->taken++);
	if (i == x->fail_at)
		return -EIO;
	if (x->skip_every && i % x->skip_every == 0) {
		assert_int_equal(a->state, STORE_UNKNOWN);
		assert_int_equal(a->body.len, 0);
	} else if (i % 3 == 0) {
		assert_non_null(store_absence(a));
	} else {
		assert_int_equal(a->state, STORE_PRESENT);
		snprintf(want, sizeof(want), "k/%zu", i);
		assert_int_equal(a->body.len, strlen(want));
		assert_memory_equal(a->body.data, want, a->body.len);
	}
	if (x->keep) {
		struct bytes mine = a->body;
		a->body = (struct bytes){0};
		bytes_release(&mine);
	}
	return 0;
}

/* A store in which every third object is absent. */
static struct fixture *filled(unsigned int workers)
{
	struct fixture *f = fixture_new(workers);
	char key[32];
	f->s = store_count_new(store_mem_new(&f->env, NULL), NULL);
	assert_non_null(f->s);
	for (size_t i = 0; i < N; i++) {
		snprintf(key, sizeof(key), "k/%zu", i);
		if (i % 3)
			assert_int_equal(call_put(f->s, key, key, strlen(key), NULL, NULL, NULL),
					 0);
	}
	return f;
}

static void results_come_in_order(void **state)
{
	static const unsigned int workers[] = {0, 1, 8};
	static const size_t windows[] = {1, 2, 7, N, N + 1};
	for (size_t w = 0; w < sizeof(workers) / sizeof(workers[0]); w++) {
		struct fixture *f = filled(workers[w]);
		for (size_t k = 0; k < sizeof(windows) / sizeof(windows[0]); k++) {
			struct expected x = {.fail_at = SIZE_MAX, .skip_every = k, .keep = k & 1};
			const struct store_sequence seq = {N, windows[k], request, take, &x};
			assert_int_equal(store_run_sequence(f->s, &seq), 0);
			assert_int_equal(x.taken, N);
		}
		fixture_free(f);
	}
}

static void no_more_than_the_window_is_under_way(void **state)
{
	enum { WINDOW = 4 };
	struct fixture *f = filled(16);
	struct store_counts counts;
	struct expected x = {.fail_at = SIZE_MAX};
	const struct store_sequence seq = {N, WINDOW, request, take, &x};
	assert_int_equal(store_run_sequence(f->s, &seq), 0);
	store_count_read(f->s, &counts);
	assert_int_equal(counts.calls[STORE_GET], N);
	assert_in_range(counts.in_flight_max, 1, WINDOW);
	fixture_free(f);
}

static void an_error_of_take_ends_the_sequence(void **state)
{
	enum { WINDOW = 8, BAD = 20 };
	struct fixture *f = filled(4);
	struct store_counts counts;
	struct expected x = {.fail_at = BAD};
	const struct store_sequence seq = {N, WINDOW, request, take, &x};
	assert_int_equal(store_run_sequence(f->s, &seq), -EIO);
	store_count_read(f->s, &counts);
	assert_int_equal(x.taken, BAD + 1);
	assert_int_equal(counts.calls[STORE_GET], BAD + WINDOW);
	fixture_free(f);
}

static void an_empty_sequence_succeeds(void **state)
{
	struct fixture *f = filled(0);
	struct expected x = {.fail_at = SIZE_MAX};
	const struct store_sequence seq = {0, 8, request, take, &x};
	assert_int_equal(store_run_sequence(f->s, &seq), 0);
	assert_int_equal(x.taken, 0);
	fixture_free(f);
}

/* A wrapper that passes requests on in a worker, the last one first, HOLD of them at a time or the
 * rest. */
enum { HOLD = 40 };

struct last_first {
	struct store base;
	pthread_mutex_t lock;
	struct store_request *held[N];
	size_t n, submitted;
};

static void pass_held(void *arg)
{
	struct last_first *l = arg;
	struct store_request *reqs[N];
	pthread_mutex_lock(&l->lock);
	const size_t n = l->n;
	memcpy(reqs, l->held, n * sizeof(reqs[0]));
	l->n = 0;
	pthread_mutex_unlock(&l->lock);
	for (size_t i = n; i-- > 0;)
		store_pass(&l->base, reqs[i]);
}

static void submit_last_first(struct store *s, struct store_request *req)
{
	struct last_first *l = (struct last_first *)s;
	assert_true(req->is_brief);
	pthread_mutex_lock(&l->lock);
	l->held[l->n++] = req;
	const bool passes = ++l->submitted == N || l->n == HOLD;
	pthread_mutex_unlock(&l->lock);
	if (passes)
		assert_int_equal(pool_submit(s->env->pool, pass_held, l), 0);
}

/* The caller takes the answers in batches. It must neither miss the last ones nor wait for more
 * than there are. */
static void answers_may_come_in_any_order(void **state)
{
	static const struct store_ops ops = {.name = "last first",
					     .submit = submit_last_first,
					     .completed = store_complete,
					     .free = store_wrapper_free};
	struct fixture *f = filled(2);
	struct last_first *l = calloc(1, sizeof(*l));
	struct expected x = {.fail_at = SIZE_MAX};
	assert_non_null(l);
	pthread_mutex_init(&l->lock, NULL);
	store_wrap(&l->base, &ops, f->s, 0, 0);
	f->s = &l->base;
	const struct store_sequence seq = {N, N, request, take, &x};
	assert_int_equal(store_run_sequence(f->s, &seq), 0);
	assert_int_equal(x.taken, N);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_come_in_order),
		cmocka_unit_test(no_more_than_the_window_is_under_way),
		cmocka_unit_test(an_error_of_take_ends_the_sequence),
		cmocka_unit_test(an_empty_sequence_succeeds),
		cmocka_unit_test(answers_may_come_in_any_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
