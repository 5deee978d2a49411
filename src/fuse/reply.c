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
		log_debug(session_of(req)->log, "%s %s: %s", what, path, err->msg);
		break;
	default:
		log_error(session_of(req)->log, "%s %s: %s", what, path[0] ? path : "the bucket",
			  err->msg[0] ? err->msg : strerror(-code));
	}
	fuse_reply_err(req, -code);
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
	*out = (struct stat){
		.st_ino = ino,
		.st_mode = (is_dir ? S_IFDIR : S_IFREG) | (st->mode & 07777 & ~s->opt->umask),
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

/* An estimated size is asked for again each time, so that a stat after an open tells the truth. */
double reply_attr_timeout(const struct session *s, const struct engine_stat *st)
{
	return st->kind == ENGINE_DIR || st->version ? s->opt->metadata_ttl : 0;
}

/* The root is not asked for again: a mount whose server is away could not be unmounted, because
 * fusermount3 looks at the mount point first. */
int reply_stat(struct session *s, const struct inode_view *view, struct stat *out, double *timeout,
	       struct err *err)
{
	enum { FOR_GOOD_S = 86400 };
	struct engine_stat st = view->st;
	if (view->ino == INODES_ROOT) {
		st = s->root;
		*timeout = FOR_GOOD_S;
	} else if (st.version == 0) {
		int rc = engine_getattr(s->engine, view->path, &st, err);
		if (rc)
			return rc;
		if (st.kind != view->st.kind)
			return err_set(err, -ESTALE, "%s: is something else now", view->path);
		*timeout = st.kind == ENGINE_DIR ? s->opt->metadata_ttl : 0;
	} else {
		*timeout = reply_attr_timeout(s, &st);
	}
	reply_attr(s, view->ino, &st, out);
	return 0;
}
