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
/* When a change that was about to happen has ended in any case: until then nobody knows what has
 * become of the name. */
#define EARLY_NS (600 * SECOND_NS)
/* The same if another process deletes the storage, or a rename may not have ended. */
#define BUSY_NS (60 * SECOND_NS)
struct garbage_entry {
	struct storage storage; /* without a schema: there is nothing to delete any more */
	uint64_t due;		/* when it may be deleted, or is examined again */
	int64_t since_ns;	/* this and the next two: as in struct garbage_note */
	struct storage next_storage;
	char *document;	 /* never NULL */
	uint32_t record; /* of its note, or GC_NONE */
	enum gc_type state;
	bool is_busy;  /* the last attempt has failed with -EBUSY */
	bool is_other; /* GC_RENAMED: the rename is of another process, which may be running */
	bool is_tried; /* there was an attempt, so it was due */
	bool is_early; /* of garbage_add_early(), and not confirmed yet */
	struct garbage_entry *prev, *next;
	char path[];
};

struct garbage {
	const struct env *env;
	struct garbage_ops ops;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct garbage_options opt;
	struct garbage_entry *entries;
	pthread_t thread;
	bool started, closing, ended;
	atomic_bool cancelled, warned;
};

struct garbage *garbage_new(const struct env *env, const struct garbage_ops *ops,
			    const struct garbage_options *opt)
{
	struct garbage *q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->env = env;
	q->ops = *ops;
	q->opt = *opt;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	return q;
}

/* ---- notes ---- */

static struct garbage_note note_of(const struct garbage_entry *e)
{
	return (struct garbage_note){.state = e->state,
				     .since_ns = e->since_ns,
				     .storage = e->storage,
				     .next = e->next_storage,
				     .path = e->path,
				     .document = e->document};
}

static void note(struct garbage *q, struct garbage_entry *e)
{
	struct err err = ERR_INIT;
	const struct garbage_note n = note_of(e);
	const int rc = q->ops.note ? q->ops.note(q->ops.ctx, &e->record, &n, &err) : 0;
	if (rc && !atomic_exchange(&q->warned, true))
		log_warning(
			q->env->log,
			"if this program is killed, the storage of the domain that was /%s, and "
			"of others, remains in the bucket: %s",
			n.path, err.msg);
}

static void forget(struct garbage *q, uint32_t *record)
{
	if (*record != GC_NONE)
		q->ops.forget(q->ops.ctx, record);
}

/* ---- entries ---- */

static void entry_free(struct garbage_entry *e)
{
	free(e->document);
	free(e);
}

static void set_document(struct garbage_entry *e, const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		return; /* the domain cannot be brought back */
	free(e->document);
	e->document = copy;
}

/* Returns NULL, after a warning, if out of memory. */
static struct garbage_entry *entry_new(const struct garbage *q, enum gc_type state,
				       const char *path, const struct storage *storage,
				       uint32_t record)
{
	const size_t room = strlen(path) + 1;
	struct garbage_entry *e = malloc(sizeof(*e) + room);
	char *document = strdup("");
	if (!e || !document) {
		log_warning(q->env->log,
			    "what was removed at /%s remains in the bucket: out of memory", path);
		free(e);
		free(document);
		return NULL;
	}
	*e = (struct garbage_entry){
		.storage = *storage,
		.since_ns = env_wall(q->env),
		.document = document,
		.record = record,
		.state = state,
		.is_other = state == GC_RENAMED && record == GC_NONE,
	};
	memcpy(e->path, path, room);
	return e;
}

/* The document is a new one, with a number of its own, so that no version ever returns. */
static void keep_document(const struct garbage *q, struct garbage_entry *e,
			  const struct schema_document *lost)
{
	auto_bytes struct bytes text = {0};
	struct domain_info info = lost->info;
	q->env->random(q->env, &info.nonce, sizeof(info.nonce));
	if (!lost->schema->documents || lost->schema->documents->emit(&info, &text, NULL) ||
	    text.len > GC_DOCUMENT || bytes_append(&text, "", 1))
		return;
	set_document(e, (const char *)text.data);
}

struct garbage_entry *garbage_expect(struct garbage *q, const char *path,
				     const struct schema_document *lost, const struct storage *next)
{
	struct storage storage;
	if (!schema_storage_of(lost, &storage) || (next->schema && same_storage(&storage, next)))
		return NULL;
	struct garbage_entry *e = entry_new(q, GC_EXPECTED, path, &storage, GC_NONE);
	if (!e)
		return NULL;
	e->next_storage = *next;
	keep_document(q, e, lost);
	note(q, e);
	return e;
}

/* ---- deleting ---- */

/* Keeps the list in the order in which the entries are due. New ones are the last. */
static void insert_locked(struct garbage *q, struct garbage_entry *e)
{
	struct garbage_entry *before = q->entries ? q->entries->prev : NULL;
	while (before && before->due > e->due)
		before = before == q->entries ? NULL : before->prev;
	if (before)
		DL_APPEND_ELEM(q->entries, before, e);
	else
		DL_PREPEND(q->entries, e);
}

/* The thread looks at the list again if the entry is the first one. */
static void insert(struct garbage *q, struct garbage_entry *e)
{
	pthread_mutex_lock(&q->lock);
	insert_locked(q, e);
	if (e == q->entries)
		pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

/* Takes an entry that is due out of the list. Returns NULL if there is none; then *next is the time
 * when one is due. */
static struct garbage_entry *take_due(struct garbage *q, uint64_t now, uint64_t *next)
{
	pthread_mutex_lock(&q->lock);
	struct garbage_entry *e = q->entries;
	*next = e ? e->due : UINT64_MAX;
	if (e && e->due > now)
		e = NULL;
	if (e)
		DL_DELETE(q->entries, e);
	pthread_mutex_unlock(&q->lock);
	return e;
}

/* Returns 1 if the name has really lost the storage, 0 if not, or a negative errno. */
static int is_removed(struct garbage *q, struct garbage_entry *e, struct err *err)
{
	const struct garbage_note expected = note_of(e);
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
static bool finish_rename(struct garbage *q, struct garbage_entry *e)
{
	struct err err = ERR_INIT;
	const int rc =
		q->ops.finish_rename(q->ops.ctx, &e->storage, !e->is_other, &q->cancelled, &err);
	e->is_busy = rc == -EBUSY;
	if (rc && !e->is_busy)
		log_warning(q->env->log, "cannot finish the rename of /%s: %s", e->path, err.msg);
	return rc == 0;
}

static bool collect_one(struct garbage *q, struct garbage_entry *e)
{
	const struct change_garbage garbage = {.storage = e->storage};
	struct err err = ERR_INIT;
	int rc = 0;
	e->is_tried = true;
	if (!e->storage.schema)
		return true;
	if (e->state == GC_RENAMED)
		return finish_rename(q, e);
	if (q->ops.is_read(q->ops.ctx, &e->storage))
		return false;
	const int removed = is_removed(q, e, &err);
	if (removed == 0)
		return true;
	if (removed > 0)
		rc = e->state == GC_OBJECTS
			     ? q->ops.collect_objects(q->ops.ctx, e->record, &q->cancelled, &err)
			     : q->ops.collect(q->ops.ctx, e->path, &garbage, &q->cancelled, &err);
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
	struct garbage_entry *e;
	while ((e = take_due(q, now, &next))) {
		if (!atomic_load(&q->cancelled) && collect_one(q, e)) {
			forget(q, &e->record);
			entry_free(e);
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

/* Nobody else deletes what the journal does not have. What has waited for a reader, or for the
 * bucket, is tried once more. No change is running any more. */
static bool is_due_at_end(const struct garbage *q, const struct garbage_entry *e)
{
	return q->opt.all_at_end || e->is_tried || e->is_early || e->record == GC_NONE;
}

static void collect_at_end(struct garbage *q)
{
	struct garbage_entry *e, *next, *due = NULL;
	pthread_mutex_lock(&q->lock);
	DL_FOREACH_SAFE(q->entries, e, next)
	{
		if (!is_due_at_end(q, e))
			continue;
		DL_DELETE(q->entries, e);
		DL_APPEND(due, e);
	}
	DL_FOREACH_SAFE(due, e, next)
	{
		DL_DELETE(due, e);
		e->due = 0;
		insert_locked(q, e);
	}
	pthread_mutex_unlock(&q->lock);
	garbage_collect(q, q->env->now(q->env));
}

static void *work(void *arg)
{
	struct garbage *q = arg;
	while (!is_closing(q))
		wait_until(q, garbage_collect(q, q->env->now(q->env)));
	collect_at_end(q);
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

/* Returns whether the entry just waits for its time, which the next process knows. */
static bool is_left_to_next(const struct garbage *q, const struct garbage_entry *e)
{
	return !is_due_at_end(q, e) && e->state != GC_RENAMED;
}

static void warn_at_end(const struct garbage *q, const struct garbage_entry *e)
{
	if (e->is_other || is_left_to_next(q, e))
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
	struct garbage_entry *e, *next;
	unsigned int left = 0;
	if (!q)
		return;
	if (q->started)
		stop(q);
	else
		collect_at_end(q);
	DL_FOREACH_SAFE(q->entries, e, next)
	{
		warn_at_end(q, e);
		left += is_left_to_next(q, e);
		entry_free(e);
	}
	if (left)
		log_info(q->env->log,
			 "what %u removed or replaced file%s had in the bucket is deleted by a "
			 "later mount with -o rw; until then `hsimage undelete` brings them back",
			 left, left == 1 ? "" : "s");
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* ---- the lists ---- */

static bool is_waiting(const struct garbage_entry *e)
{
	return e->state != GC_RENAMED || e->is_other;
}

/* When the storage may be deleted. The journal has the time of day of the change, and the clock may
 * have been changed since: nothing waits longer than the delay. */
static uint64_t due_of(const struct garbage *q, const struct garbage_entry *e)
{
	const int64_t age = e->since_ns ? env_wall(q->env) - e->since_ns : 0;
	const uint64_t waited = age > 0 ? min_u64((uint64_t)age, q->opt.delay_ns) : 0;
	const uint64_t now = q->env->now(q->env);
	if (e->is_early)
		return now + max_u64(q->opt.delay_ns, EARLY_NS);
	return is_waiting(e) ? now + (q->opt.delay_ns - waited) : now;
}

/* Adds an entry that entry_new() has made. */
static void add(struct garbage *q, struct garbage_entry *e)
{
	if (!e)
		return;
	e->due = due_of(q, e);
	pthread_mutex_lock(&q->lock);
	if (q->opt.threaded && !q->started)
		q->started = thread_start(&q->thread, work, q);
	pthread_mutex_unlock(&q->lock);
	insert(q, e);
}

void garbage_settle(struct garbage *q, struct garbage_entry *e, bool is_lost)
{
	if (!e)
		return;
	if (!is_lost) {
		forget(q, &e->record);
		entry_free(e);
		return;
	}
	e->state = GC_REMOVED;
	e->since_ns = env_wall(q->env);
	e->next_storage = (struct storage){.schema = NULL};
	note(q, e);
	add(q, e);
}

void garbage_add_objects(struct garbage *q, const char *path, const struct storage *storage,
			 uint32_t number)
{
	if (number != GC_NONE)
		add(q, entry_new(q, GC_OBJECTS, path, storage, number));
}

void garbage_add(struct garbage *q, const char *path, const struct change_garbage *g)
{
	if (g->storage.schema)
		garbage_settle(q, entry_new(q, GC_REMOVED, path, &g->storage, GC_NONE), true);
}

void garbage_add_early(struct garbage *q, const char *path, const struct schema_document *lost,
		       const struct storage *next)
{
	struct garbage_entry *e = garbage_expect(q, path, lost, next);
	if (e)
		e->is_early = true;
	add(q, e);
}

void garbage_settle_rename(struct garbage *q, const char *path, const struct storage *storage,
			   bool half_done, uint32_t record)
{
	if (half_done)
		add(q, entry_new(q, GC_RENAMED, path, storage, record));
	else
		forget(q, &record);
}

void garbage_add_names(struct garbage *q, const char *path, const struct storage *storage)
{
	add(q, entry_new(q, GC_RENAMED, path, storage, GC_NONE));
}

/* Takes an entry of garbage_add_early() with this number out of the list. */
static struct garbage_entry *take_unsure(struct garbage *q, const struct storage *next)
{
	struct garbage_entry *e;
	pthread_mutex_lock(&q->lock);
	DL_FOREACH(q->entries, e)
	if (e->state == GC_EXPECTED && e->storage.schema && same_storage(&e->next_storage, next))
		break;
	if (e)
		DL_DELETE(q->entries, e);
	pthread_mutex_unlock(&q->lock);
	return e;
}

void garbage_confirm(struct garbage *q, const struct storage *next)
{
	struct garbage_entry *e;
	while ((e = take_unsure(q, next))) {
		e->state = GC_REMOVED;
		e->next_storage = (struct storage){.schema = NULL};
		e->since_ns = env_wall(q->env);
		e->is_early = false;
		if (e->record != GC_NONE)
			note(q, e);
		add(q, e);
	}
}

void garbage_inherit(struct garbage *q, const struct garbage_note *n, uint32_t record)
{
	struct garbage_entry *e = entry_new(q, n->state, n->path, &n->storage, record);
	if (!e)
		return;
	e->since_ns = n->since_ns;
	e->next_storage = n->next;
	set_document(e, n->document);
	add(q, e);
}

/* The notes of entries that are not deleted any more are forgotten at once: the next process knows
 * nothing about the other names of the storage. */
static bool drop_one(struct garbage *q, const struct storage *storage)
{
	uint32_t record = GC_NONE;
	struct garbage_entry *e;
	pthread_mutex_lock(&q->lock);
	DL_FOREACH(q->entries, e)
	if (e->state != GC_OBJECTS && e->state != GC_RENAMED && same_storage(&e->storage, storage))
		break;
	if (e) {
		record = e->record;
		e->record = GC_NONE;
		e->storage = (struct storage){.schema = NULL};
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

/* ---- what can be brought back ---- */

/* After GC_EXPECTED the name may not be gone. Then it leads to something, and nothing is put. */
static bool can_come_back(const struct garbage_entry *e)
{
	return e->storage.schema && e->document[0] &&
	       (e->state == GC_REMOVED || (e->state == GC_EXPECTED && !e->next_storage.schema));
}

static struct garbage_removed removed_of(const struct garbage *q, const struct garbage_entry *e)
{
	const uint64_t now = q->env->now(q->env);
	return (struct garbage_removed){.path = e->path,
					.document = e->document,
					.storage = &e->storage,
					.since_ns = e->since_ns,
					.left_ns = e->due > now ? e->due - now : 0};
}

int garbage_each_removed(struct garbage *q, int (*fn)(void *ctx, const struct garbage_removed *r),
			 void *ctx)
{
	struct garbage_entry *e;
	int rc = 0;
	pthread_mutex_lock(&q->lock);
	for (e = q->entries; e && !rc; e = e->next) {
		const struct garbage_removed r = removed_of(q, e);
		rc = can_come_back(e) ? fn(ctx, &r) : 0;
	}
	pthread_mutex_unlock(&q->lock);
	return rc;
}

struct garbage_entry *garbage_take_removed(struct garbage *q, const char *path,
					   struct garbage_removed *out)
{
	struct garbage_entry *e, *last = NULL;
	pthread_mutex_lock(&q->lock);
	DL_FOREACH(q->entries, e)
	if (can_come_back(e) && strcmp(e->path, path) == 0 &&
	    (!last || e->since_ns >= last->since_ns))
		last = e;
	if (last)
		DL_DELETE(q->entries, last);
	pthread_mutex_unlock(&q->lock);
	if (last)
		*out = removed_of(q, last);
	return last;
}

void garbage_restore(struct garbage *q, struct garbage_entry *e, bool is_back)
{
	if (!is_back) {
		insert(q, e);
		return;
	}
	forget(q, &e->record);
	entry_free(e);
}
