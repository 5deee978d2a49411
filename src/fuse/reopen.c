/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of files, the oldest first. Every search closes those whose time is over; files are closed
 * after the lock is released. Callers read the clock before they have the lock, so a file may be
 * newer than the time of the caller that looks at it.
 */
#include "reopen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct kept {
	pid_t thread;
	bool over; /* its call has ended */
	uint64_t since;
	struct engine_file *file;
	struct kept *prev, *next;
	char path[];
};

struct reopen {
	atomic_size_t count; /* to see without the lock that nothing is kept */
	pthread_mutex_t lock;
	struct kept *list;
};

struct reopen *reopen_new(void)
{
	struct reopen *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

/* Files that no other thread can see any more, or one that none has seen yet. */
static void release(struct kept *list)
{
	struct kept *p, *next;
	LL_FOREACH_SAFE(list, p, next)
	{
		if (p->file)
			engine_file_close(p->file);
		free(p);
	}
}

void reopen_free(struct reopen *t)
{
	if (!t)
		return;
	release(t->list);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void remove_locked(struct reopen *t, struct kept *p, struct kept **gone)
{
	DL_DELETE(t->list, p);
	atomic_fetch_sub(&t->count, 1);
	LL_PREPEND(*gone, p);
}

static bool is_over(const struct kept *p, uint64_t now)
{
	const uint64_t patience = (uint64_t)REOPEN_SECONDS * 1000 * 1000 * 1000;
	return p->over || (now > p->since && now - p->since > patience);
}

/* NULL when there is none. What is over goes on the way. */
static struct kept *find_locked(struct reopen *t, pid_t thread, const char *path, uint64_t now,
				struct kept **gone)
{
	struct kept *p, *next, *found = NULL;
	DL_FOREACH_SAFE(t->list, p, next)
	{
		if (is_over(p, now))
			remove_locked(t, p, gone);
		else if (p->thread == thread && strcmp(p->path, path) == 0)
			found = p;
	}
	return found;
}

static struct kept *kept_new(pid_t thread, const char *path, struct engine_file *file, uint64_t now)
{
	const size_t n = strlen(path) + 1;
	struct kept *p = calloc(1, sizeof(*p) + n);
	if (!p)
		return NULL;
	p->thread = thread;
	p->since = now;
	p->file = file;
	memcpy(p->path, path, n);
	return p;
}

void reopen_put(struct reopen *t, pid_t thread, const char *path, struct engine_file *file,
		uint64_t now)
{
	struct kept *gone = NULL, *fresh = thread ? kept_new(thread, path, file, now) : NULL;
	if (!fresh) {
		engine_file_close(file);
		return;
	}
	pthread_mutex_lock(&t->lock);
	struct kept *before = find_locked(t, thread, path, now, &gone);
	if (before)
		remove_locked(t, before, &gone);
	if (atomic_load(&t->count) == REOPEN_MAX)
		remove_locked(t, t->list, &gone);
	DL_APPEND(t->list, fresh);
	atomic_fetch_add(&t->count, 1);
	pthread_mutex_unlock(&t->lock);
	release(gone);
}

void reopen_end(struct reopen *t, pid_t thread)
{
	struct kept *p;
	if (atomic_load(&t->count) == 0)
		return;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH(t->list, p)
	{
		if (p->thread == thread)
			p->over = true;
	}
	pthread_mutex_unlock(&t->lock);
}

bool reopen_stat(struct reopen *t, pid_t thread, const char *path, uint64_t now,
		 struct engine_stat *st)
{
	struct kept *gone = NULL;
	if (atomic_load(&t->count) == 0)
		return false;
	pthread_mutex_lock(&t->lock);
	const struct kept *p = find_locked(t, thread, path, now, &gone);
	if (p)
		engine_file_stat(p->file, st);
	pthread_mutex_unlock(&t->lock);
	release(gone);
	return p != NULL;
}

struct engine_file *reopen_take(struct reopen *t, pid_t thread, const char *path, uint64_t version,
				uint64_t now)
{
	struct kept *gone = NULL;
	struct engine_file *file = NULL;
	struct engine_stat st;
	if (atomic_load(&t->count) == 0)
		return NULL;
	pthread_mutex_lock(&t->lock);
	struct kept *p = find_locked(t, thread, path, now, &gone);
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
