/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread beside those that serve requests. It expires requests (kernel_request.h), handles the
 * signals that end the daemon, and makes sure that the session ends in bounded time. At the end of
 * the session it cancels all reads. Requests that cannot be cancelled (an open, a listing) have
 * some time to finish. After that the process exits without waiting for them.
 */
#ifndef FUSE_WATCHDOG_H
#define FUSE_WATCHDOG_H

#include <stdbool.h>

#include <hsmount/err.h>

enum {
	WATCHDOG_GRACE_MS = 10000,
	WATCHDOG_GRACE_WRITE_MS = 15000, /* of a writable mount, which commits files */
};

struct fuse_session;
struct log;
struct requests;
struct watchdog;

/* Blocks SIGTERM, SIGINT and SIGHUP in the calling thread until watchdog_stop(). Call it in the
 * thread that will run the session, after the last fork and before any other thread starts: the
 * other threads must inherit the blocked signals. All arguments are borrowed until watchdog_stop().
 * `writes` tells that the mount is writable. Returns NULL with err set on failure. */
struct watchdog *watchdog_start(struct log *log, struct requests *requests,
				struct fuse_session *session, bool writes, struct err *err);
/* Call it when the session has ended. w may be NULL. */
void watchdog_stop(struct watchdog *w);

#endif
