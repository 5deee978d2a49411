/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE front: shows an engine at a mount point until it is unmounted. */
#ifndef FUSE_FRONT_FUSE_FRONT_H
#define FUSE_FRONT_FUSE_FRONT_H

#include <stdbool.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <hsmount/log.h>

struct engine;
struct session;

struct fuse_front_options {
	const char *program;	   /* argv[0] */
	const char *bucket;	   /* shown as the mount's source */
	const char *mountpoint;	   /* absolute */
	const char *mount_options; /* for the kernel and fusermount3, comma-separated; "" none */
	bool foreground, debug, single_thread;
	uid_t uid; /* owner of all files */
	gid_t gid;
	mode_t umask;	     /* bits taken off all modes */
	double metadata_ttl; /* seconds for which names and attributes are valid in the kernel */
	/* Called after the last fork, before anything is served: for threads of the caller's. When
	 * it fails, so does fuse_front_run(). May be NULL. */
	int (*started)(void *arg, struct err *err);
	void *started_arg;
};

/* Mounts, leaves the terminal unless in the foreground (the parent exits with status 0 when the
 * mount is there), serves until unmounted or told to stop by SIGINT, SIGTERM or SIGHUP, unmounts.
 * The engine and the log are borrowed, until *left is freed. Returns 0, or a negative errno when it
 * could not be mounted or the connection broke.
 * left: the files that were open when the mount ended; NULL when there is nothing to free. */
int fuse_front_run(const struct fuse_front_options *opt, struct engine *engine, struct log *log,
		   struct session **left, struct err *err);
/* Closes them, which waits for the loads that are under way for them. Any thread. NULL is fine. */
void fuse_front_free(struct session *left);

#endif
