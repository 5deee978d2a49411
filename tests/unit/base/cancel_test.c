/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <base/cancel.h>

static void count(void *arg)
{
	++*(int *)arg;
}

static void test_fired_while_waiting(void **state)
{
	struct cancel c;
	int woken = 0;
	cancel_init(&c);
	assert_false(cancel_is_fired(&c));
	cancel_begin(&c, count, &woken);
	assert_int_equal(woken, 0);
	cancel_fire(&c);
	assert_int_equal(woken, 1);
	assert_true(cancel_is_fired(&c));
	cancel_end(&c);
	cancel_fire(&c);
	assert_int_equal(woken, 1);
	cancel_release(&c);
}

/* A cancel that fires before the waiter begins is not lost. */
static void test_fired_before(void **state)
{
	struct cancel c;
	int woken = 0;
	cancel_init(&c);
	cancel_fire(&c);
	cancel_begin(&c, count, &woken);
	assert_int_equal(woken, 1);
	cancel_end(&c);
	cancel_release(&c);
}

static void test_none(void **state)
{
	int woken = 0;
	assert_false(cancel_is_fired(NULL));
	cancel_begin(NULL, count, &woken);
	cancel_end(NULL);
	assert_int_equal(woken, 0);
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool woken;
	struct cancel *cancel;
};

static void wake(void *arg)
{
	struct waiter *w = arg;
	pthread_mutex_lock(&w->lock);
	w->woken = true;
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;
	cancel_begin(w->cancel, wake, w);
	pthread_mutex_lock(&w->lock);
	while (!w->woken)
		pthread_cond_wait(&w->cond, &w->lock);
	pthread_mutex_unlock(&w->lock);
	cancel_end(w->cancel);
	return NULL;
}

static void test_threads(void **state)
{
	for (int i = 0; i < 200; i++) {
		struct cancel c;
		struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER,
				   .cond = PTHREAD_COND_INITIALIZER,
				   .cancel = &c};
		pthread_t thread;
		cancel_init(&c);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &w), 0);
		cancel_fire(&c);
		assert_int_equal(pthread_join(thread, NULL), 0);
		cancel_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fired_while_waiting),
		cmocka_unit_test(test_fired_before),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
