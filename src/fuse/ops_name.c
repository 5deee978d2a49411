/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on names and inodes: lookup, attributes, extended attributes, free space. */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/checksum.h>
#include <base/clock.h>
#include <base/mem.h>

#include "reopen.h"
#include "reply.h"
#include "kernel_request.h"
#include "stats_files.h"

enum {
	XATTR_MAX_BYTES = 65536,
	STATFS_BLOCK = 4096,
};

static void reply_negative(fuse_req_t req, bool is_shared)
{
	const struct fuse_entry_param none = {.entry_timeout = session_of(req)->opt->metadata_ttl};
	if (none.entry_timeout > 0 && !is_shared)
		fuse_reply_entry(req, &none);
	else
		fuse_reply_err(req, ENOENT);
}

/* Returns a hash of the name in its directory, never 0. */
static uint64_t subject_of(fuse_ino_t parent, const char *name)
{
	return checksum_lookup3(name, strlen(name), (uint32_t)parent) | UINT64_C(1) << 63;
}

/* Replies with an entry. `is_shared` tells that a process that writes the draft of this name sees
 * another file. */
static void reply_entry(fuse_req_t req, const char *path, const struct engine_stat *st,
			bool is_shared)
{
	struct session *s = session_of(req);
	struct fuse_entry_param entry;
	struct err err = ERR_INIT;
	const int rc = reply_make_entry(s, path, st, &entry, &err);
	if (rc) {
		reply_fail(req, rc, "look up", path, &err);
		return;
	}
	if (is_shared)
		entry.entry_timeout = 0;
	if (fuse_reply_entry(req, &entry) == -ENOENT) /* the kernel has dropped the request */
		inodes_forget(s->inodes, entry.ino, 1);
}

void ops_reply_entry(fuse_req_t req, const char *path, const struct engine_stat *st)
{
	reply_entry(req, path, st, false);
}

void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct session *s = session_of(req);
	struct engine_stat st;
	struct err err = ERR_INIT;
	char path[REPLY_PATH_MAX];
	const pid_t thread = fuse_req_ctx(req)->pid;
	if (stats_files_own(parent, name)) {
		ops_stats_lookup(req, parent, name);
		return;
	}
	if (!reply_get_path(req, parent, name, path))
		return;
	if (reopen_is_below(s->reopen, thread, path) && inodes_get_dir(s->inodes, path, &st)) {
		reply_entry(req, path, &st, false);
		return;
	}
	struct request request;
	int rc = 0;
	enum draft_view view = DRAFT_SEEN;
	if (!reopen_stat(s->reopen, thread, path, &st))
		view = draft_view(s, thread, path, &st);
	if (view != DRAFT_SEEN) {
		request_begin(s->requests, &request, req, subject_of(parent, name));
		rc = engine_lookup(s->engine, path, &st, &err);
		if (!request_end(&request))
			return;
	}
	if (rc)
		reopen_end(s->reopen, thread);
	if (rc == -ENOENT)
		reply_negative(req, view == DRAFT_HIDDEN);
	else if (rc)
		reply_fail(req, rc, "look up", path, &err);
	else
		reply_entry(req, path, &st, view == DRAFT_HIDDEN);
}

void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	inodes_forget(session_of(req)->inodes, ino, nlookup);
	fuse_reply_none(req);
}

void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		inodes_forget(session_of(req)->inodes, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

/* Returns whether the inode was looked up by the same call of the program, or by an earlier one for
 * which it is still valid. */
static bool is_looked_up(const struct session *s, const struct inode_view *view)
{
	enum { ONE_CALL_S = 2 };
	const double age_s = (double)(clock_ns() - view->looked_up_ns) / 1e9;
	return age_s < (s->opt->metadata_ttl > ONE_CALL_S ? s->opt->metadata_ttl : ONE_CALL_S);
}

/* Asks the engine. A domain may have changed, or may be gone, since the inode got its version. A
 * program that has the inode open sees the file that it has opened, and one that has just looked it
 * up sees what was looked up: the kernel looks a name up again only once in a call, and a domain
 * may change more often. Otherwise the kernel must look the name up again, and finds the inode of
 * the new version. */
static int stat_path(struct session *s, const struct inode_view *view, struct engine_stat *st,
		     double *timeout, struct err *err)
{
	const bool has_version = view->st.version != 0;
	int rc = engine_getattr(s->engine, view->path, st, err);
	if (!rc && st->kind != view->st.kind)
		rc = err_set(err, -ESTALE, "%s: has changed between file and directory",
			     view->path);
	if (!rc && has_version && st->version != view->st.version)
		rc = err_set(err, -ESTALE, "%s: has changed", view->path);
	const bool has_changed = rc == -ESTALE || rc == -ENOENT;
	if (has_version && ((rc && view->is_open) || (has_changed && is_looked_up(s, view)))) {
		*st = view->st;
		*timeout = 0;
		return 0;
	}
	if (rc)
		return rc;
	/* An open may show another size, which must not be hidden by a cached one. */
	*timeout = has_version || st->kind == ENGINE_DIR ? reply_attr_timeout(s, st) : 0;
	return 0;
}

/* Gets the attributes of an inode and the seconds for which they are valid. The attributes of the
 * root are read once, at the time of mounting. fusermount3 begins with a stat of the mount point,
 * so a request to a server that does not answer would prevent unmounting. */
static int stat_inode(struct session *s, const struct inode_view *view, struct stat *out,
		      double *timeout, struct err *err)
{
	enum { ROOT_TTL_S = 86400 };
	struct engine_stat st = view->st;
	if (view->ino == INODES_ROOT) {
		st = s->root;
		*timeout = ROOT_TTL_S;
	} else if (st.draft) {
		*timeout = 0;
		/* If the draft has just been committed, the open(2) that has looked it up goes on,
		 * and ops_open() makes the kernel look the name up once more. */
		if (!engine_draft_stat_version(s->engine, st.version, &st) &&
		    !is_looked_up(s, view))
			return err_set(err, -ESTALE, "%s: was committed", view->path);
	} else if (st.version == 0 || st.unchecked) {
		int rc = stat_path(s, view, &st, timeout, err);
		if (rc)
			return rc;
	} else {
		*timeout = reply_attr_timeout(s, &st);
	}
	inodes_told(s->inodes, view->ino, st.size);
	reply_attr(s, view->ino, &st, out);
	return 0;
}

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	auto_inode struct inode_view view = {0};
	struct stat st;
	struct err err = ERR_INIT;
	double timeout = 0;
	if (stats_files_has(ino)) {
		ops_file_stats_attr(req, ino, fi);
		return;
	}
	if (!reply_get_inode(req, ino, &view))
		return;
	struct request request;
	request_begin(s->requests, &request, req, 0);
	int rc = stat_inode(s, &view, &st, &timeout, &err);
	if (!request_end(&request))
		return;
	if (rc)
		reply_fail(req, rc, "stat", view.path, &err);
	else
		fuse_reply_attr(req, &st, timeout);
}

/* Returns whether execve(2) accepts the modes of files. Modes that follow from access control lists
 * let nobody execute a file. */
static bool files_are_executable(const struct fuse_front_options *opt)
{
	return opt->file_mode != FUSE_FRONT_ACL_MODE && opt->file_mode & 0111 & ~opt->umask;
}

static bool is_file(fuse_req_t req, fuse_ino_t ino)
{
	auto_inode struct inode_view view = {0};
	if (stats_files_has(ino))
		return ino != STATS_DIR_INO;
	return inodes_get(session_of(req)->inodes, ino, &view) == 0 && view.st.kind != ENGINE_DIR;
}

/* If default_permissions is set, the kernel checks the mode itself. On a writable mount all files
 * count as writable here: rm asks about others before it removes them. */
void ops_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	const struct fuse_front_options *opt = session_of(req)->opt;
	int code = 0;
	if (mask & W_OK && !opt->write)
		code = EROFS;
	else if (mask & X_OK && !files_are_executable(opt) && is_file(req, ino))
		code = EACCES;
	fuse_reply_err(req, code);
}

void ops_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs out = {
		.f_bsize = STATFS_BLOCK,
		.f_frsize = STATFS_BLOCK,
		.f_namemax = SESSION_NAME_MAX,
	};
	uint64_t free_bytes = 0, total_bytes = 0;
	if (engine_space(session_of(req)->engine, &free_bytes, &total_bytes) == 0) {
		out.f_blocks = total_bytes / STATFS_BLOCK;
		out.f_bfree = out.f_bavail = free_bytes / STATFS_BLOCK;
	}
	fuse_reply_statfs(req, &out);
}

/* ---- extended attributes ---- */

/* Replies with the value of one attribute. If name is NULL, it replies with the names of all
 * attributes. If size is 0, it replies only with the length. */
static void reply_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct session *s = session_of(req);
	auto_inode struct inode_view view = {0};
	struct err err = ERR_INIT;
	struct request request;
	size_t room = size < XATTR_MAX_BYTES ? size : XATTR_MAX_BYTES;
	auto_free char *value = malloc(room ? room : 1);
	if (stats_files_has(ino)) {
		if (name)
			fuse_reply_err(req, ENODATA);
		else if (size)
			fuse_reply_buf(req, NULL, 0);
		else
			fuse_reply_xattr(req, 0);
		return;
	}
	if (!value) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (!reply_get_inode(req, ino, &view))
		return;
	request_begin(s->requests, &request, req, 0);
	ssize_t n = name ? engine_getxattr(s->engine, view.path, name, value, room, &err)
			 : engine_listxattr(s->engine, view.path, value, room, &err);
	if (!request_end(&request))
		return;
	if (n < 0)
		reply_fail(req, (int)n, name ? "read an attribute of" : "list the attributes of",
			   view.path, &err);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)n);
	else
		fuse_reply_buf(req, value, (size_t)n);
}

/* Returns whether an attribute is one that other file systems have: labels, access control lists,
 * capabilities. */
static bool is_foreign(const char *name)
{
	static const char user[] = "user.";
	return strncmp(name, user, sizeof(user) - 1) != 0;
}

/* The kernel asks for security.capability before every write(2). */
void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	if (is_foreign(name))
		fuse_reply_err(req, ENODATA);
	else
		reply_xattr(req, ino, name, size);
}

void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	reply_xattr(req, ino, NULL, size);
}

/* Programs that copy attributes ignore EOPNOTSUPP. */
void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		  int flags)
{
	struct session *s = session_of(req);
	auto_inode struct inode_view view = {0};
	struct request request;
	struct err err = ERR_INIT;
	if (!s->opt->write || is_foreign(name) || stats_files_has(ino)) {
		fuse_reply_err(req, s->opt->write ? EOPNOTSUPP : EROFS);
		return;
	}
	if (!reply_get_inode(req, ino, &view))
		return;
	request_begin(s->requests, &request, req, 0);
	const int rc = engine_setxattr(s->engine, view.path, name, value, size, flags, &err);
	if (!request_end(&request))
		return;
	if (rc)
		reply_fail(req, rc, "set an attribute of", view.path, &err);
	else
		fuse_reply_err(req, 0);
}

/* No file has other attributes than those that describe it. */
void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	static const char own[] = "user.hsds.";
	struct session *s = session_of(req);
	auto_inode struct inode_view view = {0};
	struct request request;
	struct err err = ERR_INIT;
	const int refused = !s->opt->write			       ? EROFS
			    : is_foreign(name) || stats_files_has(ino) ? EOPNOTSUPP
			    : strncmp(name, own, sizeof(own) - 1) != 0 ? ENODATA
								       : 0;
	if (refused) {
		fuse_reply_err(req, refused);
		return;
	}
	if (!reply_get_inode(req, ino, &view))
		return;
	request_begin(s->requests, &request, req, 0);
	const int rc = engine_removexattr(s->engine, view.path, name, &err);
	if (!request_end(&request))
		return;
	if (rc)
		reply_fail(req, rc, "remove an attribute of", view.path, &err);
	else
		fuse_reply_err(req, 0);
}
