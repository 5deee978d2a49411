/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operations share: one struct session for each mount. It is constant after start, but for
 * its tables, which have their own locks, and the lists of what is open.
 */
#ifndef FUSE_SESSION_H
#define FUSE_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include <fuse_front/fuse_front.h>
#include <hsmount/engine.h>

#include "fuse_api.h"
#include "inodes.h"
#include "pending_reads.h"
#include "request.h"

/* A request that waits holds a thread. The kernel has at most SESSION_BACKGROUND requests of its
 * own read-ahead under way, so these can never hold all threads: some are left for the requests
 * that programs wait for, and for the message that one of these was interrupted. */
enum {
	SESSION_BACKGROUND = 128,  /* requests of the kernel's read-ahead under way */
	SESSION_MAX_THREADS = 320, /* requests that may wait for the bucket at once */
	SESSION_IDLE_THREADS = 8,  /* kept; more would fight over few processors */
	SESSION_BLKSIZE = 1 << 17, /* st_blksize: what cp reads at once, and not so much that a
				    program with a buffered reader fetches chunks for a few bytes */
};

struct dir;
struct handle;

struct session {
	struct engine *engine;
	struct log *log;
	const struct fuse_front_options *opt;
	struct inodes *inodes;
	struct pending_reads *pending_reads;
	struct request_tables requests;
	struct engine_stat root; /* of the moment of mounting: see reply_stat() */
	pthread_key_t buffer;	 /* of each thread, for reads */
	atomic_flag tuned;	 /* the kernel's read-ahead is set */
	pthread_mutex_t handles_lock;
	/* What is open is closed when the mount ends before it is. */
	struct handle *handles; /* ops_file.c */
	struct dir *dirs;	/* ops_dir.c */
};

static inline struct session *session_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Options, engine and log are borrowed. NULL without memory. */
struct session *session_new(const struct fuse_front_options *opt, struct engine *engine,
			    struct log *log);
/* Nothing is open any more. */
void session_free(struct session *s);

#endif
