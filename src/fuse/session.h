/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one mount, which all operations share. After the start only the tables, which have
 * locks, and the lists of open files and directories change.
 */
#ifndef FUSE_SESSION_H
#define FUSE_SESSION_H

#include <pthread.h>

#include <fuse_front/fuse_front.h>
#include <hsmount/engine.h>

#include "fuse_api.h"
#include "inodes.h"
#include "read_ahead.h"

/* A request that waits for the bucket occupies a thread. The kernel has at most SESSION_BACKGROUND
 * requests of its read-ahead in flight, so read-ahead cannot occupy all threads. The others are for
 * requests that programs wait for, and for the kernel's reports that one of these is interrupted.
 */
enum {
	SESSION_BACKGROUND = 128,  /* requests of the kernel's read-ahead in flight */
	SESSION_MAX_THREADS = 320, /* threads that serve requests */
	SESSION_IDLE_THREADS = 8,  /* idle threads that are kept; more compete for few processors */
	SESSION_BLKSIZE = 1 << 17, /* st_blksize: how much cp reads at once. With more, programs
				    with buffered readers would load chunks for a few bytes */
	SESSION_WRITE_MAX = 1 << 20, /* bytes of one write request */
	SESSION_NAME_MAX = 255,	     /* bytes of a name */
};

struct dir;
struct handle;
struct reopen;
struct requests;
struct writers;

struct session {
	struct engine *engine;
	struct log *log;
	const struct fuse_front_options *opt;
	struct inodes *inodes;
	struct requests *requests;
	struct reopen *reopen;
	struct writers *writers;
	struct engine_stat root; /* attributes of the root, read once after mounting */
	pthread_key_t buffer;	 /* each thread's buffer for reads */
	struct read_ahead read_ahead;
	pthread_mutex_t handles_lock;
	/* Files and directories that are open; closed at the end of the mount. */
	struct handle *handles; /* handle.c */
	struct dir *dirs;	/* ops_dir.c */
};

static inline struct session *session_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Borrows options, engine and log. Returns NULL with errno set on failure. */
struct session *session_new(const struct fuse_front_options *opt, struct engine *engine,
			    struct log *log);
/* Call it when no file and no directory is open. */
void session_free(struct session *s);

/* Who sees a draft under its name: the processes that write it, and everybody if nothing else has
 * the name. Other processes see what the bucket has. Any thread. */
enum draft_view {
	DRAFT_NONE,
	/* The caller sees what the bucket has. The kernel must not cache that for the name, because
	 * other processes see the draft. */
	DRAFT_HIDDEN,
	DRAFT_SEEN,
};
/* Returns what the thread sees under a path. *st gets the draft's attributes if it is seen. A
 * thread of another PID namespace (0) sees every draft. Sends no request. */
enum draft_view draft_view(struct session *s, pid_t thread, const char *path,
			   struct engine_stat *st);

#endif
