/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list under one lock. The lock is held while threads are looked at and while cancel() runs,
 * because a request may vanish as soon as it is free; of all requests only interrupted ones ever
 * take it. Lock order: this lock before those that cancel() takes.
 */
#include "interrupted.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include <utlist.h>

struct interrupted {
	pthread_mutex_t lock;
	struct interrupted_request *list;
};

struct interrupted *interrupted_new(void)
{
	struct interrupted *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void interrupted_free(struct interrupted *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void interrupted_add(struct interrupted *t, struct interrupted_request *r)
{
	pthread_mutex_lock(&t->lock);
	atomic_store(&r->added, true);
	r->listed = true;
	DL_APPEND(t->list, r);
	pthread_mutex_unlock(&t->lock);
}

static void remove_locked(struct interrupted *t, struct interrupted_request *r)
{
	if (r->listed)
		DL_DELETE(t->list, r);
	r->listed = false;
}

void interrupted_remove(struct interrupted *t, struct interrupted_request *r)
{
	if (!atomic_load(&r->added))
		return;
	pthread_mutex_lock(&t->lock);
	remove_locked(t, r);
	pthread_mutex_unlock(&t->lock);
}

bool interrupted_look(struct interrupted *t, bool (*ends)(pid_t thread))
{
	struct interrupted_request *r, *next;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH_SAFE(t->list, r, next)
	{
		if (!ends(r->thread))
			continue;
		remove_locked(t, r);
		r->cancel(r->arg);
	}
	const bool left = t->list != NULL;
	pthread_mutex_unlock(&t->lock);
	return left;
}
