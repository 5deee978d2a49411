/* SPDX-License-Identifier: Apache-2.0 */
/* See undo.h. */
#include "undo.h"

#include <unistd.h>

static bool is_ignored(int number)
{
	struct sigaction action;
	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static sigset_t signals_that_end(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!is_ignored(numbers[i]))
			sigaddset(&set, numbers[i]);
	return set;
}

static void end_by(int number)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
}

static void *run(void *arg)
{
	struct undo *u = arg;
	for (;;) {
		int number;
		if (sigwait(&u->signals, &number))
			continue;
		if (atomic_load(&u->stopping))
			return NULL;
		pthread_mutex_lock(&u->lock);
		if (u->file)
			unlink(u->file);
		end_by(number);
	}
}

void undo_start(struct undo *u)
{
	u->file = NULL;
	u->signals = signals_that_end();
	atomic_init(&u->stopping, false);
	pthread_mutex_init(&u->lock, NULL);
	/* SIGTERM is what stops the thread. */
	if (!sigismember(&u->signals, SIGTERM))
		return;
	pthread_sigmask(SIG_BLOCK, &u->signals, &u->before);
	u->running = pthread_create(&u->thread, NULL, run, u) == 0;
	if (!u->running)
		pthread_sigmask(SIG_SETMASK, &u->before, NULL);
}

void undo_stop(struct undo *u)
{
	if (!u->running)
		return;
	atomic_store(&u->stopping, true);
	pthread_kill(u->thread, SIGTERM);
	pthread_join(u->thread, NULL);
	pthread_sigmask(SIG_SETMASK, &u->before, NULL);
	u->running = false;
}

void undo_lock(struct undo *u)
{
	if (u->running)
		pthread_mutex_lock(&u->lock);
}

void undo_unlock(struct undo *u, const char *file)
{
	u->file = file;
	if (u->running)
		pthread_mutex_unlock(&u->lock);
}
