/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list in order of beginning under one lock. A cancel is fired under that lock, because its
 * read may end as soon as the lock is free; lock order: the list's, a cancel's, a cache's.
 */
#include "pending_reads.h"

#include <stddef.h>
#include <stdlib.h>

#include <utlist.h>

struct pending_reads {
	pthread_mutex_t lock;
	struct pending_read *list;
	bool stopped;
	bool watched; /* somebody calls pending_reads_expire() */
};

struct pending_reads *pending_reads_new(void)
{
	struct pending_reads *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void pending_reads_free(struct pending_reads *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

bool pending_reads_begin(struct pending_reads *t, struct pending_read *r, bool patient,
			 uint64_t now)
{
	*r = (struct pending_read){.patient = patient, .since = now};
	cancel_init(&r->cancel);
	pthread_mutex_lock(&t->lock);
	DL_APPEND(t->list, r);
	bool watch = !patient && !t->watched;
	if (watch)
		t->watched = true;
	if (t->stopped)
		cancel_fire(&r->cancel);
	pthread_mutex_unlock(&t->lock);
	return watch;
}

void pending_reads_end(struct pending_reads *t, struct pending_read *r)
{
	pthread_mutex_lock(&t->lock);
	DL_DELETE(t->list, r);
	pthread_mutex_unlock(&t->lock);
	cancel_release(&r->cancel);
}

bool pending_reads_expire(struct pending_reads *t, uint64_t now)
{
	struct pending_read *r;
	bool left = false;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH(t->list, r)
	{
		if (r->patient || r->expired)
			continue;
		/* A read may have begun after the caller looked at the clock. */
		if (now < r->since || now - r->since < PENDING_READS_PATIENCE_NS) {
			left = true;
			continue;
		}
		r->expired = true;
		cancel_fire(&r->cancel);
	}
	t->watched = left;
	pthread_mutex_unlock(&t->lock);
	return left;
}

void pending_reads_stop(struct pending_reads *t)
{
	struct pending_read *r;
	pthread_mutex_lock(&t->lock);
	t->stopped = true;
	DL_FOREACH(t->list, r)
	cancel_fire(&r->cancel);
	pthread_mutex_unlock(&t->lock);
}
