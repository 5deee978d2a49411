/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of snapshots.
 *
 *   entry      one for each domain that was opened: its current snapshot, and its attributes
 *   build      in progress: a thread checks the domain in the bucket and makes a snapshot if the
 *              current one is stale. Other callers for the domain wait. Callers that arrived
 *              before the build began take its result; later callers share the next build
 *   puts       of an entry: what commits have put since the last build. The next build takes them
 *   snapshot   has a reference of the entry while it is current, and one for each open
 *
 * An entry is idle when only the entry refers to its current snapshot. Idle entries are in a list,
 * the longest unused first. snapshots_each() does not change that order.
 *
 * The lock guards all of this. It is not held while a domain is opened or checked, nor while an
 * image or a domain is freed: snapshots without references are collected in a list, which is freed
 * after the lock is released.
 */
/* With this, an insertion of uthash that fails leaves the entry's handle without a table, and the
 * process goes on. */
#define HASH_NONFATAL_OOM 1
#include <snapshots/snapshots.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include <base/repeat_time.h>
#include <bucket/bucket.h>
#include "snapshot_build.h"

struct build {
	unsigned int refs;	    /* the building thread and the waiting ones */
	struct snapshot_time began; /* all that it reads was requested after this */
	bool done, may_pass;
	int code;
	struct err err;
	struct snapshot *snapshot; /* when code is 0; holds a reference */
};

struct snapshot_entry {
	struct snapshot *current;
	struct build *build;
	uint64_t checked;  /* start of the last check that found `current` valid; ns */
	uint64_t built;	   /* tick at which the last build began */
	uint64_t outdated; /* tick at which another version was last known to exist; 0: never */
	bool stale;	   /* that was after the last build began */
	struct domain_puts *puts; /* NULL if none are known */
	struct engine_stat last;  /* of the snapshot that was opened last; version 0 if none was */
	uint64_t listed;	  /* of the same */
	bool idle;
	struct snapshot_entry *prev, *next; /* in the list of idle entries */
	UT_hash_handle hh;
	char path[];
};

struct snapshots {
	pthread_mutex_t lock;
	pthread_cond_t built;
	struct snapshot_entry *entries; /* in order of first use */
	struct snapshot_entry *idle;
	struct snapshot *all;
	unsigned int nidle, nputs; /* entries that are idle; that have puts */
	uint64_t idle_bytes, live, last_version, ticks;
	uint64_t outdated;   /* the last one of all entries that are not remembered any more */
	uint64_t idle_limit; /* bytes */
	struct bucket *bucket;
};

/* ---- references and idleness ---- */

static void free_snapshots(struct snapshot *list)
{
	struct snapshot *s, *next;
	LL_FOREACH_SAFE(list, s, next)
	{
		image_unref(s->image);
		domain_unref(s->domain);
		free(s);
	}
}

static void set_idle_locked(struct snapshots *t, struct snapshot_entry *entry, bool idle)
{
	if (entry->idle == idle)
		return;
	entry->idle = idle;
	if (idle) {
		DL_APPEND(t->idle, entry);
		t->nidle++;
		t->idle_bytes += entry->current->memory;
	} else {
		DL_DELETE(t->idle, entry);
		t->nidle--;
		t->idle_bytes -= entry->current->memory;
	}
}

static void ref_locked(struct snapshots *t, struct snapshot *s)
{
	s->refs++;
	if (s->entry)
		set_idle_locked(t, s->entry, false);
}

static void unref_locked(struct snapshots *t, struct snapshot *s, struct snapshot **garbage)
{
	if (--s->refs == 0) {
		t->live--;
		DL_DELETE2(t->all, s, live_prev, live_next);
		LL_PREPEND(*garbage, s);
	} else if (s->refs == 1 && s->entry) {
		set_idle_locked(t, s->entry, true);
	}
}

static void drop_current_locked(struct snapshots *t, struct snapshot_entry *entry,
				struct snapshot **garbage)
{
	struct snapshot *s = entry->current;
	if (!s)
		return;
	set_idle_locked(t, entry, false);
	entry->current = NULL;
	s->entry = NULL;
	unref_locked(t, s, garbage);
}

static struct domain_puts *take_puts_locked(struct snapshots *t, struct snapshot_entry *entry)
{
	struct domain_puts *puts = entry ? entry->puts : NULL;
	if (puts) {
		entry->puts = NULL;
		t->nputs--;
	}
	return puts;
}

/* Takes the puts of the entry that was used first. */
static struct domain_puts *take_any_puts_locked(struct snapshots *t)
{
	struct snapshot_entry *entry, *next;
	HASH_ITER (hh, t->entries, entry, next)
		if (entry->puts)
			return take_puts_locked(t, entry);
	return NULL;
}

/* The snapshot that was used last stays, however large it is, until the budget needs the memory:
 * without the versions of its documents, the next open would have to read all of them again. */
static void trim_locked(struct snapshots *t, struct snapshot **garbage)
{
	while (t->nidle > SNAPSHOTS_IDLE || (t->nidle > 1 && t->idle_bytes > t->idle_limit))
		drop_current_locked(t, t->idle, garbage);
	struct snapshot_entry *entry, *next;
	HASH_ITER (hh, t->entries, entry, next) {
		if (HASH_COUNT(t->entries) <= SNAPSHOTS_REMEMBERED)
			break;
		if (entry->current || entry->build || entry->puts)
			continue;
		t->outdated = max_u64(t->outdated, entry->outdated);
		HASH_DEL(t->entries, entry);
		free(entry);
	}
}

/* Called when the budget needs memory. Drops what commits have put, and then the least recently
 * used idle snapshot. */
static bool drop_oldest_idle(void *ctx)
{
	struct snapshots *t = ctx;
	struct snapshot *garbage = NULL;
	pthread_mutex_lock(&t->lock);
	struct domain_puts *puts = take_any_puts_locked(t);
	while (!puts && t->idle && !garbage) /* a report may have a reference to one */
		drop_current_locked(t, t->idle, &garbage);
	pthread_mutex_unlock(&t->lock);
	const bool given = puts || garbage;
	domain_puts_free(puts);
	free_snapshots(garbage);
	return given;
}

struct snapshots *snapshots_new(struct bucket *bucket, uint64_t idle_limit)
{
	struct snapshots *t = calloc(1, sizeof(*t));
	if (t) {
		t->idle_limit = idle_limit;
		t->bucket = bucket;
		pthread_mutex_init(&t->lock, NULL);
		pthread_cond_init(&t->built, NULL);
		budget_add_holder(
			bucket->env.budget,
			&(struct budget_holder){.free_metadata = drop_oldest_idle, .ctx = t});
	}
	return t;
}

void snapshot_close(struct snapshot *s)
{
	if (!s)
		return;
	struct snapshots *t = s->owner;
	struct snapshot *garbage = NULL;
	pthread_mutex_lock(&t->lock);
	unref_locked(t, s, &garbage);
	trim_locked(t, &garbage);
	pthread_mutex_unlock(&t->lock);
	free_snapshots(garbage);
}

void snapshots_free(struct snapshots *t)
{
	if (!t)
		return;
	struct snapshot *garbage = NULL;
	struct snapshot_entry *entry, *next;
	HASH_ITER (hh, t->entries, entry, next) {
		drop_current_locked(t, entry, &garbage);
		domain_puts_free(entry->puts);
		HASH_DEL(t->entries, entry);
		free(entry);
	}
	free_snapshots(garbage);
	budget_remove_holder(t->bucket->env.budget, t);
	pthread_cond_destroy(&t->built);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- opening ---- */

/* Finds or makes the entry of a domain. Returns NULL if out of memory. */
static struct snapshot_entry *get_entry_locked(struct snapshots *t, const char *path)
{
	struct snapshot_entry *entry = NULL;
	HASH_FIND_STR(t->entries, path, entry);
	if (entry)
		return entry;
	size_t n = strlen(path) + 1;
	entry = calloc(1, sizeof(*entry) + n);
	if (!entry)
		return NULL;
	memcpy(entry->path, path, n);
	HASH_ADD_STR(t->entries, path, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return NULL;
	}
	return entry;
}

/* Makes the result of a build the entry's current snapshot. The build keeps a reference, too. */
static void publish_locked(struct snapshots *t, struct snapshot_entry *entry, struct build *b,
			   struct snapshot **garbage)
{
	if (b->code == 0 && b->snapshot != entry->current) {
		drop_current_locked(t, entry, garbage);
		entry->current = b->snapshot; /* takes over the first reference */
		b->snapshot->owner = t;
		b->snapshot->entry = entry;
		t->live++;
		DL_APPEND2(t->all, b->snapshot, live_prev, live_next);
	}
	if (b->code == 0) {
		ref_locked(t, b->snapshot);
		entry->checked = b->began.ns;
	}
	if (b->code == -ENOENT || b->code == -EISDIR) {
		drop_current_locked(t, entry, garbage);
		entry->last = (struct engine_stat){0};
	}
	entry->build = NULL;
	b->done = true;
	pthread_cond_broadcast(&t->built);
}

static struct snapshot_time time_locked(struct snapshots *t)
{
	return (struct snapshot_time){.tick = ++t->ticks, .ns = env_now(&t->bucket->env)};
}

struct snapshot_time snapshots_time(struct snapshots *t)
{
	pthread_mutex_lock(&t->lock);
	const struct snapshot_time now = time_locked(t);
	pthread_mutex_unlock(&t->lock);
	return now;
}

/* Builds in the caller's thread. Releases the lock during the requests. */
static void build_locked(struct snapshots *t, struct snapshot_entry *entry, struct build *b,
			 const struct snapshot_domain *domain, struct snapshot **garbage)
{
	struct snapshot *old = entry->current;
	bool was_idle = entry->idle;
	uint64_t version = ++t->last_version;
	b->refs = 1;
	/* If another build has begun since the look-up, it may have read a newer document; and
	 * there is one if the domain was outdated since. */
	struct snapshot_domain of = *domain;
	if (of.requested.tick < max_u64(entry->built, max_u64(entry->outdated, t->outdated)))
		of.requested = (struct snapshot_time){0};
	b->began = of.requested.tick ? of.requested : time_locked(t);
	entry->built = b->began.tick;
	entry->stale = false; /* if a read sets it from now on, the next open checks again */
	entry->build = b;     /* while it is set, the entry is not freed */
	struct domain_puts *puts = take_puts_locked(t, entry);
	if (old)
		ref_locked(t, old);
	pthread_mutex_unlock(&t->lock);

	/* Others may wait for it, too. */
	struct repeat_scope scope;
	repeat_begin_shared(&scope);
	b->code = snapshot_refresh(t->bucket, &of, version, old, was_idle, puts, &b->snapshot,
				   &b->may_pass, &b->err);
	repeat_end(&scope);
	domain_puts_free(puts);

	pthread_mutex_lock(&t->lock);
	publish_locked(t, entry, b, garbage);
	if (old)
		unref_locked(t, old, garbage);
}

/* Waits for a build that began before this call, because it may have read an older version. Returns
 * the entry, or NULL if out of memory. */
static struct snapshot_entry *wait_for_entry_locked(struct snapshots *t, const char *path)
{
	const uint64_t arrival = ++t->ticks;
	struct snapshot_entry *entry = get_entry_locked(t, path);
	while (entry && entry->build && entry->build->began.tick < arrival) {
		pthread_cond_wait(&t->built, &t->lock);
		entry = get_entry_locked(t, path);
	}
	return entry;
}

/* Returns whether an open needs no request to the bucket. */
static bool is_valid_locked(const struct snapshots *t, const struct snapshot_entry *entry)
{
	return entry->current && !entry->stale &&
	       env_now(&t->bucket->env) - entry->checked < t->bucket->open_ttl_ns;
}

/* Drops the caller's reference to a finished build, after taking its snapshot. Returns true if it
 * was the last reference. */
static bool take_result_locked(struct snapshots *t, struct build *b, struct snapshot **out,
			       struct snapshot **garbage)
{
	if (b->code == 0) {
		ref_locked(t, b->snapshot);
		*out = b->snapshot;
	}
	if (--b->refs)
		return false;
	if (b->code == 0)
		unref_locked(t, b->snapshot, garbage);
	return true;
}

/* Remembers the attributes of a snapshot that a program has opened. */
static void remember_locked(struct snapshots *t, const char *path, const struct snapshot *s)
{
	struct snapshot_entry *entry = NULL;
	HASH_FIND_STR(t->entries, path, entry);
	if (!entry || entry->last.version == s->version)
		return;
	entry->last = s->st;
	entry->listed = s->listed;
}

int snapshots_open(struct snapshots *t, const struct snapshot_domain *domain, struct snapshot **out,
		   struct err *err)
{
	struct snapshot *garbage = NULL;
	struct build *mine = calloc(1, sizeof(*mine)), *unused = NULL;
	int rc = -ENOMEM;
	pthread_mutex_lock(&t->lock);
	struct snapshot_entry *entry = mine ? wait_for_entry_locked(t, domain->path) : NULL;
	if (entry && !entry->build && is_valid_locked(t, entry)) {
		ref_locked(t, entry->current);
		*out = entry->current;
		rc = 0;
	} else if (entry) {
		struct build *b = entry->build;
		if (b) {
			b->refs++;
			while (!b->done)
				pthread_cond_wait(&t->built, &t->lock);
		} else {
			b = mine;
			mine = NULL;
			build_locked(t, entry, b, domain, &garbage);
		}
		rc = b->code;
		if (rc)
			err_copy(err, &b->err);
		if (rc && domain->may_pass)
			*domain->may_pass = b->may_pass;
		unused = take_result_locked(t, b, out, &garbage) ? b : NULL;
	}
	if (rc == 0 && !domain->is_stat)
		remember_locked(t, domain->path, *out);
	trim_locked(t, &garbage);
	pthread_mutex_unlock(&t->lock);
	free(unused);
	free(mine);
	free_snapshots(garbage);
	return entry ? rc : err_no_memory(err);
}

void snapshots_keep(struct snapshots *t, const char *path, const struct snapshot_time *began,
		    struct domain *domain, struct image *image)
{
	struct snapshot *garbage = NULL, *s = snapshot_new(t->bucket, domain, image, 0);
	if (!s)
		return;
	pthread_mutex_lock(&t->lock);
	struct snapshot_entry *entry = get_entry_locked(t, path);
	s->owner = t;
	t->live++;
	DL_APPEND2(t->all, s, live_prev, live_next);
	if (entry && !entry->current && !entry->build && !entry->puts &&
	    entry->built < began->tick) {
		s->version = s->st.version = ++t->last_version;
		entry->current = s;
		s->entry = entry;
		entry->stale = true; /* a change of this process may have been missed */
		set_idle_locked(t, entry, true);
	} else {
		unref_locked(t, s, &garbage);
	}
	trim_locked(t, &garbage);
	pthread_mutex_unlock(&t->lock);
	free_snapshots(garbage);
}

static void outdate_locked(struct snapshots *t, struct snapshot_entry *entry)
{
	entry->stale = true;
	entry->outdated = ++t->ticks;
}

/* The same for a path that may have no entry. An open whose look-up has ended may be about to make
 * it. needed: a full table gets the entry, too. Returns the entry, or NULL if there is none. */
static struct snapshot_entry *outdate_path_locked(struct snapshots *t, const char *path,
						  bool needed)
{
	struct snapshot_entry *entry = NULL;
	HASH_FIND_STR(t->entries, path, entry);
	/* An entry that was never opened must not displace one whose size is remembered. */
	if (!entry && (needed || HASH_COUNT(t->entries) < SNAPSHOTS_REMEMBERED))
		entry = get_entry_locked(t, path);
	if (entry) {
		outdate_locked(t, entry);
		entry->last = (struct engine_stat){0};
	} else {
		t->outdated = ++t->ticks;
	}
	return entry;
}

void snapshot_mark_stale(struct snapshot *s)
{
	struct snapshots *t = s->owner;
	pthread_mutex_lock(&t->lock);
	if (s->entry)
		outdate_locked(t, s->entry);
	pthread_mutex_unlock(&t->lock);
}

void snapshots_forget(struct snapshots *t, const char *path)
{
	struct snapshot *garbage = NULL;
	pthread_mutex_lock(&t->lock);
	struct snapshot_entry *entry = outdate_path_locked(t, path, false);
	struct domain_puts *puts = take_puts_locked(t, entry);
	/* A build may be about to find that the current snapshot is still valid. */
	if (entry && !entry->build)
		drop_current_locked(t, entry, &garbage);
	trim_locked(t, &garbage);
	pthread_mutex_unlock(&t->lock);
	domain_puts_free(puts);
	free_snapshots(garbage);
}

/* Keeps what was put. Returns puts for the caller to free, or NULL. */
static struct domain_puts *keep_puts_locked(struct snapshots *t, struct snapshot_entry *entry,
					    struct domain_puts *puts)
{
	struct domain_puts *dropped;
	if (!puts || entry->puts)
		return puts;
	dropped = t->nputs >= SNAPSHOTS_PUTS ? take_any_puts_locked(t) : NULL;
	entry->puts = puts;
	t->nputs++;
	return dropped;
}

void snapshots_outdate(struct snapshots *t, const char *path, struct domain_puts *puts)
{
	struct snapshot *garbage = NULL;
	struct snapshot_entry *entry = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->entries, path, entry);
	struct domain_puts *earlier = take_puts_locked(t, entry);
	pthread_mutex_unlock(&t->lock);
	/* The lock is not held, because this charges the budget. A build that begins meanwhile
	 * reads more than it needs. */
	puts = domain_puts_join(earlier, puts);
	pthread_mutex_lock(&t->lock);
	/* If nothing of the domain is known, a part of it is of no use. */
	const bool has_all = puts && domain_puts_is_all(puts);
	entry = outdate_path_locked(t, path, has_all);
	if (entry && (entry->current || entry->build || has_all))
		puts = keep_puts_locked(t, entry, puts);
	trim_locked(t, &garbage);
	pthread_mutex_unlock(&t->lock);
	domain_puts_free(puts);
	free_snapshots(garbage);
}

bool snapshots_has(struct snapshots *t, const char *path)
{
	const struct snapshot_entry *entry = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->entries, path, entry);
	const bool has = entry && (entry->current || entry->puts);
	pthread_mutex_unlock(&t->lock);
	return has;
}

void snapshots_forget_last(struct snapshots *t, const char *path, uint64_t version)
{
	struct snapshot_entry *entry = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->entries, path, entry);
	if (entry && entry->last.version == version) {
		entry->last = (struct engine_stat){0};
		outdate_locked(t, entry);
	}
	pthread_mutex_unlock(&t->lock);
}

void snapshots_note_blocks(struct snapshots *t, const struct snapshot *s)
{
	struct snapshot_entry *entry = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->entries, domain_path(s->domain), entry);
	if (entry && entry->last.version == s->version)
		snapshot_blocks(s, &entry->last);
	pthread_mutex_unlock(&t->lock);
}

void snapshots_set_time(struct snapshots *t, const char *path, int64_t mtime_ns)
{
	struct snapshot_entry *entry = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->entries, path, entry);
	if (entry && entry->last.version && !entry->listed) {
		entry->last.mtime_ns = entry->last.ctime_ns = mtime_ns;
		entry->last.unchecked = false;
	}
	pthread_mutex_unlock(&t->lock);
}

bool snapshots_recall(struct snapshots *t, const char *path, struct engine_stat *st,
		      uint64_t *listed)
{
	struct snapshot_entry *entry = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->entries, path, entry);
	bool known = entry && entry->last.version;
	if (known) {
		*st = entry->last;
		*listed = entry->listed;
	}
	pthread_mutex_unlock(&t->lock);
	return known;
}

uint64_t snapshots_live(struct snapshots *t)
{
	pthread_mutex_lock(&t->lock);
	uint64_t live = t->live;
	pthread_mutex_unlock(&t->lock);
	return live;
}

/* Takes references to all snapshots. *v is NULL if there are none. */
static int hold_all(struct snapshots *t, struct snapshot ***v, size_t *n)
{
	struct snapshot *s;
	*v = NULL;
	*n = 0;
	pthread_mutex_lock(&t->lock);
	if (t->live)
		*v = calloc(t->live, sizeof(struct snapshot *));
	DL_FOREACH2(*v ? t->all : NULL, s, live_next)
	{
		s->refs++; /* not ref_locked(): a report does not count as a use */
		(*v)[(*n)++] = s;
	}
	const bool failed = t->live && !*v;
	pthread_mutex_unlock(&t->lock);
	return failed ? -ENOMEM : 0;
}

int snapshots_each(struct snapshots *t, snapshots_fn fn, void *arg)
{
	struct snapshot **v, *garbage = NULL;
	size_t n;
	int rc = hold_all(t, &v, &n);
	for (size_t i = 0; !rc && i < n; i++)
		rc = fn(arg, v[i]);
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++)
		unref_locked(t, v[i], &garbage);
	trim_locked(t, &garbage);
	pthread_mutex_unlock(&t->lock);
	free_snapshots(garbage);
	free(v);
	return rc;
}
