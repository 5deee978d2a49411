/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread beside those that serve. It cancels reads that take too long (pending_reads.h), looks at
 * programs whose requests were interrupted (interrupted.h), takes the signals that end the daemon,
 * and sees to it that a mount which ends, ends, whatever the bucket does: reads are cancelled at
 * once; requests that cannot be cancelled (an open, a listing) have WATCHDOG_GRACE_MS, then the
 * process exits without them.
 */
#ifndef FUSE_WATCHDOG_H
#define FUSE_WATCHDOG_H

#include <hsmount/err.h>

enum { WATCHDOG_GRACE_MS = 10000 };

struct fuse_session;
struct interrupted;
struct log;
struct pending_reads;
struct watchdog;

/* What it looks after: borrowed until watchdog_stop(). */
struct watchdog_config {
	struct log *log;
	struct pending_reads *pending_reads;
	struct interrupted *interrupted;
};

/* In the thread that will serve, after the last fork and before any other thread is started: these
 * must inherit that the signals are blocked. The signals' former state is back after
 * watchdog_stop(). NULL with err set. */
struct watchdog *watchdog_start(const struct watchdog_config *config, struct fuse_session *session,
				struct err *err);
/* The session has ended. NULL is fine. */
void watchdog_stop(struct watchdog *w);
/* To be called when a read has begun that may take too long, and when a request was interrupted. */
void watchdog_wake(struct watchdog *w);

#endif
