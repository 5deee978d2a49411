/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. */
#include "session.h"

#include <stdlib.h>

#include <base/clock.h>

#include "reopen.h"
#include "kernel_request.h"
#include "writers.h"

void session_free(struct session *s)
{
	if (!s)
		return;
	inodes_free(s->inodes);
	requests_free(s->requests);
	reopen_free(s->reopen);
	writers_free(s->writers);
	pthread_mutex_destroy(&s->handles_lock);
	pthread_mutex_destroy(&s->read_ahead.lock);
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
	pthread_mutex_init(&s->read_ahead.lock, NULL);
	pthread_mutex_init(&s->handles_lock, NULL);
	s->inodes = inodes_new();
	s->reopen = reopen_new(clock_ns);
	s->requests = requests_new(clock_ns, s->reopen);
	s->writers = writers_new(writers_process_of);
	if (s->inodes && s->reopen && s->requests && s->writers)
		return s;
	session_free(s);
	return NULL;
}

enum draft_view draft_view(struct session *s, pid_t thread, const char *path,
			   struct engine_stat *st)
{
	bool alone = false;
	if (!s->opt->write || !engine_draft_stat(s->engine, path, st, &alone))
		return DRAFT_NONE;
	return alone || thread == 0 || writers_has(s->writers, st->version, thread) ? DRAFT_SEEN
										    : DRAFT_HIDDEN;
}
