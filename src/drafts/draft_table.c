/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_table.h. */

/* With this, an insertion of uthash that fails leaves the entry's handle without a table, and the
 * process goes on. */
#define HASH_NONFATAL_OOM 1
#include "draft_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bucket/bucket.h>
#include <names/names.h>
#include <utlist.h>

enum { STAT_BLOCK = 512 };

/* ---- names that are held ---- */

static bool is_held_locked(const struct drafts *t, const char *name)
{
	for (const struct draft_hold *h = t->holds; name && h; h = h->next)
		if (strcmp(h->names[0], name) == 0 ||
		    (h->names[1] && strcmp(h->names[1], name) == 0))
			return true;
	return false;
}

static void hold_locked(struct drafts *t, struct draft_hold *h, const char *a, const char *b)
{
	*h = (struct draft_hold){.names = {a, b}, .next = t->holds};
	t->holds = h;
}

void draft_table_hold(struct drafts *t, struct draft_hold *h, const char *a, const char *b)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	while (is_held_locked(t, a) || is_held_locked(t, b))
		pthread_cond_wait(&t->changed, &t->lock);
	hold_locked(t, h, a, b);
	pthread_mutex_unlock(&t->lock);
}

static bool is_named(const struct file_draft *d)
{
	return d->life == DRAFT_NAMED || d->life == DRAFT_ENDING;
}

bool draft_table_hold_draft(struct file_draft *d, struct draft_hold *h)
{
	struct drafts *t = d->t;
	pthread_mutex_lock(&t->lock);
	/* The name may change while this waits. */
	while (is_named(d) && is_held_locked(t, d->name))
		pthread_cond_wait(&t->changed, &t->lock);
	const bool held = is_named(d);
	if (held)
		hold_locked(t, h, d->name, NULL);
	pthread_mutex_unlock(&t->lock);
	return held;
}

void draft_table_release(struct drafts *t, struct draft_hold *h)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	struct draft_hold **at = &t->holds;
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* ---- the life of a draft ---- */

struct file_draft *file_draft_new(struct drafts *t, enum draft_kind kind)
{
	struct file_draft *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->t = t;
	d->kind = kind;
	d->created_ns = env_wall(&t->bucket->env);
	d->refs = 1;
	/* A new file is stored even if nobody writes to it. */
	d->saved = kind == DRAFT_CHANGE ? 0 : UINT64_MAX;
	d->tried = d->waited = d->numbered = UINT64_MAX;
	atomic_init(&d->mtime_ns, d->created_ns);
	atomic_init(&d->lost_at, NOTHING_LOST);
	atomic_init(&d->bytes, NULL);
	pthread_mutex_init(&d->making, NULL);
	return d;
}

int draft_table_texts(struct draft_texts *x, const char *name, const struct names_node *n,
		      struct err *err)
{
	char version[COMMIT_VERSION];
	const int rc = commit_version_of(n, version);
	*x = (struct draft_texts){0};
	if (rc)
		return err_errno(err, rc, "%s", name);
	x->name = strdup(name);
	x->path = strdup(n ? n->path : name);
	x->seen = strdup(version);
	return x->name && x->path && x->seen ? 0 : err_no_memory(err);
}

/* From now on, the journal shows that it is left. */
static void close_left(struct file_draft *d, struct draft *bytes)
{
	draft_close(bytes);
	pthread_mutex_lock(&d->t->lock);
	LL_DELETE(d->t->leaving, d);
	pthread_mutex_unlock(&d->t->lock);
}

static void free_draft(struct file_draft *d)
{
	struct draft *bytes = atomic_load(&d->bytes);
	struct err err = ERR_INIT;
	if (bytes && d->life != DRAFT_LEFT && (!d->change || atomic_load(&d->is_emptied)))
		draft_commit_forget(d->t->bucket, bytes, &d->left);
	if (d->life == DRAFT_LEFT)
		close_left(d, bytes);
	else if (bytes && draft_drop(bytes, &err))
		log_warning(d->t->bucket->log, "journal: %s", err.msg);
	draft_change_free(d->change);
	draft_base_free(d->base);
	pthread_mutex_destroy(&d->making);
	free(d->name);
	free(d->path);
	free(d->seen);
	free(d->why);
	schema_document_unref(d->acls);
	free(d);
}

void file_draft_unref(struct file_draft *d)
{
	struct drafts *t = d->t;
	pthread_mutex_lock(&t->lock);
	assert(d->refs > 0);
	const bool last = --d->refs == 0;
	assert(!last || (!is_named(d) && d->writers == 0));
	if (last && d->by_version.tbl)
		HASH_DELETE(by_version, t->by_version, d);
	pthread_mutex_unlock(&t->lock);
	if (last)
		free_draft(d);
}

uint64_t file_draft_changes(const struct file_draft *d)
{
	struct draft *bytes = atomic_load(&d->bytes);
	struct draft_stat st = {0};
	if (bytes)
		draft_get_stat(bytes, &st);
	return st.changes;
}

void file_draft_sync(struct file_draft *d)
{
	struct draft *bytes = atomic_load(&d->bytes);
	struct err err = ERR_INIT;
	if (draft_sync(bytes, &err))
		log_warning(d->t->bucket->log,
			    "draft %s may not survive a crash of the machine: %s", draft_id(bytes),
			    err.msg);
}

void file_draft_stat(struct file_draft *d, struct engine_stat *st)
{
	struct draft *bytes = atomic_load(&d->bytes);
	struct draft_stat now = {.size = draft_base_size(d->base)};
	if (bytes)
		draft_get_stat(bytes, &now);
	*st = (struct engine_stat){
		.kind = ENGINE_PLAIN,
		.size = now.size,
		.size_exact = true,
		.blocks = div_up_u64(now.size, STAT_BLOCK),
		.mtime_ns = atomic_load(&d->mtime_ns),
		.ctime_ns = atomic_load(&d->mtime_ns),
		.mode = 0644,
		.version = d->version,
		.draft = true,
	};
}

/* ---- the table ---- */

struct file_draft *draft_table_find_locked(struct drafts *t, const char *name)
{
	struct file_draft *d;
	HASH_FIND(by_name, t->by_name, name, strlen(name), d);
	return d;
}

struct file_draft *draft_table_find_version_locked(struct drafts *t, uint64_t version)
{
	struct file_draft *d;
	HASH_FIND(by_version, t->by_version, &version, sizeof(version), d);
	return d;
}

static bool add_name_locked(struct file_draft *d)
{
	d->by_name.tbl = NULL;
	HASH_ADD_KEYPTR(by_name, d->t->by_name, d->name, strlen(d->name), d);
	d->life = d->by_name.tbl ? DRAFT_NAMED : DRAFT_DETACHED;
	return d->by_name.tbl;
}

/* Chooses a number that no other draft has. Versions of other files are hashes: none of them equals
 * 63 random bits. */
static void choose_version_locked(struct file_draft *d)
{
	const struct env *env = &d->t->bucket->env;
	do {
		env->random(env, &d->version, sizeof(d->version));
		d->version |= UINT64_C(1) << 63;
	} while (draft_table_find_version_locked(d->t, d->version));
}

int draft_table_add_locked(struct file_draft *d)
{
	choose_version_locked(d);
	HASH_ADD(by_version, d->t->by_version, version, sizeof(d->version), d);
	if (!d->by_version.tbl || !add_name_locked(d))
		return -ENOMEM;
	d->refs++;
	return 0;
}

void draft_table_unname_locked(struct file_draft *d)
{
	assert(is_named(d));
	HASH_DELETE(by_name, d->t->by_name, d);
	d->life = DRAFT_DETACHED;
	d->alone = false;
}

void draft_table_set_aside_locked(struct file_draft *d)
{
	draft_table_unname_locked(d);
	d->life = DRAFT_ASIDE;
	LL_PREPEND(d->t->aside, d);
}

void draft_table_leave_locked(struct file_draft *d)
{
	assert(!is_named(d) && d->writers == 0);
	d->life = DRAFT_LEFT;
	LL_PREPEND(d->t->leaving, d);
}

bool draft_table_rename_locked(struct file_draft *d, char *name)
{
	HASH_DELETE(by_name, d->t->by_name, d);
	free(d->name);
	d->name = name;
	const bool named = add_name_locked(d);
	d->alone = d->alone && named;
	return named;
}

static struct file_draft *take_aside(struct drafts *t, const char *name)
{
	pthread_mutex_lock(&t->lock);
	struct file_draft **at = &t->aside;
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	struct file_draft *d = *at;
	if (d) {
		*at = d->next;
		d->life = DRAFT_DETACHED;
	}
	pthread_mutex_unlock(&t->lock);
	return d;
}

void draft_table_drop_aside(struct drafts *t, const char *name)
{
	struct file_draft *d;
	while ((d = take_aside(t, name)))
		file_draft_unref(d);
}
