/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE operations, by file. Any thread. */
#ifndef FUSE_OPS_H
#define FUSE_OPS_H

#include "fuse_api.h"

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

/* ops_stats.c: the directory and files of stats_files.h */
void ops_stats_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
/* len: the length of an open file's text, or NULL. */
void ops_stats_getattr(fuse_req_t req, fuse_ino_t ino, const size_t *len);

/* ops_dir.c */
void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* Closes the directories that are still open when the mount has ended. */
void ops_dir_close_all(struct session *s);

/* ops_file.c */
void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
/* Attributes of a file of stats_files.h, which may be open. */
void ops_file_stats_attr(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi);
/* Closes the files that are still open when the mount has ended. */
void ops_file_close_all(struct session *s);

#endif
