/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE front: mounts an engine and serves the mount until it ends. */
#ifndef FUSE_FRONT_FUSE_FRONT_H
#define FUSE_FRONT_FUSE_FRONT_H

#include <stdbool.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <hsmount/log.h>

struct engine;
struct session;

#define FUSE_FRONT_ACL_MODE ((mode_t)-1)

struct fuse_front_options {
	const char *program;	   /* argv[0] */
	const char *bucket;	   /* the source that /proc/mounts shows */
	const char *mountpoint;	   /* absolute, or "/dev/fd/N" for an open /dev/fuse */
	const char *mount_options; /* for the kernel and fusermount3, comma-separated, or "" */
	bool foreground, debug, single_thread;
	bool write; /* names can be changed; the engine must have been opened so */
	uid_t uid;  /* owner of all files */
	gid_t gid;
	/* Permission bits of all files and directories. FUSE_FRONT_ACL_MODE: the engine computes
	 * them from the access control lists. */
	mode_t file_mode, dir_mode;
	mode_t umask;	     /* permission bits to remove from all modes */
	double metadata_ttl; /* seconds for which names and attributes are valid in the kernel */
	/* Called after the last fork and before the first request, so that the caller can start
	 * threads. When it fails, so does fuse_front_run(). May be NULL. */
	int (*started)(void *arg, struct err *err);
	void *started_arg;
};

/* Mounts, serves requests and unmounts. Without opt->foreground the daemon forks into the
 * background, and the parent process exits with status 0 as soon as the mount exists. The mount
 * ends when it is unmounted or at SIGINT, SIGTERM or SIGHUP. Returns 0, or a negative errno if
 * mounting or the connection to the kernel fails. *session holds the files that are still open at
 * the end, or is NULL if there is nothing to free. The options, the engine and the log are borrowed
 * until the session is freed. */
int fuse_front_run(const struct fuse_front_options *opt, struct engine *engine, struct log *log,
		   struct session **session, struct err *err);
/* Closes these files and waits for their loads. Any thread. `session` may be NULL. */
void fuse_front_free(struct session *session);

#endif
