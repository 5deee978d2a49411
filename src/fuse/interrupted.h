/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that were interrupted by a signal which ends nothing, a timer's for instance. The kernel
 * reports the first signal only. That somebody has ended the program since, even by SIGKILL, has to
 * be looked for. Any thread.
 */
#ifndef FUSE_INTERRUPTED_H
#define FUSE_INTERRUPTED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct interrupted;

/* Of one request, in its owner's storage. A zeroed one is in no table. */
struct interrupted_request {
	pid_t thread; /* that waits for the reply */
	/* In another thread, under the table's lock, at most once. */
	void (*cancel)(void *arg);
	void *arg;
	atomic_bool added;
	bool listed; /* these three are the table's, under its lock */
	struct interrupted_request *prev, *next;
};

struct interrupted *interrupted_new(void);    /* NULL without memory */
void interrupted_free(struct interrupted *t); /* empty; NULL is fine */

/* At most once for each request. From now on somebody must call interrupted_look(), until it says
 * that none is left. */
void interrupted_add(struct interrupted *t, struct interrupted_request *r);
/* Nothing adds it any more. cancel() does not run and will not. */
void interrupted_remove(struct interrupted *t, struct interrupted_request *r);
/* Calls cancel() of those whose thread is being ended. True when some are left. */
bool interrupted_look(struct interrupted *t, bool (*ends)(pid_t thread));

#endif
