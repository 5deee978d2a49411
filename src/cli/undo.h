/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A half-written file that is removed when a signal (SIGINT, SIGTERM, SIGHUP) ends the program. A
 * thread of its own waits for the signal, so nothing of it runs in a signal handler; the program
 * ends by the signal all the same. Signals that were ignored stay ignored.
 */
#ifndef CLI_UNDO_H
#define CLI_UNDO_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Zeroed is not started: then nothing is removed. */
struct undo {
	pthread_mutex_t lock;
	const char *file; /* to be removed, NULL none; under the lock */
	sigset_t signals, before;
	pthread_t thread;
	bool running;
	atomic_bool stopping;
};

/* Before the first thread of the process: all of them must have the signals blocked. Without a
 * thread signals do what they ever did. */
void undo_start(struct undo *u);
void undo_stop(struct undo *u);

/* Around whatever makes the file, names or removes it: signals wait. */
void undo_lock(struct undo *u);
/* file: what is to be removed from now on, NULL nothing; borrowed until the next call. */
void undo_unlock(struct undo *u, const char *file);

#endif
