/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations, and what is asked of the kernel. */
#include "ops.h"

#include "session.h"

static void init(void *arg, struct fuse_conn_info *conn)
{
	/* An inode is one version of a file, so its cached pages are always valid. */
	conn->want &= ~(unsigned int)FUSE_CAP_AUTO_INVAL_DATA;
	/* Replies are in memory. Copying them is faster than moving pages through a pipe. */
	conn->want &= ~(unsigned int)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				      FUSE_CAP_SPLICE_MOVE);
	/* Each write(2) arrives at once and in order, so that the status of an HDF5 file in a draft
	 * says what its program has done. */
	conn->want &= ~(unsigned int)FUSE_CAP_WRITEBACK_CACHE;
	conn->want |= conn->capable &
		      (FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ATOMIC_O_TRUNC);
	if (conn->max_write > SESSION_WRITE_MAX)
		conn->max_write = SESSION_WRITE_MAX;
	conn->max_background = SESSION_BACKGROUND;
	conn->congestion_threshold = SESSION_BACKGROUND * 3 / 4;
}

/* libhdf5 needs file locks. Without .flock and .getlk the kernel manages them itself. Without
 * .copy_file_range it reads and writes. */
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
	.create = ops_create,
	.write = ops_write,
	.fallocate = ops_fallocate,
	.flush = ops_flush,
	.fsync = ops_fsync,
	.setxattr = ops_setxattr,
	.removexattr = ops_removexattr,
};
