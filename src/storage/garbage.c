/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See garbage.h. The lock guards the lists and the state of the thread. It is not held while an
 * entry is examined or deleted; meanwhile the entry is in no list.
 */
#include <storage/garbage.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include <base/mem.h>
#include <base/thread.h>
#include <schema/schema.h>

#define SECOND_NS UINT64_C(1000000000)
/* When storage that is being read, or that could not be deleted, is examined again. */
#define AGAIN_NS (5 * SECOND_NS)
/* The same if another process deletes the storage, or a rename may not have ended. */
#define BUSY_NS (60 * SECOND_NS)
/* At this time everything is due, but what fails is not tried again. */
#define END_NS (UINT64_MAX - BUSY_NS)

struct entry {
	struct change_garbage garbage;
	uint64_t due;
	struct storage next_storage; /* as in struct garbage_note */
	uint32_t record;	     /* of its note, or GC_NONE */
	enum gc_type state;
	bool is_busy;  /* the last attempt has failed with -EBUSY */
	bool is_other; /* GC_RENAMED: the rename is of another process, which may be running */
	struct entry *prev, *next;
	char path[];
};

struct garbage {
	const struct env *env;
	struct garbage_ops ops;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct entry *entries;
	pthread_t thread;
	bool threaded, started, closing, ended;
	atomic_bool cancelled, warned;
};

struct garbage *garbage_new(const struct env *env, const struct garbage_ops *ops, bool threaded)
{
	struct garbage *q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->env = env;
	q->ops = *ops;
	q->threaded = threaded;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	return q;
}

/* ---- notes ---- */

static void note(struct garbage *q, uint32_t *record, const struct garbage_note *n)
{
	struct err err = ERR_INIT;
	const int rc = q->ops.note ? q->ops.note(q->ops.ctx, record, n, &err) : 0;
	if (rc && !atomic_exchange(&q->warned, true))
		log_warning(
			q->env->log,
			"if this program is killed, the storage of the domain that was /%s, and "
			"of others, remains in the bucket: %s",
			n->path, err.msg);
}

static void forget(struct garbage *q, uint32_t *record)
{
	if (*record != GC_NONE)
		q->ops.forget(q->ops.ctx, record);
}

/* ---- deleting ---- */

/* Keeps the list in the order in which the entries are due. New ones are the last. */
static void insert_locked(struct garbage *q, struct entry *e)
{
	struct entry *before = q->entries ? q->entries->prev : NULL;
	while (before && before->due > e->due)
		before = before == q->entries ? NULL : before->prev;
	if (before)
		DL_APPEND_ELEM(q->entries, before, e);
	else
		DL_PREPEND(q->entries, e);
}

static void insert(struct garbage *q, struct entry *e)
{
	pthread_mutex_lock(&q->lock);
	insert_locked(q, e);
	pthread_mutex_unlock(&q->lock);
}

/* Takes an entry that is due out of the list. Returns NULL if there is none; then *next is the time
 * when one is due. */
static struct entry *take_due(struct garbage *q, uint64_t now, uint64_t *next)
{
	pthread_mutex_lock(&q->lock);
	struct entry *e = q->entries;
	*next = e ? e->due : UINT64_MAX;
	if (e && e->due > now)
		e = NULL;
	if (e)
		DL_DELETE(q->entries, e);
	pthread_mutex_unlock(&q->lock);
	return e;
}

/* Returns 1 if the name has really lost the storage, 0 if not, or a negative errno. */
static int is_removed(struct garbage *q, struct entry *e, struct err *err)
{
	const struct garbage_note expected = {.state = GC_EXPECTED,
					      .storage = e->garbage.storage,
					      .next = e->next_storage,
					      .path = e->path};
	const int rc = e->state == GC_EXPECTED
			       ? q->ops.judge(q->ops.ctx, &expected, &q->cancelled, err)
			       : GARBAGE_REMOVED;
	if (rc == GARBAGE_UNCLEAR)
		log_warning(q->env->log,
			    "the storage of the domain that was /%s may remain in the bucket: "
			    "perhaps another program has changed the name",
			    e->path);
	if (rc == GARBAGE_REMOVED && e->state == GC_EXPECTED)
		e->state = GC_REMOVED;
	return rc < 0 ? rc : rc == GARBAGE_REMOVED;
}

/* Returns whether the entry is done with. */
static bool finish_rename(struct garbage *q, struct entry *e)
{
	struct err err = ERR_INIT;
	const int rc = q->ops.finish_rename(q->ops.ctx, &e->garbage.storage, !e->is_other,
					    &q->cancelled, &err);
	e->is_busy = rc == -EBUSY;
	if (rc && !e->is_busy)
		log_warning(q->env->log, "cannot finish the rename of /%s: %s", e->path, err.msg);
	return rc == 0;
}

static bool collect_one(struct garbage *q, struct entry *e)
{
	struct err err = ERR_INIT;
	int rc = 0;
	if (!e->garbage.storage.schema)
		return true;
	if (e->state == GC_RENAMED)
		return finish_rename(q, e);
	if (q->ops.is_read(q->ops.ctx, &e->garbage.storage))
		return false;
	const int removed = is_removed(q, e, &err);
	if (removed == 0)
		return true;
	if (removed > 0)
		rc = e->state == GC_OBJECTS
			     ? q->ops.collect_objects(q->ops.ctx, e->record, &q->cancelled, &err)
			     : q->ops.collect(q->ops.ctx, e->path, &e->garbage, &q->cancelled,
					      &err);
	if (removed > 0 && rc == 0)
		return true;
	e->is_busy = rc == -EBUSY;
	if (!e->is_busy)
		log_warning(q->env->log, "cannot delete %s /%s: %s",
			    e->state == GC_OBJECTS ? "objects that were removed from"
						   : "the storage of the domain that was",
			    e->path, err.msg);
	return false;
}

uint64_t garbage_collect(struct garbage *q, uint64_t now)
{
	uint64_t next;
	struct entry *e;
	while ((e = take_due(q, now, &next))) {
		if (!atomic_load(&q->cancelled) && collect_one(q, e)) {
			forget(q, &e->record);
			free(e);
			continue;
		}
		e->due = now + (e->is_busy ? BUSY_NS : AGAIN_NS);
		insert(q, e);
	}
	return next;
}

/* ---- the thread ---- */

/* Returns the moment `ns` from now, for pthread_cond_timedwait(3). */
static struct timespec moment_in(uint64_t ns)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	ns += (uint64_t)ts.tv_nsec;
	ts.tv_sec += (time_t)(ns / SECOND_NS);
	ts.tv_nsec = (long)(ns % SECOND_NS);
	return ts;
}

static void wait_until(struct garbage *q, uint64_t next)
{
	const uint64_t now = q->env->now(q->env), longest = 3600 * SECOND_NS;
	const uint64_t ns = next > now ? min_u64(next - now, longest) : 0;
	const struct timespec end = moment_in(ns);
	pthread_mutex_lock(&q->lock);
	if (!q->closing && ns)
		pthread_cond_timedwait(&q->changed, &q->lock, &end);
	pthread_mutex_unlock(&q->lock);
}

static bool is_closing(struct garbage *q)
{
	pthread_mutex_lock(&q->lock);
	const bool closing = q->closing;
	pthread_mutex_unlock(&q->lock);
	return closing;
}

static void *work(void *arg)
{
	struct garbage *q = arg;
	while (!is_closing(q))
		wait_until(q, garbage_collect(q, q->env->now(q->env)));
	garbage_collect(q, END_NS);
	pthread_mutex_lock(&q->lock);
	q->ended = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

static void stop(struct garbage *q)
{
	const struct timespec end = moment_in(GARBAGE_CLOSE_NS);
	int rc = 0;
	pthread_mutex_lock(&q->lock);
	q->closing = true;
	pthread_cond_broadcast(&q->changed);
	while (!q->ended && rc == 0)
		rc = pthread_cond_timedwait(&q->changed, &q->lock, &end);
	pthread_mutex_unlock(&q->lock);
	atomic_store(&q->cancelled, true);
	pthread_join(q->thread, NULL);
}

static void warn_at_end(const struct garbage *q, const struct entry *e)
{
	if (e->is_other)
		return;
	log_warning(q->env->log, "%s /%s %s%s",
		    e->state == GC_RENAMED   ? "the rename of"
		    : e->state == GC_OBJECTS ? "what was removed from"
					     : "the storage of the domain that was",
		    e->path, e->state == GC_RENAMED ? "is half done" : "remains in the bucket",
		    e->record != GC_NONE ? " until the next mount with -o rw" : "");
}

void garbage_free(struct garbage *q)
{
	struct entry *e, *next;
	if (!q)
		return;
	if (q->started)
		stop(q);
	else
		garbage_collect(q, END_NS);
	DL_FOREACH_SAFE(q->entries, e, next)
	{
		warn_at_end(q, e);
		free(e);
	}
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* ---- the lists ---- */

static void add(struct garbage *q, const struct garbage_note *n, uint32_t record)
{
	const size_t room = strlen(n->path) + 1;
	const bool is_rename = n->state == GC_RENAMED;
	const bool is_other = is_rename && record == GC_NONE;
	struct entry *e = malloc(sizeof(*e) + room);
	if (!e) {
		log_warning(q->env->log,
			    "what was removed at /%s remains in the bucket: out of memory",
			    n->path);
		return;
	}
	*e = (struct entry){
		.garbage = {.storage = n->storage},
		.due = q->env->now(q->env) + (is_rename && !is_other ? 0 : GARBAGE_DELAY_NS),
		.next_storage = n->next,
		.record = record,
		.state = n->state,
		.is_other = is_other,
	};
	memcpy(e->path, n->path, room);
	pthread_mutex_lock(&q->lock);
	insert_locked(q, e);
	if (q->threaded && !q->started)
		q->started = thread_start(&q->thread, work, q);
	if (e == q->entries)
		pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void garbage_expect(struct garbage *q, const char *path, const struct storage *storage,
		    const struct storage *next, uint32_t *record)
{
	const struct garbage_note n = {
		.state = GC_EXPECTED, .storage = *storage, .next = *next, .path = path};
	*record = GC_NONE;
	note(q, record, &n);
}

void garbage_settle(struct garbage *q, const char *path, const struct change_garbage *g,
		    uint32_t record)
{
	const struct garbage_note n = {.state = GC_REMOVED, .storage = g->storage, .path = path};
	if (!g->storage.schema) {
		forget(q, &record);
		return;
	}
	note(q, &record, &n);
	add(q, &n, record);
}

void garbage_add_objects(struct garbage *q, const char *path, const struct storage *storage,
			 uint32_t number)
{
	const struct garbage_note n = {.state = GC_OBJECTS, .storage = *storage, .path = path};
	if (number != GC_NONE)
		add(q, &n, number);
}

void garbage_add(struct garbage *q, const char *path, const struct change_garbage *g)
{
	garbage_settle(q, path, g, GC_NONE);
}

void garbage_add_early(struct garbage *q, const char *path, const struct change_garbage *g,
		       const struct storage *next)
{
	const struct garbage_note n = {
		.state = GC_EXPECTED, .storage = g->storage, .next = *next, .path = path};
	uint32_t record = GC_NONE;
	if (!g->storage.schema)
		return;
	note(q, &record, &n);
	add(q, &n, record);
}

void garbage_settle_rename(struct garbage *q, const char *path, const struct storage *storage,
			   bool half_done, uint32_t record)
{
	const struct garbage_note n = {.state = GC_RENAMED, .storage = *storage, .path = path};
	if (half_done)
		add(q, &n, record);
	else
		forget(q, &record);
}

void garbage_add_names(struct garbage *q, const char *path, const struct storage *storage)
{
	const struct garbage_note n = {.state = GC_RENAMED, .storage = *storage, .path = path};
	add(q, &n, GC_NONE);
}

/* Takes an entry of garbage_add_early() with this number out of the list. */
static struct entry *take_unsure(struct garbage *q, const struct storage *next)
{
	struct entry *e;
	pthread_mutex_lock(&q->lock);
	DL_FOREACH(q->entries, e)
	if (e->state == GC_EXPECTED && e->garbage.storage.schema &&
	    same_storage(&e->next_storage, next))
		break;
	if (e)
		DL_DELETE(q->entries, e);
	pthread_mutex_unlock(&q->lock);
	return e;
}

void garbage_confirm(struct garbage *q, const struct storage *next)
{
	struct entry *e;
	while ((e = take_unsure(q, next))) {
		const struct garbage_note n = {
			.state = GC_REMOVED, .storage = e->garbage.storage, .path = e->path};
		e->state = GC_REMOVED;
		if (e->record != GC_NONE)
			note(q, &e->record, &n);
		insert(q, e);
	}
}

void garbage_inherit(struct garbage *q, const struct garbage_note *n, uint32_t record)
{
	add(q, n, record);
}

/* The notes of entries that are not deleted any more are forgotten at once: the next process knows
 * nothing about the other names of the storage. */
static bool drop_one(struct garbage *q, const struct storage *storage)
{
	uint32_t record = GC_NONE;
	struct entry *e;
	pthread_mutex_lock(&q->lock);
	DL_FOREACH(q->entries, e)
	if (e->state != GC_OBJECTS && e->state != GC_RENAMED &&
	    same_storage(&e->garbage.storage, storage))
		break;
	if (e) {
		record = e->record;
		e->record = GC_NONE;
		e->garbage.storage = (struct storage){.schema = NULL};
	}
	pthread_mutex_unlock(&q->lock);
	forget(q, &record);
	return e != NULL;
}

void garbage_rescue(struct garbage *q, const struct storage *storage)
{
	while (drop_one(q, storage))
		;
}
