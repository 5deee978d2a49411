/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to the kernel: failures and attributes. Any thread. */
#ifndef FUSE_REPLY_H
#define FUSE_REPLY_H

#include "session.h"

/* Replies with an error, once all that is known of it has been logged. code: negative errno. Names
 * that do not exist, versions that are gone and cancelled reads are logged as debug messages. */
void reply_fail(fuse_req_t req, int code, const char *what, const char *path,
		const struct err *err);
/* Attributes as the kernel sees them. */
void reply_attr(const struct session *s, uint64_t ino, const struct engine_stat *st,
		struct stat *out);
/* How long they are valid, seconds. An estimated size is asked for again each time, so that a stat
 * after an open tells the truth. */
double reply_attr_timeout(const struct session *s, const struct engine_stat *st);
/* Attributes of an inode now, and how long they are valid. */
int reply_stat(struct session *s, const struct inode_view *view, struct stat *out, double *timeout,
	       struct err *err);

#endif
