/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of files. A program writes into the draft of a file, without a request to the bucket. The
 * draft is committed when a process that has written closes the file (FLUSH), at fsync(2), and at
 * the latest when the last program has closed it (RELEASE).
 *
 * FLUSH and fsync wait for the bucket. If they are interrupted, the watchdog replies, and the
 * program can close the file while they still run: they hold a reference to the handle.
 */
#include "ops.h"

#include <errno.h>

#include "handle.h"
#include "reply.h"
#include "kernel_request.h"
#include "stats_files.h"
#include "writers.h"

static pid_t thread_of(fuse_req_t req)
{
	return fuse_req_ctx(req)->pid;
}

static void fail(fuse_req_t req, fuse_ino_t ino, int rc, const char *what, const struct err *err)
{
	auto_inode struct inode_view view = {0};
	const int known = inodes_get(session_of(req)->inodes, ino, &view);
	reply_fail(req, rc, what, known == 0 ? view.path : "?", err);
}

/* Returns false if it has replied, because the file cannot be written. */
static bool may_write(fuse_req_t req, const struct fuse_file_info *fi, off_t off)
{
	const int code = !handle_of(fi)->writes ? EBADF : off < 0 ? EINVAL : 0;
	if (code)
		fuse_reply_err(req, code);
	return !code;
}

void ops_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	       struct fuse_file_info *fi)
{
	const struct handle *h = handle_of(fi);
	struct err err = ERR_INIT;
	if (!may_write(req, fi, off))
		return;
	const ssize_t n = engine_pwrite(h->file, buf, size, (uint64_t)off, &err);
	if (n < 0) {
		fail(req, ino, (int)n, "write", &err);
		return;
	}
	writers_wrote(session_of(req)->writers, h->writers, thread_of(req));
	fuse_reply_write(req, (size_t)n);
}

void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length,
		   struct fuse_file_info *fi)
{
	const struct handle *h = handle_of(fi);
	struct err err = ERR_INIT;
	if (!may_write(req, fi, off < 0 ? off : length))
		return;
	const int rc = engine_allocate(h->file, mode, (uint64_t)off, (uint64_t)length, &err);
	if (rc) {
		fail(req, ino, rc, "allocate", &err);
		return;
	}
	writers_wrote(session_of(req)->writers, h->writers, thread_of(req));
	fuse_reply_err(req, 0);
}

/* ---- commits ---- */

/* Replies with the result of a commit, unless the watchdog has replied. The engine logs commits
 * that fail, whoever gets the error. */
static void reply_commit(fuse_req_t req, struct request *request, int rc, const char *what,
			 const struct err *err)
{
	if (!request_end(request))
		return; /* req is freed */
	if (rc)
		log_debug(session_of(req)->log, "%s: %s", what, err->msg);
	fuse_reply_err(req, -rc);
}

void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct handle *h = handle_of(fi);
	struct writers_process *p = writers_flush_begin(s->writers, h->writers, thread_of(req));
	struct err err = ERR_INIT;
	struct request request;
	if (!p) {
		fuse_reply_err(req, 0);
		return;
	}
	handle_ref(h);
	request_begin(s->requests, &request, req, 0);
	const int rc = engine_flush(h->file, &err);
	writers_flush_end(s->writers, h->writers, p);
	reply_commit(req, &request, rc, "close", &err);
	handle_unref(s, h);
}

void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct handle *h = handle_of(fi);
	struct err err = ERR_INIT;
	struct request request;
	if (!h->writes) {
		fuse_reply_err(req, 0);
		return;
	}
	handle_ref(h);
	request_begin(s->requests, &request, req, 0);
	const int rc = engine_sync(h->file, &err);
	reply_commit(req, &request, rc, "fsync", &err);
	handle_unref(s, h);
}

/* ---- sizes ---- */

static void reply_size(fuse_req_t req, fuse_ino_t ino, const struct engine_stat *st)
{
	struct stat attr;
	reply_attr(session_of(req), ino, st, &attr);
	fuse_reply_attr(req, &attr, reply_attr_timeout(session_of(req), st));
}

static void resize_open(fuse_req_t req, fuse_ino_t ino, off_t size, struct fuse_file_info *fi)
{
	const struct handle *h = handle_of(fi);
	struct engine_stat st;
	struct err err = ERR_INIT;
	if (!may_write(req, fi, size))
		return;
	const int rc = engine_resize(h->file, (uint64_t)size, &err);
	if (rc) {
		fail(req, ino, rc, "truncate", &err);
		return;
	}
	writers_wrote(session_of(req)->writers, h->writers, thread_of(req));
	engine_file_stat(h->file, &st);
	reply_size(req, ino, &st);
}

/* Changes the size of a file, and closes it. Closing commits what a flush does not. */
static int resize_and_close(struct engine_file *file, uint64_t size, struct engine_stat *st,
			    struct err *err)
{
	int rc = engine_resize(file, size, err);
	if (!rc)
		rc = engine_flush(file, err);
	engine_file_stat(file, st);
	engine_file_close(file);
	return rc;
}

/* truncate(2). As with open(2), ESTALE makes the kernel look the name up again, and send the
 * request once more for the inode of the draft. */
static void resize_path(fuse_req_t req, fuse_ino_t ino, uint64_t size)
{
	struct session *s = session_of(req);
	const struct ops_open_mode mode = {.writes = true, .truncates = size == 0, .resizes = true};
	auto_inode struct inode_view view = {0};
	struct engine_file *file = NULL;
	struct engine_stat st;
	struct request request;
	struct err err = ERR_INIT;
	bool renewed;
	int rc;
	if (!reply_get_inode(req, ino, &view) ||
	    !ops_open_current(req, &view, &mode, &file, &rc, &err))
		return;
	if (!rc)
		rc = ops_open_adopt(s, thread_of(req), &view, file, true, &renewed, &err);
	if (rc) {
		reply_fail(req, rc, "truncate", view.path, &err);
		return;
	}
	request_begin(s->requests, &request, req, 0);
	rc = resize_and_close(file, size, &st, &err);
	inodes_close(s->inodes, ino);
	if (!request_end(&request))
		return;
	if (rc)
		reply_fail(req, rc, "truncate", view.path, &err);
	else
		reply_size(req, ino, &st);
}

/* Owner, mode and times follow from the bucket. Programs that copy or unpack files set them, and
 * must not fail. */
void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		 struct fuse_file_info *fi)
{
	const bool resizes = to_set & FUSE_SET_ATTR_SIZE;
	if (!session_of(req)->opt->write || (resizes && stats_files_has(ino)))
		fuse_reply_err(req, EROFS);
	else if (!resizes)
		ops_getattr(req, ino, fi);
	else if (attr->st_size < 0)
		fuse_reply_err(req, EINVAL);
	else if (fi)
		resize_open(req, ino, attr->st_size, fi);
	else
		resize_path(req, ino, (uint64_t)attr->st_size);
}
