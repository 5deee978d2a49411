/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of files, the oldest first. Every search removes the expired files. Files are closed after
 * the lock is released, because the last one to close a draft commits it.
 */
#include "reopen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct kept {
	pid_t thread;
	uint64_t since;
	struct engine_file *file;
	bool writes, expired;
	struct kept *prev, *next;
	char path[];
};

struct reopen {
	uint64_t (*clock)(void);
	pthread_mutex_t lock;
	struct kept *list;
	size_t count;
};

struct reopen *reopen_new(uint64_t (*clock)(void))
{
	struct reopen *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->clock = clock;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

/* Closes files that are not in the table. */
static void release(struct kept *list)
{
	struct kept *k, *next;
	LL_FOREACH_SAFE(list, k, next)
	{
		if (k->file)
			engine_file_close(k->file);
		free(k);
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

static void remove_locked(struct reopen *t, struct kept *k, struct kept **removed)
{
	DL_DELETE(t->list, k);
	t->count--;
	LL_PREPEND(*removed, k);
}

/* Also removes expired files. */
static struct kept *find_locked(struct reopen *t, pid_t thread, const char *path,
				struct kept **removed)
{
	const uint64_t max_age = (uint64_t)REOPEN_SECONDS * 1000 * 1000 * 1000;
	const uint64_t now = t->list ? t->clock() : 0;
	struct kept *k, *next, *found = NULL;
	DL_FOREACH_SAFE(t->list, k, next)
	{
		if (k->expired || now - k->since > max_age)
			remove_locked(t, k, removed);
		else if (k->thread == thread && strcmp(k->path, path) == 0)
			found = k;
	}
	return found;
}

static struct kept *kept_new(pid_t thread, const char *path, struct engine_file *file, bool writes)
{
	const size_t n = strlen(path) + 1;
	struct kept *k = calloc(1, sizeof(*k) + n);
	if (!k)
		return NULL;
	k->thread = thread;
	k->file = file;
	k->writes = writes;
	memcpy(k->path, path, n);
	return k;
}

void reopen_put(struct reopen *t, pid_t thread, const char *path, struct engine_file *file,
		bool writes)
{
	struct kept *removed = NULL, *added = NULL;
	if (thread || writes)
		added = kept_new(thread, path, file, writes);
	if (!added) {
		engine_file_close(file);
		return;
	}
	pthread_mutex_lock(&t->lock);
	struct kept *earlier = find_locked(t, thread, path, &removed);
	if (earlier)
		remove_locked(t, earlier, &removed);
	if (t->count == REOPEN_MAX)
		remove_locked(t, t->list, &removed);
	added->since = t->clock();
	DL_APPEND(t->list, added);
	t->count++;
	pthread_mutex_unlock(&t->lock);
	release(removed);
}

void reopen_end(struct reopen *t, pid_t thread)
{
	struct kept *removed = NULL, *k, *next;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH_SAFE(t->list, k, next)
	{
		if (k->thread == thread)
			remove_locked(t, k, &removed);
	}
	pthread_mutex_unlock(&t->lock);
	release(removed);
}

void reopen_expire(struct reopen *t, pid_t thread)
{
	struct kept *k;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH(t->list, k)
	{
		if (k->thread == thread)
			k->expired = true;
	}
	pthread_mutex_unlock(&t->lock);
}

bool reopen_stat(struct reopen *t, pid_t thread, const char *path, struct engine_stat *st)
{
	struct kept *removed = NULL;
	pthread_mutex_lock(&t->lock);
	const struct kept *k = find_locked(t, thread, path, &removed);
	if (k)
		engine_file_stat(k->file, st);
	pthread_mutex_unlock(&t->lock);
	release(removed);
	return k != NULL;
}

bool reopen_is_below(struct reopen *t, pid_t thread, const char *dir)
{
	const size_t n = strlen(dir);
	const struct kept *k;
	bool found = false;
	pthread_mutex_lock(&t->lock);
	DL_FOREACH(t->list, k)
	{
		if (k->thread == thread && !k->expired && strncmp(k->path, dir, n) == 0 &&
		    k->path[n] == '/')
			found = true;
	}
	pthread_mutex_unlock(&t->lock);
	return found;
}

/* Another program can rename the draft between the two requests. */
static struct kept *find_draft_locked(struct reopen *t, pid_t thread, uint64_t version)
{
	struct engine_stat st;
	struct kept *k;
	DL_FOREACH(t->list, k)
	{
		if (k->thread != thread || !k->writes)
			continue;
		engine_file_stat(k->file, &st);
		if (st.version == version)
			return k;
	}
	return NULL;
}

struct engine_file *reopen_take(struct reopen *t, pid_t thread, const char *path, uint64_t version,
				bool writes)
{
	struct kept *removed = NULL;
	struct engine_file *file = NULL;
	struct engine_stat st;
	pthread_mutex_lock(&t->lock);
	struct kept *k = find_locked(t, thread, path, &removed);
	if (!k && writes)
		k = find_draft_locked(t, thread, version);
	if (k) {
		remove_locked(t, k, &removed);
		engine_file_stat(k->file, &st);
		if (st.version == version && k->writes == writes) {
			file = k->file;
			k->file = NULL;
		}
	}
	pthread_mutex_unlock(&t->lock);
	release(removed);
	return file;
}
