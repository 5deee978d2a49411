/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list in order of beginning under one lock. A cancel is fired under that lock, because its
 * read may end as soon as the lock is free; lock order: the list's, a cancel's, a cache's.
 */
#include "pending_reads.h"

#include <stddef.h>
#include <stdlib.h>

#include <utlist.h>

struct waits {
	pthread_mutex_t lock;
	struct wait *list;
	bool stopped;
	bool watched; /* somebody calls waits_expire() */
};

struct waits *waits_new(void)
{
	struct waits *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void waits_free(struct waits *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

bool waits_begin(struct waits *t, struct wait *w, bool patient, uint64_t now)
{
	*w = (struct wait){.patient = patient, .since = now};
	cancel_init(&w->cancel);
	pthread_mutex_lock(&t->lock);
	DL_APPEND(t->list, w);
	bool wanted = !patient && !t->watched;
	if (wanted)
		t->watched = true;
	if (t->stopped)
		cancel_fire(&w->cancel);
	pthread_mutex_unlock(&t->lock);
	return wanted;
}

void waits_end(struct waits *t, struct wait *w)
{
	pthread_mutex_lock(&t->lock);
	DL_DELETE(t->list, w);
	pthread_mutex_unlock(&t->lock);
	cancel_release(&w->cancel);
}

bool waits_expire(struct waits *t, uint64_t now)
{
	struct wait *w;
	bool left = false;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH(t->list, w)
	{
		if (w->patient || w->expired)
			continue;
		/* A read may have begun after the caller looked at the clock. */
		if (now < w->since || now - w->since < WAITS_PATIENCE_NS) {
			left = true;
			continue;
		}
		w->expired = true;
		cancel_fire(&w->cancel);
	}
	t->watched = left;
	pthread_mutex_unlock(&t->lock);
	return left;
}

void waits_stop(struct waits *t)
{
	struct wait *w;
	pthread_mutex_lock(&t->lock);
	t->stopped = true;
	DL_FOREACH(t->list, w)
	cancel_fire(&w->cancel);
	pthread_mutex_unlock(&t->lock);
}
