/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations, and the operations that always fail. */
#include "ops.h"

#include <errno.h>

#include "session.h"

static void init(void *arg, struct fuse_conn_info *conn)
{
	/* An inode is one version of a file, so its cached pages are always valid. */
	conn->want &= ~(unsigned int)FUSE_CAP_AUTO_INVAL_DATA;
	/* Replies are in memory. Copying them is faster than moving pages through a pipe. */
	conn->want &= ~(unsigned int)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				      FUSE_CAP_SPLICE_MOVE);
	conn->want |= conn->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS);
	conn->max_background = SESSION_BACKGROUND;
	conn->congestion_threshold = SESSION_BACKGROUND * 3 / 4;
}

/* The content of files and their attributes cannot be changed. On a writable mount, programs that
 * copy attributes ignore ENOTSUP. */
static void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
			  struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			    size_t size, int flags)
{
	fuse_reply_err(req, session_of(req)->opt->write ? ENOTSUP : EROFS);
}

static void refuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	fuse_reply_err(req, session_of(req)->opt->write ? ENOTSUP : EROFS);
}

/* libhdf5 needs file locks. Without .flock and .getlk the kernel manages them itself. */
const struct fuse_lowlevel_ops ops_table = {
	.init = init,
	.lookup = ops_lookup,
	.forget = ops_forget,
	.forget_multi = ops_forget_multi,
	.getattr = ops_getattr,
	.access = ops_access,
	.statfs = ops_statfs,
	.getxattr = ops_getxattr,
	.listxattr = ops_listxattr,
	.opendir = ops_opendir,
	.readdir = ops_readdir,
	.releasedir = ops_releasedir,
	.open = ops_open,
	.read = ops_read,
	.release = ops_release,
	.lseek = ops_lseek,
	.setattr = ops_setattr,
	.mknod = ops_mknod,
	.mkdir = ops_mkdir,
	.unlink = ops_unlink,
	.rmdir = ops_rmdir,
	.symlink = ops_symlink,
	.rename = ops_rename,
	.link = ops_link,
	.create = refuse_create,
	.write = refuse_write,
	.setxattr = refuse_setxattr,
	.removexattr = refuse_removexattr,
};
