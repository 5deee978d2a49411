/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operations share. One struct front for each mount: constant after start, but for the
 * inode table and the list of handles, which have their own locks.
 */
#ifndef FUSE_FRONT_H
#define FUSE_FRONT_H

#define FUSE_USE_VERSION 314

#include <pthread.h>
#include <stdatomic.h>

#include <fuse_lowlevel.h>

#include <fuse_front/fuse_front.h>
#include <hsmount/engine.h>

#include "interrupted.h"
#include "inodes.h"
#include "reopen.h"
#include "pending_reads.h"
#include "watchdog.h"

/* A request that waits holds a thread. Reads ahead, of which the kernel has at most
 * FRONT_BACKGROUND under way, can never hold them all: some are left for what programs wait for
 * themselves, and for the word that one of these was interrupted. */
enum {
	FRONT_BACKGROUND = 128,	 /* reads ahead that the kernel may have under way */
	FRONT_MAX_THREADS = 320, /* requests that may wait for the bucket at once */
	FRONT_IDLE_THREADS = 8,	 /* kept; more would fight over few processors */
	FRONT_BLKSIZE = 1 << 17, /* st_blksize: what cp reads at once, and not so much that a
				    program with a buffered reader fetches chunks for a few bytes */
};

struct handle;

struct front {
	struct engine *engine;
	struct log *log;
	const struct fuse_front_options *opt;
	struct inodes *inodes;
	struct waits *waits;
	struct doubts *doubts;
	struct parked *parked;
	struct watch *watch;
	struct engine_stat root; /* of the moment of mounting: see front_stat() */
	pthread_key_t buffer;	 /* of each thread, for reads */
	atomic_flag tuned;	 /* somebody has seen to reading ahead */
	pthread_mutex_t handles_lock;
	/* What is open is closed when the mount ends before it is. */
	struct handle *handles;
	struct dir *dirs;
};

static inline struct front *front_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Nanoseconds of a monotonic clock. */
uint64_t front_now(void);

/* Answers with an error, once all that is known of it has been logged. code: negative errno. Names
 * that are not there, versions that are gone and reads that nobody waits for any more are answers
 * like any other. */
void front_fail(fuse_req_t req, int code, const char *what, const char *path,
		const struct err *err);
/* Attributes as the kernel sees them. */
void front_attr(const struct front *f, uint64_t ino, const struct engine_stat *st,
		struct stat *out);
/* Attributes of an inode now, and how long they hold. */
int front_stat(struct front *f, const struct inode_view *view, struct stat *out, double *timeout,
	       struct err *err);

/* Attributes of an open file of the control directory. */
void front_control_attr(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi);

/* Closes files that are still open when nobody can close them any more. */
void front_close_handles(struct front *f);
void front_close_dirs(struct front *f);
/* Makes the kernel read ahead as far as bucket and cache are good for. */
void front_tune_read_ahead(const char *mountpoint);

extern const struct fuse_lowlevel_ops front_ops;

/* ops_name.c */
void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup);
void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_access(fuse_req_t req, fuse_ino_t ino, int mask);
void ops_statfs(fuse_req_t req, fuse_ino_t ino);
void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
/* ops_stats.c: for what control.h says is its own */
void ops_control_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
/* len: of the open file's text, or NULL. */
void ops_control_getattr(fuse_req_t req, fuse_ino_t ino, const size_t *len);
/* ops_dir.c */
void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* ops_file.c */
void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);

#endif
