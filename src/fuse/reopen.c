/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of places, the oldest first. Every search closes what nobody came for; files are closed
 * after the lock is released. Callers read the clock before they have the lock, so a place may be
 * later than the time of whoever looks at it.
 */
#include "reopen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct place {
	pid_t thread;
	bool over; /* its call has ended */
	uint64_t since;
	struct engine_file *file;
	struct place *prev, *next;
	char path[];
};

struct parked {
	atomic_size_t count; /* to see without the lock that nothing waits */
	pthread_mutex_t lock;
	struct place *places;
};

struct parked *parked_new(void)
{
	struct parked *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

/* Places that nobody can see any more, or one that nobody has seen yet. */
static void release(struct place *list)
{
	struct place *p, *next;
	LL_FOREACH_SAFE(list, p, next)
	{
		if (p->file)
			engine_file_close(p->file);
		free(p);
	}
}

void parked_free(struct parked *t)
{
	if (!t)
		return;
	release(t->places);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void remove_locked(struct parked *t, struct place *p, struct place **gone)
{
	DL_DELETE(t->places, p);
	atomic_fetch_sub(&t->count, 1);
	LL_PREPEND(*gone, p);
}

static bool is_over(const struct place *p, uint64_t now)
{
	const uint64_t patience = (uint64_t)PARKED_SECONDS * 1000 * 1000 * 1000;
	return p->over || (now > p->since && now - p->since > patience);
}

/* NULL when there is none. What is over goes on the way. */
static struct place *find_locked(struct parked *t, pid_t thread, const char *path, uint64_t now,
				 struct place **gone)
{
	struct place *p, *next, *found = NULL;
	DL_FOREACH_SAFE(t->places, p, next)
	{
		if (is_over(p, now))
			remove_locked(t, p, gone);
		else if (p->thread == thread && strcmp(p->path, path) == 0)
			found = p;
	}
	return found;
}

static struct place *new_place(pid_t thread, const char *path, struct engine_file *file,
			       uint64_t now)
{
	const size_t n = strlen(path) + 1;
	struct place *p = calloc(1, sizeof(*p) + n);
	if (!p)
		return NULL;
	p->thread = thread;
	p->since = now;
	p->file = file;
	memcpy(p->path, path, n);
	return p;
}

void parked_put(struct parked *t, pid_t thread, const char *path, struct engine_file *file,
		uint64_t now)
{
	struct place *gone = NULL, *fresh = thread ? new_place(thread, path, file, now) : NULL;
	if (!fresh) {
		engine_file_close(file);
		return;
	}
	pthread_mutex_lock(&t->lock);
	struct place *before = find_locked(t, thread, path, now, &gone);
	if (before)
		remove_locked(t, before, &gone);
	if (atomic_load(&t->count) == PARKED_MAX)
		remove_locked(t, t->places, &gone);
	DL_APPEND(t->places, fresh);
	atomic_fetch_add(&t->count, 1);
	pthread_mutex_unlock(&t->lock);
	release(gone);
}

void parked_end(struct parked *t, pid_t thread)
{
	struct place *p;
	if (atomic_load(&t->count) == 0)
		return;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH(t->places, p)
	{
		if (p->thread == thread)
			p->over = true;
	}
	pthread_mutex_unlock(&t->lock);
}

bool parked_stat(struct parked *t, pid_t thread, const char *path, uint64_t now,
		 struct engine_stat *st)
{
	struct place *gone = NULL;
	if (atomic_load(&t->count) == 0)
		return false;
	pthread_mutex_lock(&t->lock);
	const struct place *p = find_locked(t, thread, path, now, &gone);
	if (p)
		engine_file_stat(p->file, st);
	pthread_mutex_unlock(&t->lock);
	release(gone);
	return p != NULL;
}

struct engine_file *parked_take(struct parked *t, pid_t thread, const char *path, uint64_t version,
				uint64_t now)
{
	struct place *gone = NULL;
	struct engine_file *file = NULL;
	struct engine_stat st;
	if (atomic_load(&t->count) == 0)
		return NULL;
	pthread_mutex_lock(&t->lock);
	struct place *p = find_locked(t, thread, path, now, &gone);
	if (p) {
		remove_locked(t, p, &gone);
		engine_file_stat(p->file, &st);
		if (st.version == version) {
			file = p->file;
			p->file = NULL;
		}
	}
	pthread_mutex_unlock(&t->lock);
	release(gone);
	return file;
}
