/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread beside those that serve: it looks at the clock for reads that wait (pending_reads.h) and
 * at programs whose requests are in doubt (interrupted.h), takes the signals that end the program,
 * and sees to it that a mount which ends, ends, whatever the bucket does: reads are called off at
 * once; what cannot be called off (an open, a listing) has WATCH_GRACE_MS, then the process leaves
 * without it.
 */
#ifndef FUSE_WATCH_H
#define FUSE_WATCH_H

#include <base/err.h>

enum { WATCH_GRACE_MS = 10000 };

struct front;
struct fuse_session;
struct watch;

/* In the thread that will serve, after the last fork and before any other thread is started: these
 * must inherit that the signals are blocked. The signals' former state is back after watch_stop().
 * NULL with err set. */
struct watch *watch_start(struct front *f, struct fuse_session *session, struct err *err);
/* The session has ended. NULL is fine. */
void watch_stop(struct watch *w);
/* A read has begun that the clock must be looked at for, or a request has come in doubt. */
void watch_look(struct watch *w);

#endif
