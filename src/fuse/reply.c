/* SPDX-License-Identifier: Apache-2.0 */
/* See reply.h. */
#include "reply.h"

#include <errno.h>
#include <string.h>

void reply_fail(fuse_req_t req, int code, const char *what, const char *path, const struct err *err)
{
	switch (code) {
	case -ENOENT:
	case -ENODATA:
	case -ENOTDIR:
	case -EISDIR:
	case -EINTR:
	case -ERANGE:
	case -ESTALE:
	case -EEXIST:
	case -ENOTEMPTY:
	case -EXDEV:
	case -EROFS:
	case -EOPNOTSUPP:
		log_debug(session_of(req)->log, "%s %s: %s", what, path, err->msg);
		break;
	default:
		/* The log has one line about this service, instead of one for each call. */
		(code == -EIO && engine_is_unreachable(session_of(req)->engine) ? log_info
										: log_error)(
			session_of(req)->log, "%s %s: %s", what, path[0] ? path : "the bucket",
			err->msg[0] ? err->msg : strerror(-code));
	}
	fuse_reply_err(req, -code);
}

bool reply_get_inode(fuse_req_t req, fuse_ino_t ino, struct inode_view *out)
{
	int rc = inodes_get(session_of(req)->inodes, ino, out);
	if (rc)
		fuse_reply_err(req, -rc);
	return rc == 0;
}

void reply_attr(const struct session *s, uint64_t ino, const struct engine_stat *st,
		struct stat *out)
{
	enum { NS = 1000000000 };
	bool is_dir = st->kind == ENGINE_DIR;
	int64_t ns = st->mtime_ns % NS, seconds = st->mtime_ns / NS;
	if (ns < 0) {
		ns += NS;
		seconds--;
	}
	mode_t mode = is_dir ? s->opt->dir_mode : s->opt->file_mode;
	if (mode == FUSE_FRONT_ACL_MODE)
		mode = st->mode;
	*out = (struct stat){
		.st_ino = inodes_shown(s->inodes, ino),
		.st_mode = (is_dir ? S_IFDIR : S_IFREG) | (mode & 07777 & ~s->opt->umask),
		.st_nlink = is_dir ? 2 : 1,
		.st_uid = s->opt->uid,
		.st_gid = s->opt->gid,
		.st_size = (off_t)st->size,
		.st_blocks = (blkcnt_t)st->blocks,
		.st_blksize = SESSION_BLKSIZE,
		.st_mtim = {.tv_sec = seconds, .tv_nsec = ns},
		.st_ctim = {.tv_sec = seconds, .tv_nsec = ns},
		.st_atim = {.tv_sec = seconds, .tv_nsec = ns},
	};
}

double reply_attr_timeout(const struct session *s, const struct engine_stat *st)
{
	const bool constant =
		st->kind == ENGINE_DIR || (st->version && !st->draft && !st->unchecked);
	return constant ? s->opt->metadata_ttl : 0;
}

bool reply_get_path(fuse_req_t req, fuse_ino_t parent, const char *name, char path[REPLY_PATH_MAX])
{
	auto_inode struct inode_view dir = {0};
	if (!reply_get_inode(req, parent, &dir))
		return false;
	size_t len = strlen(dir.path), n = strlen(name);
	if (n > SESSION_NAME_MAX || len + n + 2 > REPLY_PATH_MAX) {
		fuse_reply_err(req, ENAMETOOLONG);
		return false;
	}
	memcpy(path, dir.path, len);
	if (len)
		path[len++] = '/';
	memcpy(path + len, name, n + 1);
	return true;
}

int reply_make_entry(struct session *s, const char *path, const struct engine_stat *st,
		     struct fuse_entry_param *out, struct err *err)
{
	*out = (struct fuse_entry_param){.ino = inodes_look_up(s->inodes, path, st)};
	if (!out->ino)
		return err_no_memory(err);
	out->attr_timeout = reply_attr_timeout(s, st);
	/* Who sees a draft under the name depends on the process. */
	out->entry_timeout = st->draft ? 0 : s->opt->metadata_ttl;
	reply_attr(s, out->ino, st, &out->attr);
	return 0;
}
