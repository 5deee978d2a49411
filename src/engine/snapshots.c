/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of live images.
 *
 *   slot       one for each domain that was opened: its current snapshot and the last facts
 *   build      one opening under way; whoever wants the same domain waits for it. What it came
 *              to is for those who came before it began: others begin another one, together
 *   snapshot   references: one for the slot while it is current, one for each opening
 *
 * A slot is idle when its current snapshot is held by nobody else; idle slots are in a list, the
 * longest unused first. Whoever only looks at a snapshot (snapshots_each()) leaves it where it is.
 * The lock guards all of this and is never held while an image or a domain is opened, asked or
 * freed: what a change leaves without reference is collected in a list and freed after the lock is
 * released.
 */
/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1
#include "snapshots.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "internal.h"

enum { STAT_BLOCK = 512 };

struct build {
	unsigned int refs;	    /* the builder and those who wait */
	struct snapshot_time began; /* nothing that it sees was asked for before */
	bool done;
	int code;
	struct err err;
	struct snapshot *snapshot; /* when code is 0; holds a reference */
};

struct slot {
	struct snapshot *current;
	struct build *build;
	uint64_t checked;	 /* when the asking began that found it current */
	uint64_t built;		 /* tick at which the last build began */
	bool stale;		 /* a reader has found since that it is not */
	struct engine_stat last; /* version 0: never opened */
	bool idle;
	struct slot *prev, *next; /* among the idle ones */
	UT_hash_handle hh;
	char path[];
};

struct snapshots {
	pthread_mutex_t lock;
	pthread_cond_t built;
	struct slot *slots; /* in order of first use */
	struct slot *idle;
	struct snapshot *all; /* live ones */
	unsigned int nidle;
	uint64_t idle_bytes, live, last_version, ticks;
	uint64_t idle_limit; /* bytes */
	struct budget *budget;
};

/* ---- references and idleness ---- */

static void free_snapshots(struct snapshot *list)
{
	struct snapshot *s, *next;
	LL_FOREACH_SAFE(list, s, next)
	{
		image_free(s->image);
		domain_unref(s->domain);
		free(s);
	}
}

static void set_idle_locked(struct snapshots *t, struct slot *slot, bool idle)
{
	if (slot->idle == idle)
		return;
	slot->idle = idle;
	if (idle) {
		DL_APPEND(t->idle, slot);
		t->nidle++;
		t->idle_bytes += slot->current->memory;
	} else {
		DL_DELETE(t->idle, slot);
		t->nidle--;
		t->idle_bytes -= slot->current->memory;
	}
}

static void ref_locked(struct snapshots *t, struct snapshot *s)
{
	s->refs++;
	if (s->slot)
		set_idle_locked(t, s->slot, false);
}

static void unref_locked(struct snapshots *t, struct snapshot *s, struct snapshot **garbage)
{
	if (--s->refs == 0) {
		t->live--;
		DL_DELETE2(t->all, s, live_prev, live_next);
		LL_PREPEND(*garbage, s);
	} else if (s->refs == 1 && s->slot) {
		set_idle_locked(t, s->slot, true);
	}
}

static void drop_current_locked(struct snapshots *t, struct slot *slot, struct snapshot **garbage)
{
	struct snapshot *s = slot->current;
	if (!s)
		return;
	set_idle_locked(t, slot, false);
	slot->current = NULL;
	s->slot = NULL;
	unref_locked(t, s, garbage);
}

static void trim_locked(struct snapshots *t, struct snapshot **garbage)
{
	while (t->idle && (t->nidle > SNAPSHOTS_IDLE || t->idle_bytes > t->idle_limit))
		drop_current_locked(t, t->idle, garbage);
	struct slot *slot, *next;
	HASH_ITER (hh, t->slots, slot, next) {
		if (HASH_COUNT(t->slots) <= SNAPSHOTS_REMEMBERED)
			break;
		if (slot->current || slot->build)
			continue;
		HASH_DEL(t->slots, slot);
		free(slot);
	}
}

/* The budget needs memory: the snapshot that was not used for longest goes. */
static bool give_memory(void *ctx)
{
	struct snapshots *t = ctx;
	struct snapshot *garbage = NULL;
	pthread_mutex_lock(&t->lock);
	while (t->idle && !garbage) /* a report may still look at one */
		drop_current_locked(t, t->idle, &garbage);
	pthread_mutex_unlock(&t->lock);
	const bool given = garbage != NULL;
	free_snapshots(garbage);
	return given;
}

struct snapshots *snapshots_new(struct budget *budget, uint64_t idle_limit)
{
	struct snapshots *t = calloc(1, sizeof(*t));
	if (t) {
		t->idle_limit = idle_limit;
		t->budget = budget;
		pthread_mutex_init(&t->lock, NULL);
		pthread_cond_init(&t->built, NULL);
		budget_add_holder(budget, &(struct budget_holder){.give = give_memory, .ctx = t});
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
	struct slot *slot, *next;
	HASH_ITER (hh, t->slots, slot, next) {
		drop_current_locked(t, slot, &garbage);
		HASH_DEL(t->slots, slot);
		free(slot);
	}
	free_snapshots(garbage);
	budget_remove_holder(t->budget, t);
	pthread_cond_destroy(&t->built);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- opening ---- */

/* The slot of a domain; NULL without memory. */
static struct slot *get_slot_locked(struct snapshots *t, const char *path)
{
	struct slot *slot = NULL;
	HASH_FIND_STR(t->slots, path, slot);
	if (slot)
		return slot;
	size_t n = strlen(path) + 1;
	slot = calloc(1, sizeof(*slot) + n);
	if (!slot)
		return NULL;
	memcpy(slot->path, path, n);
	HASH_ADD_STR(t->slots, path, slot);
	if (!slot->hh.tbl) {
		free(slot);
		return NULL;
	}
	return slot;
}

/* Renders a domain, and takes a reference to it. version 0: a new one. */
static int new_snapshot(struct engine *e, struct domain *domain, const char *mount_dir,
			uint64_t version, struct snapshot **out, struct err *err)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	struct image_options opt = {
		.flags = e->no_filters ? IMAGE_NO_FILTERS : 0,
		.domain_dir = mount_dir,
		.file_name = names_of_domain,
	};
	const struct chunk_source chunks = domain_chunk_source(domain);
	int rc = image_new(&e->env, e->cache, domain_tree(domain), &chunks, &opt, &s->image, err);
	if (rc) {
		free(s);
		if (rc == -ENOMEM)
			err_wrap(err, rc, "objects of %" PRIu64 " bytes", domain_memory(domain));
		return err_wrap(err, rc, "domain /%s", domain_path(domain));
	}
	s->domain = domain_ref(domain);
	s->refs = 1;
	s->owner = e->snapshots;
	s->version = version;
	s->sees_chunks = domain_sees_chunks(domain);
	s->memory = image_memory(s->image) + domain_memory(domain);
	s->st = (struct engine_stat){
		.kind = ENGINE_DOMAIN,
		.size = image_size(s->image),
		.size_exact = true,
		.blocks = div_up_u64(image_allocated(s->image), STAT_BLOCK),
		.mtime_ns = domain_modified_ns(domain),
		.ctime_ns = domain_modified_ns(domain),
		.mode = names_mode(domain_info(domain), false),
		.version = version,
	};
	*out = s;
	return 0;
}

/* old: current so far, or NULL; was_idle: nobody has it open. What comes out is old, or a new
 * snapshot with one reference. */
static int refresh(struct engine *e, const struct snapshot_domain *of, uint64_t new_version,
		   struct snapshot *old, bool was_idle, struct snapshot **out, struct err *err)
{
	struct domain *domain = NULL, *previous = old ? old->domain : NULL;
	const struct domain_hint hint = {
		.document = of->document,
		.is_fresh = of->asked.tick != 0,
		.previous = previous,
	};
	int rc = domain_open(&e->env, e->store, schema_all(), of->path, &hint, &domain, err);
	if (rc)
		return rc;
	if (domain == previous && (old->sees_chunks || !was_idle))
		*out = old;
	else
		/* Chunks may have changed where nobody looked: the same version, but no chunk
		 * that is remembered. The kernel drops its pages too (engine_file_cacheable). */
		rc = new_snapshot(e, domain, of->mount_dir,
				  domain == previous ? old->version : new_version, out, err);
	domain_unref(domain);
	return rc;
}

/* The result of a build becomes the slot's; the build gets a reference of its own. */
static void publish_locked(struct snapshots *t, struct slot *slot, struct build *b,
			   struct snapshot **garbage)
{
	if (b->code == 0 && b->snapshot != slot->current) {
		drop_current_locked(t, slot, garbage);
		slot->current = b->snapshot; /* with the reference that it was born with */
		b->snapshot->slot = slot;
		slot->last = b->snapshot->st;
		t->live++;
		DL_APPEND2(t->all, b->snapshot, live_prev, live_next);
	}
	if (b->code == 0) {
		ref_locked(t, b->snapshot);
		slot->checked = b->began.ns;
	}
	if (b->code == -ENOENT || b->code == -EISDIR) {
		drop_current_locked(t, slot, garbage);
		slot->last = (struct engine_stat){0};
	}
	slot->build = NULL;
	b->done = true;
	pthread_cond_broadcast(&t->built);
}

static struct snapshot_time time_locked(struct engine *e)
{
	return (struct snapshot_time){.tick = ++e->snapshots->ticks, .ns = engine_now(e)};
}

struct snapshot_time snapshots_time(struct engine *e)
{
	pthread_mutex_lock(&e->snapshots->lock);
	const struct snapshot_time now = time_locked(e);
	pthread_mutex_unlock(&e->snapshots->lock);
	return now;
}

/* The lock is held when it begins and when it returns, not between. */
static void build_locked(struct engine *e, struct slot *slot, struct build *b,
			 const struct snapshot_domain *domain, struct snapshot **garbage)
{
	struct snapshots *t = e->snapshots;
	struct snapshot *old = slot->current;
	bool was_idle = slot->idle;
	uint64_t version = ++t->last_version;
	b->refs = 1;
	/* What another build has seen meanwhile may be newer than the document. */
	struct snapshot_domain of = *domain;
	if (of.asked.tick < slot->built)
		of.asked = (struct snapshot_time){0};
	b->began = of.asked.tick ? of.asked : time_locked(e);
	slot->built = b->began.tick;
	slot->stale = false; /* what comes from here on, this build may not have seen */
	slot->build = b;     /* keeps the slot */
	if (old)
		ref_locked(t, old);
	pthread_mutex_unlock(&t->lock);

	b->code = refresh(e, &of, version, old, was_idle, &b->snapshot, &b->err);

	pthread_mutex_lock(&t->lock);
	publish_locked(t, slot, b, garbage);
	if (old)
		unref_locked(t, old, garbage);
}

/* Waits until nothing is under way that began before the caller came: what that saw may be older
 * than the opening that is asked for. NULL without memory. */
static struct slot *await_slot_locked(struct snapshots *t, const char *path)
{
	const uint64_t arrival = ++t->ticks;
	struct slot *slot = get_slot_locked(t, path);
	while (slot && slot->build && slot->build->began.tick < arrival) {
		pthread_cond_wait(&t->built, &t->lock);
		slot = get_slot_locked(t, path);
	}
	return slot;
}

/* Without asking, for as long as what an open found is said to be valid. */
static bool is_valid_locked(const struct engine *e, const struct slot *slot)
{
	return slot->current && !slot->stale && engine_now(e) - slot->checked < e->open_ttl_ns;
}

/* What a build came to, for one of those who hold it. Returns true when it is the last of them. */
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

int snapshots_open(struct engine *e, const struct snapshot_domain *domain, struct snapshot **out,
		   struct err *err)
{
	struct snapshots *t = e->snapshots;
	struct snapshot *garbage = NULL;
	struct build *mine = calloc(1, sizeof(*mine)), *last = NULL;
	int rc = -ENOMEM;
	pthread_mutex_lock(&t->lock);
	struct slot *slot = mine ? await_slot_locked(t, domain->path) : NULL;
	if (slot && !slot->build && is_valid_locked(e, slot)) {
		ref_locked(t, slot->current);
		*out = slot->current;
		rc = 0;
	} else if (slot) {
		struct build *b = slot->build;
		if (b) {
			b->refs++;
			while (!b->done)
				pthread_cond_wait(&t->built, &t->lock);
		} else {
			b = mine;
			mine = NULL;
			build_locked(e, slot, b, domain, &garbage);
		}
		rc = b->code;
		if (rc)
			err_copy(err, &b->err);
		last = take_result_locked(t, b, out, &garbage) ? b : NULL;
	}
	trim_locked(t, &garbage);
	pthread_mutex_unlock(&t->lock);
	free(last);
	free(mine);
	free_snapshots(garbage);
	return slot ? rc : err_set(err, -ENOMEM, "out of memory");
}

void snapshot_mark_stale(struct snapshot *s)
{
	struct snapshots *t = s->owner;
	pthread_mutex_lock(&t->lock);
	if (s->slot)
		s->slot->stale = true;
	pthread_mutex_unlock(&t->lock);
}

bool snapshots_recall(struct snapshots *t, const char *path, struct engine_stat *st)
{
	struct slot *slot = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_FIND_STR(t->slots, path, slot);
	bool known = slot && slot->last.version;
	if (known)
		*st = slot->last;
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

/* References to all live snapshots; *v NULL when there are none. */
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
		s->refs++; /* not ref_locked(): to be looked at is not to be used */
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
