/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sees a draft under its name: the processes that write it, and everybody if nothing else has
 * the name. Other processes see what the bucket has. Any thread.
 */
#ifndef FUSE_DRAFT_VIEW_H
#define FUSE_DRAFT_VIEW_H

#include "session.h"

enum draft_view {
	DRAFT_NONE,
	/* The caller sees what the bucket has. The kernel must not cache that for the name, because
	 * other processes see the draft. */
	DRAFT_HIDDEN,
	DRAFT_SEEN,
};
/* Returns what the thread sees under a path. *st gets the draft's attributes if it is seen. A
 * thread of another PID namespace (0) sees every draft. Sends no request. */
enum draft_view draft_view(struct session *s, pid_t thread, const char *path,
			   struct engine_stat *st);

#endif
