/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of drafts; each has a list of open files, and each file a list of processes. One
 * lock. /proc is read without it, and not for a thread that writes to the same file again.
 */
/* If memory runs out, uthash leaves the `tbl` of the new element NULL instead of calling exit(). */
#define HASH_NONFATAL_OOM 1
#include "writers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

struct writers_process {
	pid_t id;
	bool opened;	      /* it has opened the file, and has not flushed what it has written */
	bool wrote;	      /* since its last flush */
	unsigned int flushes; /* that are running */
	struct writers_process *next;
};

struct draft_writers {
	uint64_t version;
	struct writers_file *files;
	UT_hash_handle hh;
};

struct writers_file {
	struct draft_writers *draft;
	struct writers_process *processes;
	/* The last thread that wrote, until it flushes, and its process, or NULL. A process that
	 * ends flushes, so its number is not that of another process here. */
	pid_t last_thread;
	struct writers_process *last;
	struct writers_file *prev, *next;
};

struct writers {
	pid_t (*process_of)(pid_t thread);
	pthread_mutex_t lock;
	struct draft_writers *drafts;
};

pid_t writers_process_of(pid_t thread)
{
	char path[64], line[256];
	int id = thread;
	if (thread == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	FILE *f = fopen(path, "re");
	if (!f)
		return thread;
	while (fgets(line, sizeof(line), f) && sscanf(line, "Tgid: %d", &id) != 1)
		;
	fclose(f);
	return id;
}

struct writers *writers_new(pid_t (*process_of)(pid_t thread))
{
	struct writers *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->process_of = process_of;
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

void writers_free(struct writers *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static struct draft_writers *find_locked(struct writers *w, uint64_t version)
{
	struct draft_writers *d = NULL;
	HASH_FIND(hh, w->drafts, &version, sizeof(version), d);
	return d;
}

static struct draft_writers *get_locked(struct writers *w, uint64_t version)
{
	struct draft_writers *d = find_locked(w, version);
	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->version = version;
	HASH_ADD(hh, w->drafts, version, sizeof(d->version), d);
	if (d->hh.tbl)
		return d;
	free(d);
	return NULL;
}

static struct writers_process *find_process(struct writers_file *f, pid_t id)
{
	struct writers_process *p;
	LL_FOREACH(f->processes, p)
	{
		if (p->id == id)
			return p;
	}
	return NULL;
}

/* Finds a process of a file, or makes it. Returns NULL if out of memory. */
static struct writers_process *get_process(struct writers_file *f, pid_t id)
{
	struct writers_process *p = find_process(f, id);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->id = id;
	LL_PREPEND(f->processes, p);
	return p;
}

struct writers_file *writers_open(struct writers *w, uint64_t version, pid_t thread)
{
	const pid_t id = w->process_of(thread);
	struct writers_file *f = calloc(1, sizeof(*f));
	struct writers_process *p = f ? get_process(f, id) : NULL;
	if (!p) {
		free(f);
		return NULL;
	}
	p->opened = true;
	pthread_mutex_lock(&w->lock);
	f->draft = get_locked(w, version);
	if (f->draft)
		DL_APPEND(f->draft->files, f);
	pthread_mutex_unlock(&w->lock);
	if (f->draft)
		return f;
	free(p);
	free(f);
	return NULL;
}

void writers_close(struct writers *w, struct writers_file *f)
{
	struct writers_process *p, *next;
	if (!f)
		return;
	pthread_mutex_lock(&w->lock);
	DL_DELETE(f->draft->files, f);
	if (!f->draft->files) {
		HASH_DELETE(hh, w->drafts, f->draft);
		free(f->draft);
	}
	pthread_mutex_unlock(&w->lock);
	LL_FOREACH_SAFE(f->processes, p, next)
	{
		free(p);
	}
	free(f);
}

/* Notes that pages of a mapping were written: each process that has opened the file may have done
 * it. */
static bool openers_wrote_locked(struct writers_file *f)
{
	struct writers_process *p;
	bool any = false;
	LL_FOREACH(f->processes, p)
	{
		p->wrote |= p->opened;
		any |= p->opened;
	}
	return any;
}

static bool wrote_again(struct writers *w, struct writers_file *f, pid_t thread)
{
	pthread_mutex_lock(&w->lock);
	const bool same = f->last && f->last_thread == thread;
	if (same)
		f->last->wrote = true;
	const bool done = same || (thread == 0 && openers_wrote_locked(f));
	pthread_mutex_unlock(&w->lock);
	return done;
}

void writers_wrote(struct writers *w, struct writers_file *f, pid_t thread)
{
	if (!f || wrote_again(w, f, thread))
		return;
	const pid_t id = w->process_of(thread);
	pthread_mutex_lock(&w->lock);
	struct writers_process *p = get_process(f, id);
	if (p)
		p->wrote = true;
	/* 0 stands for many threads. */
	f->last = thread ? p : NULL;
	f->last_thread = thread;
	pthread_mutex_unlock(&w->lock);
}

struct writers_process *writers_flush_begin(struct writers *w, struct writers_file *f, pid_t thread)
{
	if (!f)
		return NULL;
	const pid_t id = w->process_of(thread);
	pthread_mutex_lock(&w->lock);
	struct writers_process *p = find_process(f, id);
	f->last = NULL;
	if (p && p->wrote) {
		p->flushes++;
		p->opened = p->wrote = false;
	} else {
		p = NULL;
	}
	pthread_mutex_unlock(&w->lock);
	return p;
}

void writers_flush_end(struct writers *w, struct writers_file *f, struct writers_process *p)
{
	pthread_mutex_lock(&w->lock);
	p->flushes--;
	const bool idle = !p->flushes && !p->wrote && !p->opened;
	if (idle)
		LL_DELETE(f->processes, p);
	pthread_mutex_unlock(&w->lock);
	if (idle)
		free(p);
}

static bool sees_locked(const struct draft_writers *d, pid_t id)
{
	struct writers_file *f;
	DL_FOREACH(d->files, f)
	{
		if (find_process(f, id))
			return true;
	}
	return false;
}

bool writers_has(struct writers *w, uint64_t version, pid_t thread)
{
	const pid_t id = w->process_of(thread);
	pthread_mutex_lock(&w->lock);
	const struct draft_writers *d = find_locked(w, version);
	const bool has = d && sees_locked(d, id);
	pthread_mutex_unlock(&w->lock);
	return has;
}
