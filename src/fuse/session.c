/* SPDX-License-Identifier: Apache-2.0 */
/* A session's life. */
#include "session.h"

#include <stdlib.h>

#include "reopen.h"

void session_free(struct session *s)
{
	if (!s)
		return;
	inodes_free(s->inodes);
	pending_reads_free(s->pending_reads);
	interrupted_free(s->requests.interrupted);
	reopen_free(s->requests.reopen);
	pthread_mutex_destroy(&s->handles_lock);
	free(s);
}

struct session *session_new(const struct fuse_front_options *opt, struct engine *engine,
			    struct log *log)
{
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->engine = engine;
	s->log = log;
	s->opt = opt;
	atomic_flag_clear(&s->tuned);
	pthread_mutex_init(&s->handles_lock, NULL);
	s->inodes = inodes_new();
	s->pending_reads = pending_reads_new();
	s->requests.interrupted = interrupted_new();
	s->requests.reopen = reopen_new();
	if (s->inodes && s->pending_reads && s->requests.interrupted && s->requests.reopen)
		return s;
	session_free(s);
	return NULL;
}
