/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing files. For an open request the daemon finds out which version the bucket
 * holds. If that is not the version of the inode, the daemon replies with ESTALE. The kernel then
 * looks the name up again and opens the inode of the new version, all within one open(2) of the
 * program (see reopen.h). In the same way a program that opens a file for writing gets the inode of
 * its draft, and the pages of those who read the committed file are not touched.
 */
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <base/mem.h>

#include "handle.h"
#include "reopen.h"
#include "reply.h"
#include "kernel_request.h"
#include "stats_files.h"

/* Opens what the thread sees under the inode's path. A draft can have been committed since the
 * look-up. */
static int open_seen(struct session *s, pid_t thread, const struct inode_view *view,
		     struct engine_file **out, struct err *err)
{
	struct engine_stat st;
	int rc = -ESTALE;
	if (view->st.draft)
		rc = engine_open_draft(s->engine, view->st.version, out, err);
	if (rc == -ESTALE && draft_view(s, thread, view->path, &st) == DRAFT_SEEN)
		rc = engine_open_draft(s->engine, st.version, out, err);
	return rc == -ESTALE ? engine_file_open(s->engine, view->path, out, err) : rc;
}

bool ops_open_current(fuse_req_t req, const struct inode_view *view,
		      const struct ops_open_mode *mode, struct engine_file **out, int *rc,
		      struct err *err)
{
	struct session *s = session_of(req);
	const pid_t thread = fuse_req_ctx(req)->pid;
	struct request request;
	*rc = 0;
	*out = reopen_take(s->reopen, thread, view->path, view->st.version, mode->writes);
	if (*out)
		return true;
	request_begin(s->requests, &request, req, 0);
	const unsigned int flags = (mode->truncates ? (unsigned int)ENGINE_TRUNCATE : 0) |
				   (mode->resizes ? (unsigned int)ENGINE_RESIZE : 0);
	*rc = mode->writes ? engine_open_write(s->engine, view->path, flags, out, err)
			   : open_seen(s, thread, view, out, err);
	if (request_end(&request))
		return true;
	if (*rc == 0)
		engine_file_close(*out);
	return false;
}

int ops_open_adopt(struct session *s, pid_t thread, const struct inode_view *view,
		   struct engine_file *file, bool writes, bool *renewed, struct err *err)
{
	struct engine_stat st;
	engine_file_stat(file, &st);
	const enum inodes_adopted adopted = inodes_adopt(s->inodes, view->ino, &st);
	*renewed = adopted == INODES_RENEWED;
	if (adopted != INODES_OTHER)
		return 0;
	reopen_put(s->reopen, thread, view->path, file, writes);
	return err_set(err, -ESTALE, "%s: has changed", view->path);
}

/* The kernel gets no size when a file is opened. If it has an estimated one, sendfile(2), splice(2)
 * and copy_file_range(2) end there. So the first request of a call is answered with ESTALE. A
 * thread without an id gets no second chance. */
static int check_size(struct session *s, pid_t thread, const struct inode_view *view,
		      struct engine_file *file, struct err *err)
{
	struct engine_stat st;
	engine_file_stat(file, &st);
	if (!thread || st.draft || inodes_has_size(s->inodes, view->ino, st.size))
		return 0;
	inodes_close(s->inodes, view->ino);
	reopen_put(s->reopen, thread, view->path, file, false);
	return err_set(err, -ESTALE, "%s: the kernel has an estimated size", view->path);
}

/* All reads of one open file get the same text. They bypass the page cache, because the text can be
 * longer than the size that an earlier stat has reported. */
static void open_stats(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct err err = ERR_INIT;
	char *text = NULL;
	size_t len = 0;
	int rc = stats_files_text(s->engine, ino, &text, &len, &err);
	struct handle *h = rc ? NULL : handle_new(s, NULL);
	if (!rc && !h)
		rc = err_no_memory(&err);
	if (rc) {
		free(text);
		reply_fail(req, rc, "open", STATS_DIR_NAME, &err);
		return;
	}
	h->text = text;
	h->len = len;
	fi->fh = (uintptr_t)h;
	fi->direct_io = 1;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel has dropped the request */
		handle_unref(s, h);
}

/* Makes a handle, which owns the file. Only now does the program's open(2) succeed, and truncate
 * the file. If this fails, the file is closed. */
static int make_handle(fuse_req_t req, struct engine_file *file, const struct ops_open_mode *mode,
		       struct handle **out, struct err *err)
{
	struct session *s = session_of(req);
	struct handle *h = NULL;
	int rc = mode->truncates ? engine_resize(file, 0, err) : 0;
	if (!rc) {
		h = mode->writes ? handle_new_writer(s, file, fuse_req_ctx(req)->pid)
				 : handle_new(s, file);
		rc = h ? 0 : err_no_memory(err);
	}
	if (rc)
		engine_file_close(file);
	*out = h;
	return rc;
}

/* A draft gets no pages of an earlier open, and each close of a file that is written sends FLUSH.
 */
static void reply_open(fuse_req_t req, struct fuse_file_info *fi, struct handle *h, bool renewed)
{
	struct session *s = session_of(req);
	struct engine_stat st;
	engine_file_stat(h->file, &st);
	fi->fh = (uintptr_t)h;
	fi->keep_cache = !st.draft && !renewed && engine_file_cacheable(h->file);
	fi->noflush = !h->writes;
	const uint64_t bytes = engine_file_read_ahead(h->file);
	const unsigned int kb =
		read_ahead_set(&s->read_ahead, s->opt->mountpoint,
			       bytes ? (unsigned int)(bytes / 1024) : READ_AHEAD_KB);
	engine_file_set_read_ahead(h->file, (uint64_t)kb * 1024);
	if (fuse_reply_open(req, fi) == -ENOENT) /* the kernel has dropped the request */
		handle_unref(s, h);
}

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	const struct ops_open_mode mode = {
		.writes = (fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC,
		.truncates = fi->flags & O_TRUNC,
	};
	auto_inode struct inode_view view = {0};
	struct engine_file *file = NULL;
	struct handle *h = NULL;
	struct err err = ERR_INIT;
	if (mode.writes && (!s->opt->write || stats_files_has(ino))) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if (stats_files_has(ino)) {
		open_stats(req, ino, fi);
		return;
	}
	if (!reply_get_inode(req, ino, &view))
		return;
	const pid_t thread = fuse_req_ctx(req)->pid;
	struct engine_stat kept;
	const bool is_second = reopen_stat(s->reopen, thread, view.path, &kept);
	bool renewed = false;
	int rc;
	if (!ops_open_current(req, &view, &mode, &file, &rc, &err))
		return;
	if (!rc)
		rc = ops_open_adopt(s, thread, &view, file, mode.writes, &renewed, &err);
	if (!rc && !mode.writes && !is_second)
		rc = check_size(s, thread, &view, file, &err);
	/* Another program has removed the file since the look-up. ENOENT would be wrong if the
	 * program wants O_CREAT, which the request does not say. So the kernel looks the name up
	 * again, and creates the file or fails with ENOENT itself. */
	if (rc == -ENOENT && mode.writes)
		rc = -ESTALE;
	if (!rc) {
		rc = make_handle(req, file, &mode, &h, &err);
		if (rc)
			inodes_close(s->inodes, ino);
	}
	if (rc) {
		reply_fail(req, rc, "open", view.path, &err);
		return;
	}
	h->ino = ino;
	reply_open(req, fi, h, renewed);
}

void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	handle_unref(session_of(req), handle_of(fi));
	fuse_reply_err(req, 0);
}

/* ---- new files ---- */

/* The kernel creates a file only if the name had none when it looked. Without O_EXCL, a file that
 * another program has made since is opened. Returns false if the kernel has got the reply EINTR. */
static bool create(fuse_req_t req, const char *path, int flags, struct engine_file **out, int *rc,
		   struct err *err)
{
	struct session *s = session_of(req);
	struct request request;
	request_begin(s->requests, &request, req, 0);
	*rc = engine_open_write(s->engine, path,
				ENGINE_CREATE | (flags & O_EXCL ? ENGINE_EXCLUSIVE : 0u) |
					(flags & O_TRUNC ? ENGINE_TRUNCATE : 0u),
				out, err);
	if (request_end(&request))
		return true;
	if (*rc == 0)
		engine_file_close(*out);
	return false;
}

static void reply_create(fuse_req_t req, const struct fuse_entry_param *entry,
			 struct fuse_file_info *fi, struct handle *h)
{
	struct session *s = session_of(req);
	fi->fh = (uintptr_t)h;
	if (fuse_reply_create(req, entry, fi) != -ENOENT)
		return;
	/* The kernel has dropped the request. */
	inodes_forget(s->inodes, entry->ino, 1);
	handle_unref(s, h);
}

void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct engine_file *file = NULL;
	const struct ops_open_mode how = {.writes = true, .truncates = fi->flags & O_TRUNC};
	struct handle *h = NULL;
	struct fuse_entry_param entry;
	struct engine_stat st;
	char path[REPLY_PATH_MAX];
	struct err err = ERR_INIT;
	int rc;
	if (!ops_change_path(req, parent, name, path) ||
	    !create(req, path, fi->flags, &file, &rc, &err))
		return;
	if (!rc)
		rc = make_handle(req, file, &how, &h, &err);
	if (!rc) {
		engine_file_stat(file, &st);
		rc = reply_make_entry(s, path, &st, &entry, &err);
	}
	if (!rc) {
		reply_create(req, &entry, fi, h);
		return;
	}
	if (h)
		handle_unref(s, h);
	reply_fail(req, rc, "create", path, &err);
}

/* Makes an empty file. A bucket cannot keep files of other types. */
void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct session *s = session_of(req);
	struct engine_file *file = NULL;
	struct engine_stat st;
	char path[REPLY_PATH_MAX];
	struct request request;
	struct err err = ERR_INIT;
	if (!ops_change_path(req, parent, name, path))
		return;
	if (!S_ISREG(mode)) {
		fuse_reply_err(req, EPERM);
		return;
	}
	request_begin(s->requests, &request, req, 0);
	int rc = engine_open_write(s->engine, path, ENGINE_CREATE | ENGINE_EXCLUSIVE, &file, &err);
	if (!rc) {
		engine_file_close(file);
		rc = engine_lookup(s->engine, path, &st, &err);
	}
	if (!request_end(&request))
		return;
	if (rc)
		reply_fail(req, rc, "create", path, &err);
	else
		ops_reply_entry(req, path, &st);
}
