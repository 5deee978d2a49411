/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup and attributes of the files of stats_files.h and of their directory. */
#include "ops.h"

#include <errno.h>

#include <base/clock.h>
#include <base/mem.h>

#include "reply.h"
#include "stats_files.h"

enum { NAME_TTL = 3600 /* seconds; these names never change */ };

/* Gets the attributes of a file. `len` is the length of an open file's text. If it is NULL, the
 * function makes the text to find its length. */
static int attr_of(struct session *s, uint64_t ino, const size_t *len, struct stat *out,
		   struct err *err)
{
	auto_free char *text = NULL;
	struct engine_stat st;
	size_t n = len ? *len : 0;
	int rc = len || ino == STATS_DIR_INO ? 0 : stats_files_text(s->engine, ino, &text, &n, err);
	if (rc)
		return rc;
	stats_files_stat(ino, n, clock_wall_ns(), &st);
	reply_attr(s, ino, &st, out);
	return 0;
}

void ops_stats_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.ino = stats_files_look_up(parent, name),
		.entry_timeout = NAME_TTL,
	};
	struct err err = ERR_INIT;
	int rc = entry.ino ? attr_of(session_of(req), entry.ino, NULL, &entry.attr, &err) : -ENOENT;
	if (rc)
		reply_fail(req, rc, "look up", STATS_DIR_NAME, &err);
	else
		fuse_reply_entry(req, &entry); /* these inodes have no lookup count */
}

void ops_stats_getattr(fuse_req_t req, fuse_ino_t ino, const size_t *len)
{
	struct stat st;
	struct err err = ERR_INIT;
	int rc = attr_of(session_of(req), ino, len, &st, &err);
	if (rc)
		reply_fail(req, rc, "stat", STATS_DIR_NAME, &err);
	else
		fuse_reply_attr(req, &st, 0);
}
