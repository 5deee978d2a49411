/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list under one lock. It is held while threads are looked at and while unwanted() runs, because
 * a doubt may vanish as soon as it is free; of all requests only those that are in doubt ever take
 * it. Lock order: this one before those that unwanted() takes.
 */
#include "interrupted.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include <utlist.h>

struct doubts {
	pthread_mutex_t lock;
	struct doubt *list;
};

struct doubts *doubts_new(void)
{
	struct doubts *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void doubts_free(struct doubts *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void doubts_add(struct doubts *t, struct doubt *d)
{
	pthread_mutex_lock(&t->lock);
	atomic_store(&d->added, true);
	d->listed = true;
	DL_APPEND(t->list, d);
	pthread_mutex_unlock(&t->lock);
}

static void remove_locked(struct doubts *t, struct doubt *d)
{
	if (d->listed)
		DL_DELETE(t->list, d);
	d->listed = false;
}

void doubts_remove(struct doubts *t, struct doubt *d)
{
	if (!atomic_load(&d->added))
		return;
	pthread_mutex_lock(&t->lock);
	remove_locked(t, d);
	pthread_mutex_unlock(&t->lock);
}

bool doubts_look(struct doubts *t, bool (*ends)(pid_t thread))
{
	struct doubt *d, *next;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH_SAFE(t->list, d, next)
	{
		if (!ends(d->thread))
			continue;
		remove_locked(t, d);
		d->unwanted(d->arg);
	}
	const bool left = t->list != NULL;
	pthread_mutex_unlock(&t->lock);
	return left;
}
