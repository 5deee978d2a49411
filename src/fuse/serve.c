/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts, serves requests, and unmounts. The engine starts threads at its first request to the
 * bucket. Threads do not survive the fork into the background, so all requests come after it.
 */
#include <fuse_front/fuse_front.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

#include "handle.h"
#include "ops.h"
#include "session.h"
#include "watchdog.h"

/* Escapes "," and "\" for a value in a list of mount options. Returns NULL if out of memory. */
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
	if (!source ||
	    asprintf(&options, "%s,subtype=hsmount,fsname=%s%s%s", opt->write ? "rw" : "ro", source,
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
			return err_no_memory(err);
		fuse_loop_cfg_set_clone_fd(config, 0);
		fuse_loop_cfg_set_max_threads(config, SESSION_MAX_THREADS);
		fuse_loop_cfg_set_idle_threads(config, SESSION_IDLE_THREADS);
		rc = fuse_session_loop_mt(session, config);
		fuse_loop_cfg_destroy(config);
	}
	/* A positive result is the number of the signal that ended the loop. */
	return rc < 0 ? err_errno(err, rc, "the connection to the kernel failed") : 0;
}

/* Call it after the fork. */
static int watch_and_serve(struct session *s, struct fuse_session *session, struct err *err)
{
	struct watchdog *watchdog =
		watchdog_start(s->log, s->requests, session, s->opt->write, err);
	if (!watchdog)
		return err->code;
	int rc = s->opt->started ? s->opt->started(s->opt->started_arg, err) : 0;
	if (!rc) {
		struct err why = ERR_INIT;
		engine_start(s->engine);
		if (engine_getattr(s->engine, "", &s->root, &why)) {
			s->root = (struct engine_stat){.kind = ENGINE_DIR, .mode = 0555};
			log_warning(s->log, "cannot read the attributes of the root: %s", why.msg);
		}
		rc = serve(s, session, err);
	}
	watchdog_stop(watchdog);
	return rc;
}

static int mount_and_serve(struct session *s, struct fuse_session *session, struct err *err)
{
	int rc = 0;
	if (fuse_set_signal_handlers(session))
		return err_set(err, -EIO, "cannot set signal handlers");
	if (fuse_session_mount(session, s->opt->mountpoint)) {
		rc = err_set(err, -EIO, "cannot mount on %s", s->opt->mountpoint);
	} else {
		if (fuse_daemonize(s->opt->foreground))
			rc = err_set(err, -EIO, "cannot run in the background");
		else if (!s->opt->foreground)
			log_to_syslog(s->log);
		if (!rc)
			rc = watch_and_serve(s, session, err);
		fuse_session_unmount(session);
	}
	fuse_remove_signal_handlers(session);
	return rc;
}

void fuse_front_free(struct session *session)
{
	if (!session)
		return;
	handle_close_all(session);
	ops_dir_close_all(session);
	session_free(session);
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
			     : err_set(err, -EINVAL, "invalid mount options: %s",
				       s->opt->mount_options);
		if (session)
			fuse_session_destroy(session);
	}
	fuse_opt_free_args(&args);
	return rc;
}

int fuse_front_run(const struct fuse_front_options *opt, struct engine *engine, struct log *log,
		   struct session **session, struct err *err)
{
	struct session *s = *session = session_new(opt, engine, log);
	if (!s)
		return err_errno(err, -errno, "cannot prepare the mount");
	int rc = -pthread_key_create(&s->buffer, free);
	if (rc)
		return err_errno(err, rc, "cannot prepare the mount");
	rc = run(s, err);
	/* The other threads have ended, and their buffers are freed. */
	free(pthread_getspecific(s->buffer));
	pthread_key_delete(s->buffer);
	return rc;
}
