/* SPDX-License-Identifier: Apache-2.0 */
/* See shutdown.h. */
#include "shutdown.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Heap, for who closes may outlive who waits: the last one frees it. */
struct leaving {
	void (*close)(void *arg);
	void *arg;
	pthread_mutex_t lock; /* guards closed, left */
	pthread_cond_t ended;
	bool closed, left;
};

static void leaving_free(struct leaving *l)
{
	pthread_cond_destroy(&l->ended);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void *run_close(void *arg)
{
	struct leaving *l = arg;
	l->close(l->arg);
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	const bool left = l->left;
	pthread_cond_signal(&l->ended);
	pthread_mutex_unlock(&l->lock);
	if (left)
		leaving_free(l);
	return NULL;
}

static struct leaving *leaving_new(void (*close)(void *arg), void *arg)
{
	struct leaving *l = calloc(1, sizeof(*l));
	pthread_condattr_t by_monotonic;
	if (!l)
		return NULL;
	l->close = close;
	l->arg = arg;
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&by_monotonic);
	pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->ended, &by_monotonic);
	pthread_condattr_destroy(&by_monotonic);
	return l;
}

/* Not by a join with a deadline: the thread sanitizer does not know that of the monotonic clock. */
static bool is_closed_by(struct leaving *l, const struct timespec *deadline)
{
	int rc = 0;
	pthread_mutex_lock(&l->lock);
	while (!l->closed && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&l->ended, &l->lock, deadline);
	const bool closed = l->closed;
	l->left = !closed;
	pthread_mutex_unlock(&l->lock);
	return closed;
}

bool leave_in_time(void (*close)(void *arg), void *arg, unsigned int ms)
{
	enum { S_MS = 1000, MS_NS = 1000000 };
	struct leaving *l = leaving_new(close, arg);
	struct timespec deadline;
	pthread_t thread;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_nsec += (long)(ms % S_MS) * MS_NS;
	deadline.tv_sec += ms / S_MS + deadline.tv_nsec / (S_MS * MS_NS);
	deadline.tv_nsec %= S_MS * MS_NS;
	if (!l || pthread_create(&thread, NULL, run_close, l)) {
		close(arg);
	} else if (is_closed_by(l, &deadline)) {
		pthread_join(thread, NULL);
	} else {
		pthread_detach(thread); /* l is the thread's now */
		return false;
	}
	if (l)
		leaving_free(l);
	return true;
}
