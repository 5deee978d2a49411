/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word to somebody who waits: the answer is not wanted any more. One waiter at a time hangs a
 * wake-up on it while it waits; the word stays once it is given.
 *
 * Lock order: a cancel's lock is taken before the locks that a wake-up takes, so a waiter calls
 * cancel_begin() and cancel_end() without these.
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cancel {
	atomic_bool fired;
	pthread_mutex_t lock; /* guards what follows */
	void (*wake)(void *arg);
	void *arg;
};

void cancel_init(struct cancel *c);
void cancel_release(struct cancel *c); /* nobody waits, nobody fires any more */
/* Any thread, any number of times. */
void cancel_fire(struct cancel *c);

/* The three that a waiter calls take NULL for "waits as long as it takes". */
bool cancel_is_fired(struct cancel *c);
/* From here to cancel_end(), wake(arg) is called when the word is given, in the other's thread; at
 * once when it was given before. */
void cancel_begin(struct cancel *c, void (*wake)(void *arg), void *arg);
void cancel_end(struct cancel *c); /* wake does not run and will not */

#endif
