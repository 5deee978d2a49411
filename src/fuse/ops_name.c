/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on names and inodes: lookup, attributes, extended attributes, space. */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/mem.h>

#include "clock.h"
#include "reopen.h"
#include "reply.h"
#include "request.h"
#include "stats_files.h"

enum {
	PATH_MAX_BYTES = 4096,
	NAME_MAX_BYTES = 255,
	XATTR_MAX_BYTES = 65536,
	STATFS_BLOCK = 4096,
};

static void reply_negative(fuse_req_t req)
{
	const struct fuse_entry_param none = {.entry_timeout = session_of(req)->opt->metadata_ttl};
	if (none.entry_timeout > 0)
		fuse_reply_entry(req, &none);
	else
		fuse_reply_err(req, ENOENT);
}

void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct session *s = session_of(req);
	struct inode_view dir;
	struct engine_stat st;
	struct err err = ERR_INIT;
	char path[PATH_MAX_BYTES];
	if (stats_files_own(parent, name)) {
		ops_stats_lookup(req, parent, name);
		return;
	}
	if (!inodes_get(s->inodes, parent, &dir)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	size_t len = strlen(dir.path), n = strlen(name);
	if (n > NAME_MAX_BYTES || len + n + 2 > sizeof(path)) {
		fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	memcpy(path, dir.path, len);
	if (len)
		path[len++] = '/';
	memcpy(path + len, name, n + 1);
	struct request request;
	int rc = 0;
	if (!reopen_stat(s->requests.reopen, fuse_req_ctx(req)->pid, path, clock_ns(), &st)) {
		if (!request_begin(&request, req, &s->requests))
			return;
		rc = engine_lookup(s->engine, path, &st, &err);
		if (!request_claim(&request))
			return;
	}
	if (rc) /* the way to a file ends here */
		reopen_end(s->requests.reopen, fuse_req_ctx(req)->pid);
	if (rc == -ENOENT) {
		reply_negative(req);
		return;
	}
	struct fuse_entry_param entry = {0};
	if (rc == 0) {
		entry.ino = inodes_look_up(s->inodes, path, &st);
		rc = entry.ino ? 0 : err_set(&err, -ENOMEM, "out of memory");
	}
	if (rc) {
		reply_fail(req, rc, "look up", path, &err);
		return;
	}
	entry.entry_timeout = s->opt->metadata_ttl;
	entry.attr_timeout = reply_attr_timeout(s, &st);
	reply_attr(s, entry.ino, &st, &entry.attr);
	if (fuse_reply_entry(req, &entry) == -ENOENT) /* the kernel gave up waiting */
		inodes_forget(s->inodes, entry.ino, 1);
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

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *s = session_of(req);
	struct inode_view view;
	struct stat st;
	struct err err = ERR_INIT;
	double timeout = 0;
	if (stats_files_has(ino)) {
		ops_file_stats_attr(req, ino, fi);
		return;
	}
	if (!inodes_get(s->inodes, ino, &view)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	struct request request;
	auto_free char *path = strdup(view.path); /* the inode may go before the reply is given */
	if (!path) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	view.path = path;
	if (!request_begin(&request, req, &s->requests))
		return;
	int rc = reply_stat(s, &view, &st, &timeout, &err);
	if (!request_claim(&request))
		return;
	if (rc)
		reply_fail(req, rc, "stat", view.path, &err);
	else
		fuse_reply_attr(req, &st, timeout);
}

/* Modes are the kernel's to check, where default_permissions asks for it; what is left is that
 * nothing can be written. */
void ops_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	fuse_reply_err(req, mask & W_OK ? EROFS : 0);
}

void ops_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs out = {
		.f_bsize = STATFS_BLOCK,
		.f_frsize = STATFS_BLOCK,
		.f_namemax = NAME_MAX_BYTES,
	};
	uint64_t free_bytes = 0, total_bytes = 0;
	if (engine_space(session_of(req)->engine, &free_bytes, &total_bytes) == 0) {
		out.f_blocks = total_bytes / STATFS_BLOCK;
		out.f_bfree = out.f_bavail = free_bytes / STATFS_BLOCK;
	}
	fuse_reply_statfs(req, &out);
}

/* ---- extended attributes ---- */

/* The value of one attribute, or the list of all with name NULL. With size 0 the kernel asks how
 * long the value is. */
static void reply_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct session *s = session_of(req);
	struct inode_view view;
	struct err err = ERR_INIT;
	struct request request;
	size_t room = size < XATTR_MAX_BYTES ? size : XATTR_MAX_BYTES;
	auto_free char *value = malloc(room ? room : 1), *path = NULL;
	if (stats_files_has(ino)) {
		if (name)
			fuse_reply_err(req, ENODATA);
		else if (size)
			fuse_reply_buf(req, NULL, 0);
		else
			fuse_reply_xattr(req, 0);
		return;
	}
	if (!inodes_get(s->inodes, ino, &view)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	path = strdup(view.path); /* the inode may go before the reply is given */
	if (!value || !path) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (!request_begin(&request, req, &s->requests))
		return;
	ssize_t n = name ? engine_getxattr(s->engine, path, name, value, room, &err)
			 : engine_listxattr(s->engine, path, value, room, &err);
	if (!request_claim(&request))
		return;
	if (n < 0)
		reply_fail(req, (int)n, name ? "read an attribute of" : "list the attributes of",
			   path, &err);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)n);
	else
		fuse_reply_buf(req, value, (size_t)n);
}

void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	reply_xattr(req, ino, name, size);
}

void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	reply_xattr(req, ino, NULL, size);
}
