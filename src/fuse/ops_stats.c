/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the control directory (stats_files.h) and its files, where they differ from those
 * on what is in the bucket. */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <base/mem.h>

#include "stats_files.h"

enum { NAMES_HOLD = 3600 /* seconds that the kernel believes names that never change */ };

static int64_t wall_clock(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* len: of the open file's text; NULL for a fresh one's. */
static int attr_of(struct front *f, uint64_t ino, const size_t *len, struct stat *out,
		   struct err *err)
{
	auto_free char *text = NULL;
	struct engine_stat st;
	size_t n = len ? *len : 0;
	int rc = len || ino == CONTROL_INO ? 0 : control_text(f->engine, ino, &text, &n, err);
	if (rc)
		return rc;
	control_stat(ino, n, wall_clock(), &st);
	front_attr(f, ino, &st, out);
	return 0;
}

void ops_control_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.ino = control_look_up(parent, name),
		.entry_timeout = NAMES_HOLD,
	};
	struct err err = ERR_INIT;
	int rc = entry.ino ? attr_of(front_of(req), entry.ino, NULL, &entry.attr, &err) : -ENOENT;
	if (rc)
		front_fail(req, rc, "look up", CONTROL_NAME, &err);
	else
		fuse_reply_entry(req, &entry); /* nothing to forget when nobody listens */
}

void ops_control_getattr(fuse_req_t req, fuse_ino_t ino, const size_t *len)
{
	struct stat st;
	struct err err = ERR_INIT;
	int rc = attr_of(front_of(req), ino, len, &st, &err);
	if (rc)
		front_fail(req, rc, "stat", CONTROL_NAME, &err);
	else
		fuse_reply_attr(req, &st, 0);
}
