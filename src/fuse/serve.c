/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts, serves with a few threads, unmounts. The engine's own threads start with its first
 * request, which comes after the fork into the background.
 */
#include <fuse_front/fuse_front.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

#include "ops.h"
#include "session.h"
#include "watchdog.h"

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

static int serve(struct session *s, struct fuse_session *session, struct err *err)
{
	int rc;
	if (s->opt->single_thread) {
		rc = fuse_session_loop(session);
	} else {
		struct fuse_loop_config *config = fuse_loop_cfg_create();
		if (!config)
			return err_set(err, -ENOMEM, "out of memory");
		fuse_loop_cfg_set_clone_fd(config, 0);
		fuse_loop_cfg_set_max_threads(config, SESSION_MAX_THREADS);
		fuse_loop_cfg_set_idle_threads(config, SESSION_IDLE_THREADS);
		rc = fuse_session_loop_mt(session, config);
		fuse_loop_cfg_destroy(config);
	}
	/* A positive number is the signal that ended it: that is how one ends. */
	return rc < 0 ? err_errno(err, rc, "the connection to the kernel") : 0;
}

/* In the process that serves, because a request to the bucket may start threads. */
static void know_root(struct session *s)
{
	struct err err = ERR_INIT;
	if (engine_getattr(s->engine, "", &s->root, &err) == 0)
		return;
	s->root = (struct engine_stat){.kind = ENGINE_DIR, .mode = 0555};
	log_warning(s->log, "the mount's root: %s", err.msg);
}

static int mount_and_serve(struct session *s, struct fuse_session *session, struct err *err)
{
	int rc = 0;
	if (fuse_set_signal_handlers(session))
		return err_set(err, -EIO, "signal handlers cannot be set");
	if (fuse_session_mount(session, s->opt->mountpoint))
		rc = err_set(err, -EIO, "%s: cannot be mounted on", s->opt->mountpoint);
	if (!rc) {
		if (fuse_daemonize(s->opt->foreground))
			rc = err_set(err, -EIO, "cannot go into the background");
		if (!rc && !s->opt->foreground)
			log_to_syslog(s->log);
		if (!rc) {
			const struct watchdog_config config = {
				.log = s->log,
				.pending_reads = s->pending_reads,
				.interrupted = s->requests.interrupted,
			};
			s->requests.watchdog = watchdog_start(&config, session, err);
			rc = s->requests.watchdog ? 0 : err->code;
			if (!rc && s->opt->started)
				rc = s->opt->started(s->opt->started_arg, err);
			if (!rc) {
				know_root(s);
				rc = serve(s, session, err);
			}
			watchdog_stop(s->requests.watchdog);
		}
		fuse_session_unmount(session);
	}
	fuse_remove_signal_handlers(session);
	return rc;
}

void fuse_front_free(struct session *left)
{
	if (!left)
		return;
	ops_file_close_all(left);
	ops_dir_close_all(left);
	session_free(left);
}

static int run(struct session *s, struct err *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int rc = build_args(s->opt, &args);
	if (rc) {
		err_set(err, rc, "out of memory");
	} else {
		struct fuse_session *session =
			fuse_session_new(&args, &ops_table, sizeof(ops_table), s);
		rc = session ? mount_and_serve(s, session, err)
			     : err_set(err, -EINVAL, "the mount options are not understood");
		if (session)
			fuse_session_destroy(session);
	}
	fuse_opt_free_args(&args);
	return rc;
}

int fuse_front_run(const struct fuse_front_options *opt, struct engine *engine, struct log *log,
		   struct session **left, struct err *err)
{
	struct session *s = *left = session_new(opt, engine, log);
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	int rc = -pthread_key_create(&s->buffer, free);
	if (rc)
		return err_errno(err, rc, "a thread's key");
	rc = run(s, err);
	/* Other threads' buffers went with them. */
	free(pthread_getspecific(s->buffer));
	pthread_key_delete(s->buffer);
	return rc;
}
