/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that handle no signals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include <base/thread.h>

static void *read_mask(void *mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	return NULL;
}

static void blocks_signals_in_the_thread_only(void **state)
{
	sigset_t inside, before, after;
	pthread_t thread;
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_true(thread_start(&thread, read_mask, &inside));
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&inside, SIGTERM) && sigismember(&inside, SIGUSR1));
	assert_false(sigismember(&after, SIGTERM));
	assert_true(sigismember(&after, SIGUSR2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_signals_in_the_thread_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
