/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few places, searched one after the other; the first `n` are taken, the oldest first. Files are
 * closed after the lock is released.
 */
#include "parked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct place {
	pid_t thread;
	uint64_t since;
	struct engine_file *file;
	char *path;
};

struct parked {
	atomic_size_t count; /* n, to see without the lock that nothing waits */
	pthread_mutex_t lock;
	size_t n;
	struct place places[PARKED_MAX];
};

static const uint64_t patience = (uint64_t)PARKED_SECONDS * 1000 * 1000 * 1000;

struct parked *parked_new(void)
{
	struct parked *t = calloc(1, sizeof(*t));
	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

/* A place that nobody can see any more. */
static void release(struct place *p)
{
	if (p->file)
		engine_file_close(p->file);
	free(p->path);
}

void parked_free(struct parked *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		release(&t->places[i]);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static struct place remove_locked(struct parked *t, size_t i)
{
	const struct place p = t->places[i];
	t->n--;
	memmove(&t->places[i], &t->places[i + 1], (t->n - i) * sizeof(t->places[0]));
	atomic_store(&t->count, t->n);
	return p;
}

/* n when there is none. */
static size_t find_locked(const struct parked *t, pid_t thread, const char *path, uint64_t now)
{
	size_t i = 0;
	while (i < t->n && (t->places[i].thread != thread || now - t->places[i].since > patience ||
			    strcmp(t->places[i].path, path) != 0))
		i++;
	return i;
}

void parked_put(struct parked *t, pid_t thread, const char *path, struct engine_file *file,
		uint64_t now)
{
	struct place gone[2] = {0}, fresh = {thread, now, file, thread ? strdup(path) : NULL};
	size_t ngone = 0;
	if (!fresh.path) {
		release(&fresh);
		return;
	}
	pthread_mutex_lock(&t->lock);
	const size_t i = find_locked(t, thread, path, now);
	if (i < t->n)
		gone[ngone++] = remove_locked(t, i);
	if (t->n == PARKED_MAX || (t->n && now - t->places[0].since > patience))
		gone[ngone++] = remove_locked(t, 0);
	t->places[t->n++] = fresh;
	atomic_store(&t->count, t->n);
	pthread_mutex_unlock(&t->lock);
	for (size_t k = 0; k < ngone; k++)
		release(&gone[k]);
}

bool parked_stat(struct parked *t, pid_t thread, const char *path, uint64_t now,
		 struct engine_stat *st)
{
	if (atomic_load(&t->count) == 0)
		return false;
	pthread_mutex_lock(&t->lock);
	const size_t i = find_locked(t, thread, path, now);
	const bool found = i < t->n;
	if (found)
		engine_file_stat(t->places[i].file, st);
	pthread_mutex_unlock(&t->lock);
	return found;
}

struct engine_file *parked_take(struct parked *t, pid_t thread, const char *path, uint64_t version,
				uint64_t now)
{
	struct place p = {0};
	if (atomic_load(&t->count) == 0)
		return NULL;
	pthread_mutex_lock(&t->lock);
	const size_t i = find_locked(t, thread, path, now);
	if (i < t->n)
		p = remove_locked(t, i);
	pthread_mutex_unlock(&t->lock);
	struct engine_file *file = p.file;
	struct engine_stat st;
	if (file)
		engine_file_stat(file, &st);
	if (file && st.version == version)
		p.file = NULL;
	else
		file = NULL;
	release(&p);
	return file;
}
