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
		log_debug(session_of(req)->log, "%s %s: %s", what, path, err->msg);
		break;
	default:
		log_error(session_of(req)->log, "%s %s: %s", what, path[0] ? path : "the bucket",
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
		.st_ino = ino,
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
	return st->kind == ENGINE_DIR || st->version ? s->opt->metadata_ttl : 0;
}
