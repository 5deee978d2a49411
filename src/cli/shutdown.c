/* SPDX-License-Identifier: Apache-2.0 */
/* See shutdown.h. */
#include "shutdown.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Heap, because the thread that closes may outlive the one that waits: the last one frees it. */
struct closing {
	void (*close)(void *arg);
	void *arg;
	pthread_mutex_t lock; /* guards closed, left */
	pthread_cond_t ended;
	bool closed, left;
};

static void closing_free(struct closing *c)
{
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *run_close(void *arg)
{
	struct closing *c = arg;
	c->close(c->arg);
	pthread_mutex_lock(&c->lock);
	c->closed = true;
	const bool left = c->left;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->lock);
	if (left)
		closing_free(c);
	return NULL;
}

static struct closing *closing_new(void (*close)(void *arg), void *arg)
{
	struct closing *c = calloc(1, sizeof(*c));
	pthread_condattr_t by_monotonic;
	if (!c)
		return NULL;
	c->close = close;
	c->arg = arg;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&by_monotonic);
	pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->ended, &by_monotonic);
	pthread_condattr_destroy(&by_monotonic);
	return c;
}

/* Not by a join with a deadline: the thread sanitizer does not know that of the monotonic clock. */
static bool is_closed_by(struct closing *c, const struct timespec *deadline)
{
	int rc = 0;
	pthread_mutex_lock(&c->lock);
	while (!c->closed && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&c->ended, &c->lock, deadline);
	const bool closed = c->closed;
	c->left = !closed;
	pthread_mutex_unlock(&c->lock);
	return closed;
}

bool shutdown_in_time(void (*close)(void *arg), void *arg, unsigned int ms)
{
	enum { S_MS = 1000, MS_NS = 1000000 };
	struct closing *c = closing_new(close, arg);
	struct timespec deadline;
	pthread_t thread;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_nsec += (long)(ms % S_MS) * MS_NS;
	deadline.tv_sec += ms / S_MS + deadline.tv_nsec / (S_MS * MS_NS);
	deadline.tv_nsec %= S_MS * MS_NS;
	if (!c || pthread_create(&thread, NULL, run_close, c)) {
		close(arg);
	} else if (is_closed_by(c, &deadline)) {
		pthread_join(thread, NULL);
	} else {
		pthread_detach(thread); /* c is the thread's now */
		return false;
	}
	if (c)
		closing_free(c);
	return true;
}
