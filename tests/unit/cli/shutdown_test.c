/* SPDX-License-Identifier: Apache-2.0 */
/* shutdown_in_time() waits for a close that returns in time, and not for one that does not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>
#include <time.h>

#include "cli/shutdown.h"

struct thing {
	sem_t may_end, ended;
	unsigned int closed;
};

static void close_thing(void *arg)
{
	struct thing *t = arg;
	sem_wait(&t->may_end);
	t->closed++;
	sem_post(&t->ended);
}

/* shutdown_in_time() uses the wall clock. While a time server corrects that, it may differ from the
 * others by some milliseconds in each second. */
static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void init(struct thing *t, unsigned int may_end)
{
	t->closed = 0;
	sem_init(&t->may_end, 0, may_end);
	sem_init(&t->ended, 0, 0);
}

static void release(struct thing *t)
{
	sem_destroy(&t->may_end);
	sem_destroy(&t->ended);
}

static void test_in_time(void **state)
{
	struct thing t;
	init(&t, 1);
	assert_true(shutdown_in_time(close_thing, &t, 60000));
	assert_int_equal(t.closed, 1);
	release(&t);
}

static void test_too_late(void **state)
{
	static const unsigned int patience[] = {0, 20, 1100};
	for (size_t i = 0; i < sizeof(patience) / sizeof(patience[0]); i++) {
		struct thing t;
		init(&t, 0);
		const int64_t began = now_ms();
		assert_false(shutdown_in_time(close_thing, &t, patience[i]));
		assert_in_range(now_ms() - began, patience[i], 60000);
		assert_int_equal(t.closed, 0);
		sem_post(&t.may_end);
		sem_wait(&t.ended); /* t is in use until then */
		assert_int_equal(t.closed, 1);
		release(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_time),
		cmocka_unit_test(test_too_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
