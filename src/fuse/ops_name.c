/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on names and inodes: lookup, attributes, extended attributes, space. */
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/mem.h>

#include "stats_files.h"

enum {
	PATH_MAX_BYTES = 4096,
	NAME_MAX_BYTES = 255,
	XATTR_MAX_BYTES = 65536,
	STATFS_BLOCK = 4096,
};

void front_attr(const struct front *f, uint64_t ino, const struct engine_stat *st, struct stat *out)
{
	enum { NS = 1000000000 };
	bool is_dir = st->kind == ENGINE_DIR;
	int64_t ns = st->mtime_ns % NS, s = st->mtime_ns / NS;
	if (ns < 0) {
		ns += NS;
		s--;
	}
	*out = (struct stat){
		.st_ino = ino,
		.st_mode = (is_dir ? S_IFDIR : S_IFREG) | (st->mode & 07777 & ~f->opt->umask),
		.st_nlink = is_dir ? 2 : 1,
		.st_uid = f->opt->uid,
		.st_gid = f->opt->gid,
		.st_size = (off_t)st->size,
		.st_blocks = (blkcnt_t)st->blocks,
		.st_blksize = FRONT_BLKSIZE,
		.st_mtim = {.tv_sec = s, .tv_nsec = ns},
		.st_ctim = {.tv_sec = s, .tv_nsec = ns},
		.st_atim = {.tv_sec = s, .tv_nsec = ns},
	};
}

/* An estimated size is asked for again each time, so that a stat after an open tells the truth. */
static double attr_timeout(const struct front *f, const struct engine_stat *st)
{
	return st->kind == ENGINE_DIR || st->version ? f->opt->metadata_ttl : 0;
}

/* The root is not asked for again: a mount whose server is away could not be unmounted, because
 * fusermount3 looks at the mount point first. */
int front_stat(struct front *f, const struct inode_view *view, struct stat *out, double *timeout,
	       struct err *err)
{
	enum { FOR_GOOD_S = 86400 };
	struct engine_stat st = view->st;
	if (view->ino == INODES_ROOT) {
		st = f->root;
		*timeout = FOR_GOOD_S;
	} else if (st.version == 0) {
		int rc = engine_getattr(f->engine, view->path, &st, err);
		if (rc)
			return rc;
		if (st.kind != view->st.kind)
			return err_set(err, -ESTALE, "%s: is something else now", view->path);
		*timeout = st.kind == ENGINE_DIR ? f->opt->metadata_ttl : 0;
	} else {
		*timeout = attr_timeout(f, &st);
	}
	front_attr(f, view->ino, &st, out);
	return 0;
}

static void reply_negative(fuse_req_t req)
{
	const struct fuse_entry_param none = {.entry_timeout = front_of(req)->opt->metadata_ttl};
	if (none.entry_timeout > 0)
		fuse_reply_entry(req, &none);
	else
		fuse_reply_err(req, ENOENT);
}

void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct front *f = front_of(req);
	struct inode_view dir;
	struct engine_stat st;
	struct err err = ERR_INIT;
	char path[PATH_MAX_BYTES];
	if (control_rules(parent, name)) {
		ops_control_lookup(req, parent, name);
		return;
	}
	if (!inodes_get(f->inodes, parent, &dir)) {
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
	struct answer answer;
	int rc = 0;
	if (!parked_stat(f->parked, fuse_req_ctx(req)->pid, path, front_now(), &st)) {
		if (!answer_begin(&answer, req))
			return;
		rc = engine_lookup(f->engine, path, &st, &err);
		if (!answer_claim(&answer))
			return;
	}
	if (rc) /* the way to a file ends here */
		parked_end(f->parked, fuse_req_ctx(req)->pid);
	if (rc == -ENOENT) {
		reply_negative(req);
		return;
	}
	struct fuse_entry_param entry = {0};
	if (rc == 0) {
		entry.ino = inodes_look_up(f->inodes, path, &st);
		rc = entry.ino ? 0 : err_set(&err, -ENOMEM, "no memory");
	}
	if (rc) {
		front_fail(req, rc, "look up", path, &err);
		return;
	}
	entry.entry_timeout = f->opt->metadata_ttl;
	entry.attr_timeout = attr_timeout(f, &st);
	front_attr(f, entry.ino, &st, &entry.attr);
	if (fuse_reply_entry(req, &entry) == -ENOENT) /* the kernel gave up waiting */
		inodes_forget(f->inodes, entry.ino, 1);
}

void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	inodes_forget(front_of(req)->inodes, ino, nlookup);
	fuse_reply_none(req);
}

void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		inodes_forget(front_of(req)->inodes, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = front_of(req);
	struct inode_view view;
	struct stat st;
	struct err err = ERR_INIT;
	double timeout = 0;
	if (control_has(ino)) {
		front_control_attr(req, ino, fi);
		return;
	}
	if (!inodes_get(f->inodes, ino, &view)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	struct answer answer;
	auto_free char *path = strdup(view.path); /* the inode may go before the answer comes */
	if (!path) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	view.path = path;
	if (!answer_begin(&answer, req))
		return;
	int rc = front_stat(f, &view, &st, &timeout, &err);
	if (!answer_claim(&answer))
		return;
	if (rc)
		front_fail(req, rc, "stat", view.path, &err);
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
	if (engine_space(front_of(req)->engine, &free_bytes, &total_bytes) == 0) {
		out.f_blocks = total_bytes / STATFS_BLOCK;
		out.f_bfree = out.f_bavail = free_bytes / STATFS_BLOCK;
	}
	fuse_reply_statfs(req, &out);
}

/* ---- extended attributes ---- */

/* The value of one attribute, or the list of all with name NULL. With size 0 the kernel asks how
 * long the answer is. */
static void reply_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct front *f = front_of(req);
	struct inode_view view;
	struct err err = ERR_INIT;
	struct answer answer;
	size_t room = size < XATTR_MAX_BYTES ? size : XATTR_MAX_BYTES;
	auto_free char *value = malloc(room ? room : 1), *path = NULL;
	if (control_has(ino)) {
		if (name)
			fuse_reply_err(req, ENODATA);
		else if (size)
			fuse_reply_buf(req, NULL, 0);
		else
			fuse_reply_xattr(req, 0);
		return;
	}
	if (!inodes_get(f->inodes, ino, &view)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	path = strdup(view.path); /* the inode may go before the answer comes */
	if (!value || !path) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (!answer_begin(&answer, req))
		return;
	ssize_t n = name ? engine_getxattr(f->engine, path, name, value, room, &err)
			 : engine_listxattr(f->engine, path, value, room, &err);
	if (!answer_claim(&answer))
		return;
	if (n < 0)
		front_fail(req, (int)n, name ? "read an attribute of" : "list the attributes of",
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
