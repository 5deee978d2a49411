/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session: mounts, serves with a few threads, unmounts. The engine's own threads start with
 * its first request, which comes after the fork into the background.
 */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/mem.h>

uint64_t front_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void front_fail(fuse_req_t req, int code, const char *what, const char *path, const struct err *err)
{
	switch (code) {
	case -ENOENT:
	case -ENODATA:
	case -ENOTDIR:
	case -EISDIR:
	case -EINTR:
	case -ERANGE:
	case -ESTALE:
		log_debug(front_of(req)->log, "%s %s: %s", what, path, err->msg);
		break;
	default:
		log_error(front_of(req)->log, "%s %s: %s", what, path[0] ? path : "the bucket",
			  err->msg[0] ? err->msg : strerror(-code));
	}
	fuse_reply_err(req, -code);
}

static void init(void *arg, struct fuse_conn_info *conn)
{
	/* Inodes are versions: what is cached under one never becomes wrong. */
	conn->want &= ~(unsigned int)FUSE_CAP_AUTO_INVAL_DATA;
	/* Answers are bytes in memory; a copy is faster than moving pages through a pipe. */
	conn->want &= ~(unsigned int)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				      FUSE_CAP_SPLICE_MOVE);
	conn->want |= conn->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS);
	conn->max_background = FRONT_BACKGROUND;
	conn->congestion_threshold = FRONT_BACKGROUND * 3 / 4;
}

/* Whatever changes something. The kernel refuses it for a read-only mount before it comes here;
 * these are for a mount that somebody has remounted. */
static void refuse_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
			   struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
			 dev_t rdev)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_name(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
			  const char *newname, unsigned int flags)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
			  struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			    size_t size, int flags)
{
	fuse_reply_err(req, EROFS);
}

/* No flock and no locks: the kernel then locks locally, as the library wants it. */
const struct fuse_lowlevel_ops front_ops = {
	.init = init,
	.lookup = ops_lookup,
	.forget = ops_forget,
	.forget_multi = ops_forget_multi,
	.getattr = ops_getattr,
	.access = ops_access,
	.statfs = ops_statfs,
	.getxattr = ops_getxattr,
	.listxattr = ops_listxattr,
	.opendir = ops_opendir,
	.readdir = ops_readdir,
	.releasedir = ops_releasedir,
	.open = ops_open,
	.read = ops_read,
	.release = ops_release,
	.lseek = ops_lseek,
	.setattr = refuse_setattr,
	.mknod = refuse_mknod,
	.mkdir = refuse_mkdir,
	.unlink = refuse_name,
	.rmdir = refuse_name,
	.symlink = refuse_symlink,
	.rename = refuse_rename,
	.link = refuse_link,
	.create = refuse_create,
	.write = refuse_write,
	.setxattr = refuse_setxattr,
	.removexattr = refuse_name,
};

/* A value in a list of options: "," and "\" must not end it. NULL without memory. */
static char *escape(const char *s)
{
	char *out = malloc(2 * strlen(s) + 1), *p = out;
	if (!out)
		return NULL;
	for (; *s; s++) {
		if (*s == ',' || *s == '\\')
			*p++ = '\\';
		*p++ = *s;
	}
	*p = '\0';
	return out;
}

static int build_args(const struct fuse_front_options *opt, struct fuse_args *args)
{
	auto_free char *source = escape(opt->bucket), *options = NULL;
	if (!source || asprintf(&options, "ro,subtype=hsmount,fsname=%s%s%s", source,
				opt->mount_options[0] ? "," : "", opt->mount_options) < 0) {
		options = NULL;
		return -ENOMEM;
	}
	if (fuse_opt_add_arg(args, opt->program) || fuse_opt_add_arg(args, "-o") ||
	    fuse_opt_add_arg(args, options) || (opt->debug && fuse_opt_add_arg(args, "-d")))
		return -ENOMEM;
	return 0;
}

static int serve(struct front *f, struct fuse_session *session, struct err *err)
{
	int rc;
	if (f->opt->single_thread) {
		rc = fuse_session_loop(session);
	} else {
		struct fuse_loop_config *config = fuse_loop_cfg_create();
		if (!config)
			return err_set(err, -ENOMEM, "no memory");
		fuse_loop_cfg_set_clone_fd(config, 0);
		fuse_loop_cfg_set_max_threads(config, FRONT_MAX_THREADS);
		fuse_loop_cfg_set_idle_threads(config, FRONT_IDLE_THREADS);
		rc = fuse_session_loop_mt(session, config);
		fuse_loop_cfg_destroy(config);
	}
	/* A positive number is the signal that ended it: that is how one ends. */
	return rc < 0 ? err_errno(err, rc, "the connection to the kernel") : 0;
}

/* In the process that serves: whoever asks a bucket may start threads. */
static void know_root(struct front *f)
{
	struct err err = ERR_INIT;
	if (engine_getattr(f->engine, "", &f->root, &err) == 0)
		return;
	f->root = (struct engine_stat){.kind = ENGINE_DIR, .mode = 0555};
	log_warning(f->log, "the mount's root: %s", err.msg);
}

static int mount_and_serve(struct front *f, struct fuse_session *session, struct err *err)
{
	int rc = 0;
	if (fuse_set_signal_handlers(session))
		return err_set(err, -EIO, "signal handlers cannot be set");
	if (fuse_session_mount(session, f->opt->mountpoint))
		rc = err_set(err, -EIO, "%s: cannot be mounted on", f->opt->mountpoint);
	if (!rc) {
		if (fuse_daemonize(f->opt->foreground))
			rc = err_set(err, -EIO, "cannot go into the background");
		if (!rc && !f->opt->foreground)
			log_to_syslog(f->log);
		if (!rc) {
			f->watch = watch_start(f, session, err);
			rc = f->watch ? 0 : err->code;
			if (!rc && f->opt->started)
				rc = f->opt->started(f->opt->started_arg, err);
			if (!rc) {
				know_root(f);
				rc = serve(f, session, err);
			}
			watch_stop(f->watch);
		}
		fuse_session_unmount(session);
	}
	fuse_remove_signal_handlers(session);
	return rc;
}

void fuse_front_free(struct front *f)
{
	if (!f)
		return;
	front_close_handles(f);
	front_close_dirs(f);
	inodes_free(f->inodes);
	waits_free(f->waits);
	doubts_free(f->doubts);
	parked_free(f->parked);
	pthread_mutex_destroy(&f->handles_lock);
	free(f);
}

static struct front *new_front(const struct fuse_front_options *opt, struct engine *engine,
			       struct log *log)
{
	struct front *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->engine = engine;
	f->log = log;
	f->opt = opt;
	atomic_flag_clear(&f->tuned);
	pthread_mutex_init(&f->handles_lock, NULL);
	f->inodes = inodes_new();
	f->waits = waits_new();
	f->doubts = doubts_new();
	f->parked = parked_new();
	if (f->inodes && f->waits && f->doubts && f->parked)
		return f;
	fuse_front_free(f);
	return NULL;
}

static int run(struct front *f, struct err *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int rc = build_args(f->opt, &args);
	if (rc) {
		err_set(err, rc, "no memory");
	} else {
		struct fuse_session *session =
			fuse_session_new(&args, &front_ops, sizeof(front_ops), f);
		rc = session ? mount_and_serve(f, session, err)
			     : err_set(err, -EINVAL, "the mount options are not understood");
		if (session)
			fuse_session_destroy(session);
	}
	fuse_opt_free_args(&args);
	return rc;
}

int fuse_front_run(const struct fuse_front_options *opt, struct engine *engine, struct log *log,
		   struct front **left, struct err *err)
{
	struct front *f = *left = new_front(opt, engine, log);
	if (!f)
		return err_set(err, -ENOMEM, "no memory");
	int rc = -pthread_key_create(&f->buffer, free);
	if (rc)
		return err_errno(err, rc, "a thread's key");
	rc = run(f, err);
	/* Other threads' buffers went with them. */
	free(pthread_getspecific(f->buffer));
	pthread_key_delete(f->buffer);
	return rc;
}
