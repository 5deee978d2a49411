/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE operations, by file. Any thread. */
#ifndef FUSE_OPS_H
#define FUSE_OPS_H

#include <stdbool.h>

#include "fuse_api.h"

#include "reply.h"

struct engine_file;
struct engine_stat;
struct session;

/* For fuse_session_new(), whose userdata must be a struct session. */
extern const struct fuse_lowlevel_ops ops_table;

/* ops_name.c */
void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup);
void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_access(fuse_req_t req, fuse_ino_t ino, int mask);
void ops_statfs(fuse_req_t req, fuse_ino_t ino);
void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		  int flags);
void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* Replies with the inode of a path, and its attributes. */
void ops_reply_entry(fuse_req_t req, const char *path, const struct engine_stat *st);

/* ops_change.c: on a mount without engine_options.write they fail with EROFS */
void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		const char *new_name, unsigned int flags);
void ops_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name);
void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name);

/* Writes the path of a name that the request changes. Returns false if it has replied with an
 * error. */
bool ops_change_path(fuse_req_t req, fuse_ino_t parent, const char *name,
		     char path[REPLY_PATH_MAX]);

/* ops_stats.c: the directory and files of stats_files.h */
void ops_stats_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
/* `len` is the length of an open file's text, or NULL. */
void ops_stats_getattr(fuse_req_t req, fuse_ino_t ino, const size_t *len);

/* ops_dir.c */
void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* Closes the directories that are still open when the mount has ended. */
void ops_dir_close_all(struct session *s);

/* ops_open.c */
void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		struct fuse_file_info *fi);
void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

struct ops_open_mode {
	bool writes, truncates;
	bool resizes; /* and changes nothing else */
};
/* Opens the file that the inode's path has now, or takes that which the thread's first request has
 * opened. Returns false if the kernel has got the reply EINTR. */
bool ops_open_current(fuse_req_t req, const struct inode_view *view,
		      const struct ops_open_mode *mode, struct engine_file **out, int *rc,
		      struct err *err);
/* Makes the inode count as open until inodes_close(). *renewed is set if the kernel must drop its
 * pages. Fails with -ESTALE if the file does not have the inode's version. The file then belongs to
 * session->reopen, which keeps it for the kernel's second request. */
int ops_open_adopt(struct session *s, pid_t thread, const struct inode_view *view,
		   struct engine_file *file, bool writes, bool *renewed, struct err *err);

/* ops_write.c */
void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		 struct fuse_file_info *fi);
void ops_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	       struct fuse_file_info *fi);
void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length,
		   struct fuse_file_info *fi);
void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* ops_file.c */
void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
/* Replies with the attributes of a file of stats_files.h, which may be open. */
void ops_file_stats_attr(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi);

#endif
