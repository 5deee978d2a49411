/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancels an operation that another thread waits for. While a thread waits, it registers a wake-up
 * function. At most one thread at a time does so. Once fired, a cancel stays fired.
 *
 * Lock order: a cancel's lock is taken before the locks that the wake-up function takes. A waiter
 * must therefore not hold those when it calls cancel_begin() or cancel_end().
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cancel {
	atomic_bool fired;
	pthread_mutex_t lock; /* guards the members below */
	void (*wake)(void *arg);
	void *arg;
};

void cancel_init(struct cancel *c);
void cancel_release(struct cancel *c); /* no thread may wait or fire any more */
/* Any thread may call it, any number of times. */
void cancel_fire(struct cancel *c);

/* The waiter calls these three. With NULL the operation cannot be cancelled. */
bool cancel_is_fired(struct cancel *c);
/* Until cancel_end(), cancel_fire() calls wake(arg), in its own thread. If c has already fired,
 * cancel_begin() itself calls wake(arg). */
void cancel_begin(struct cancel *c, void (*wake)(void *arg), void *arg);
/* When it returns, wake is not running and will not be called. */
void cancel_end(struct cancel *c);

#endif
