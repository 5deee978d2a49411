/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to the kernel: failures and attributes. Any thread. */
#ifndef FUSE_REPLY_H
#define FUSE_REPLY_H

#include "session.h"

/* Logs the error and replies with it. `code` is a negative errno. Errors that are normal in use (a
 * name does not exist or does already, a file has changed, a read was cancelled) are logged as
 * debug messages. */
void reply_fail(fuse_req_t req, int code, const char *what, const char *path,
		const struct err *err);
/* Copies an inode to *out. Returns false if it has replied with ESTALE or ENOMEM. */
bool reply_get_inode(fuse_req_t req, fuse_ino_t ino, struct inode_view *out);
enum { REPLY_PATH_MAX = 4096 /* bytes, with the NUL */ };
/* Writes the path of a name in a directory. Returns false if it has replied with an error. */
bool reply_get_path(fuse_req_t req, fuse_ino_t parent, const char *name, char path[REPLY_PATH_MAX]);
/* Makes an entry with the inode of a path, whose look-up count it increments, and its attributes.
 * Fails with -ENOMEM. */
int reply_make_entry(struct session *s, const char *path, const struct engine_stat *st,
		     struct fuse_entry_param *out, struct err *err);
/* Converts attributes to the form that the kernel expects. */
void reply_attr(const struct session *s, uint64_t ino, const struct engine_stat *st,
		struct stat *out);
/* Returns the seconds for which the kernel may cache attributes. This is 0 for a draft, which
 * changes, and for a file of version 0, whose size is estimated, so that a stat after an open
 * reports the real size. */
double reply_attr_timeout(const struct session *s, const struct engine_stat *st);

#endif
