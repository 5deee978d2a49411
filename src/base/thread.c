/* SPDX-License-Identifier: Apache-2.0 */
/* See base/thread.h. */
#include <base/thread.h>

#include <signal.h>

bool thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* a new thread inherits the mask */
	const bool started = pthread_create(out, NULL, fn, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}
