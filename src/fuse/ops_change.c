/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that change names. They update the table of inodes before the reply, because the
 * kernel uses its inodes of a renamed file under the new name at once. The kernel itself drops the
 * names that it has asked to remove.
 */
#include "ops.h"

#include <errno.h>

#include "reply.h"
#include "kernel_request.h"
#include "stats_files.h"

/* Returns false if it has replied with an error. */
static bool may_change(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	int code = 0;
	if (!session_of(req)->opt->write)
		code = EROFS;
	else if (stats_files_has(parent) || stats_files_own(parent, name))
		code = EPERM;
	if (code)
		fuse_reply_err(req, code);
	return !code;
}

bool ops_change_path(fuse_req_t req, fuse_ino_t parent, const char *name, char path[REPLY_PATH_MAX])
{
	return may_change(req, parent, name) && reply_get_path(req, parent, name, path);
}

static void reply(fuse_req_t req, int rc, const char *what, const char *path, const struct err *err)
{
	if (rc)
		reply_fail(req, rc, what, path, err);
	else
		fuse_reply_err(req, 0);
}

void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct session *s = session_of(req);
	char path[REPLY_PATH_MAX];
	struct engine_stat st;
	struct err err = ERR_INIT;
	struct request request;
	if (!ops_change_path(req, parent, name, path))
		return;
	request_begin(s->requests, &request, req, 0);
	int rc = engine_mkdir(s->engine, path, &err);
	if (!rc)
		rc = engine_lookup(s->engine, path, &st, &err);
	if (!request_end(&request))
		return;
	if (rc)
		reply_fail(req, rc, "make the directory", path, &err);
	else
		ops_reply_entry(req, path, &st);
}

static void remove_name(fuse_req_t req, fuse_ino_t parent, const char *name,
			int (*remove)(struct engine *e, const char *path, struct err *err))
{
	struct session *s = session_of(req);
	char path[REPLY_PATH_MAX];
	struct err err = ERR_INIT;
	struct request request;
	if (!ops_change_path(req, parent, name, path))
		return;
	request_begin(s->requests, &request, req, 0);
	const int rc = remove(s->engine, path, &err);
	if (!rc)
		inodes_remove(s->inodes, path);
	if (request_end(&request))
		reply(req, rc, "remove", path, &err);
}

void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, engine_rmdir);
}

void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, engine_unlink);
}

void ops_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		const char *new_name, unsigned int flags)
{
	struct session *s = session_of(req);
	char from[REPLY_PATH_MAX], to[REPLY_PATH_MAX];
	struct err err = ERR_INIT;
	struct request request;
	if (!ops_change_path(req, parent, name, from) ||
	    !ops_change_path(req, new_parent, new_name, to))
		return;
	request_begin(s->requests, &request, req, 0);
	const int rc = engine_rename(s->engine, from, to, flags, &err);
	if (!rc) {
		inodes_remove(s->inodes, to);
		inodes_rename(s->inodes, from, to);
	}
	if (request_end(&request))
		reply(req, rc, "rename", from, &err);
}

/* ---- what a bucket cannot hold ---- */

void ops_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	if (may_change(req, parent, name))
		fuse_reply_err(req, EPERM);
}

void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	if (may_change(req, new_parent, new_name))
		fuse_reply_err(req, EPERM);
}
