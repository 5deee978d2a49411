/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for a known number of completions. The waiter may be on the waiting thread's stack:
 * wait_done() accesses it only under the lock, so it may end when wait_all() returns.
 */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

#include <pthread.h>
#include <stddef.h>

struct waiter {
	pthread_mutex_t lock; /* guards pending */
	pthread_cond_t none_left;
	size_t pending;
};

static inline void wait_init(struct waiter *w, size_t pending)
{
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->none_left, NULL);
	w->pending = pending;
}

static inline void wait_done(struct waiter *w)
{
	pthread_mutex_lock(&w->lock);
	if (--w->pending == 0)
		pthread_cond_signal(&w->none_left);
	pthread_mutex_unlock(&w->lock);
}

/* Blocks until wait_done() was called `pending` times, then releases the waiter. */
static inline void wait_all(struct waiter *w)
{
	pthread_mutex_lock(&w->lock);
	while (w->pending)
		pthread_cond_wait(&w->none_left, &w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_destroy(&w->none_left);
	pthread_mutex_destroy(&w->lock);
}

#endif
