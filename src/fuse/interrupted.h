/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that were interrupted by a signal which ends nothing, a timer's for instance. The kernel
 * tells of the first signal only: that somebody has ended the program since, even by SIGKILL, has
 * to be looked for. Any thread.
 */
#ifndef FUSE_DOUBTS_H
#define FUSE_DOUBTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct doubts;

/* Of one request, in its owner's storage. A zeroed one is in no table. */
struct doubt {
	pid_t thread; /* that waits for the answer */
	/* In another thread, under the table's lock, at most once. */
	void (*unwanted)(void *arg);
	void *arg;
	atomic_bool added;
	bool listed; /* these three are the table's, under its lock */
	struct doubt *prev, *next;
};

struct doubts *doubts_new(void);    /* NULL without memory */
void doubts_free(struct doubts *t); /* empty; NULL is fine */

/* At most once for each doubt. From now on somebody must call doubts_look(), until it says that
 * none is left. */
void doubts_add(struct doubts *t, struct doubt *d);
/* Nothing adds it any more. unwanted() does not run and will not. */
void doubts_remove(struct doubts *t, struct doubt *d);
/* Calls unwanted() of those whose thread is being ended. True when some are left. */
bool doubts_look(struct doubts *t, bool (*ends)(pid_t thread));

#endif
