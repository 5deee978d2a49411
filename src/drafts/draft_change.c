/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_change.h. */
#include "draft_change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <update/complete.h>
#include <update/update.h>
#include <overlay/draft_plan.h>

#include "linked_data.h"
#include <bucket/bucket.h>
#include <names/names.h>
#include <storage/garbage.h>
#include <snapshots/size_cache.h>

struct draft_change {
	struct bucket *bucket;
	struct snapshot *snapshot;
	struct update_base *base;
	struct linked_data *linked;
	/* An enum close_state. CLOSE_STATE_CLOSED: a library has marked the file since it was
	 * opened, and it is not marked any more. CLOSE_STATE_UNKNOWN: no library has marked it. */
	atomic_int state;
};

struct draft_change *draft_change_new(struct bucket *bucket, struct snapshot *s)
{
	struct draft_change *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->bucket = bucket;
	c->snapshot = s;
	atomic_init(&c->state, CLOSE_STATE_UNKNOWN);
	c->base = update_base_new(s->domain, s->image);
	c->linked = linked_data_new(s->domain, s->image);
	if (c->base && c->linked)
		return c;
	draft_change_free(c);
	return NULL;
}

void draft_change_free(struct draft_change *c)
{
	if (!c)
		return;
	update_base_free(c->base);
	linked_data_free(c->linked);
	free(c);
}

/* ---- the mark in the superblock ---- */

/* Returns whether only the user block was written: the rest of the file is that of the image. */
static bool is_of_block(const struct draft_change *c, struct draft_snapshot *s)
{
	const struct image *img = c->snapshot->image;
	const uint64_t base = image_base(img), size = draft_snapshot_source(s)->size;
	return base > 0 && size == image_size(img) &&
	       draft_snapshot_next_written(s, base, size) == size;
}

int draft_change_check(struct draft_change *c, struct draft *d, uint64_t offset, uint64_t n,
		       bool *is_first, struct err *err)
{
	return linked_data_check(c->linked, d, offset, n, is_first, err);
}

void draft_change_wrote(struct draft_change *c, struct draft *d, uint64_t offset, size_t n)
{
	if (!close_state_may_mark(offset, n))
		return;
	const enum close_state now = close_state_of_mark(d);
	if (now == CLOSE_STATE_OPEN ||
	    (now == CLOSE_STATE_CLOSED && atomic_load(&c->state) == CLOSE_STATE_OPEN))
		atomic_store(&c->state, now);
}

/* ---- a commit ---- */

struct work {
	struct draft_change *c;
	const struct commit *commit;
	struct commit_run run;
};

static int begin(void *ctx, struct err *err)
{
	struct work *w = ctx;
	return commit_note(&w->run, COMMIT_BEGUN, err);
}

/* `removed` is the number of the entry in the log that lists objects of this domain. */
static void add_removed(struct bucket *bucket, const char *path, const char *root, uint32_t removed)
{
	struct storage storage;
	if (!schema_storage_of_root(bucket_new_domains(bucket), root, &storage, NULL))
		garbage_add_objects(bucket->garbage, path, &storage, removed);
}

static int update(struct work *w, struct commit_result *out, bool *is_unfit, struct err *err)
{
	struct bucket *bucket = w->c->bucket;
	const struct domain *d = w->c->snapshot->domain;
	const struct draft_about *about = draft_get_about(w->commit->draft);
	const struct update_options opt = {
		.env = &bucket->env,
		.store = bucket->store,
		.draft = w->commit->draft,
		.log = bucket->gc_log,
		.snapshot = w->commit->snapshot,
		.begin = begin,
		.ctx = w,
		.seed = commit_seed(draft_id(w->commit->draft), w->commit->number),
		.puts = bucket_puts(bucket, 0),
		.now_ns = env_wall(&bucket->env),
		.bucket = bucket->short_name,
		.cancelled = w->commit->cancelled,
		.keeps_plan = w->commit->is_asked,
		.must_stay = linked_data_is_refused,
		.must_stay_ctx = w->c->linked,
	};
	struct update_result result;
	domain_change_begin(&bucket->changes);
	int rc = domain_update(w->c->base, &opt, &result, err);
	domain_change_end(&bucket->changes);
	*is_unfit = rc && result.refused;
	out->objects = result.objects;
	out->nodes = result.nodes;
	if (!rc) {
		draft_snapshot_accept(w->commit->snapshot);
		linked_data_committed(w->c->linked, w->c->base);
		commit_end(&w->run, bucket->log);
		if (result.removed != GC_NONE)
			add_removed(bucket, domain_path(d), domain_document(d)->info.root,
				    result.removed);
	}
	snapshots_outdate(bucket->snapshots, about->path, result.documents);
	names_forget_size(bucket->names, about->name);
	size_cache_forget(bucket->size_cache, about->path);
	if (result.lists_changed)
		snapshots_forget(bucket->snapshots, about->path);
	return rc;
}

bool draft_change_is_pending(const struct draft_change *c)
{
	return update_is_pending(c->base);
}

/* Returns whether the commit waits for the last close. Only a library that marks the file tells
 * when it has closed it. The user block does not belong to the library, so its change does not
 * wait. */
static bool waits_for_close(const struct work *w)
{
	return !w->commit->is_last && atomic_load(&w->c->state) != CLOSE_STATE_CLOSED &&
	       !is_of_block(w->c, w->commit->snapshot);
}

/* Checks whether the file may be committed now, as far as its superblock tells. *waits is set if it
 * may be later. */
static int check_close_state(const struct work *w, struct commit_result *out, bool *waits,
			     bool *is_unfit, struct err *err)
{
	const struct commit *commit = w->commit;
	enum close_state state;
	*waits = waits_for_close(w);
	if (*waits)
		return 0;
	const int rc = close_state_read(draft_snapshot_source(commit->snapshot), &state, out->kept,
					sizeof(out->kept), err);
	const bool is_open = state == CLOSE_STATE_OPEN || state == CLOSE_STATE_LONGER;
	*waits = !rc && is_open && !commit->is_last;
	if (rc || *waits || state == CLOSE_STATE_CLOSED || (is_open && commit->is_asked))
		return rc;
	*is_unfit = true;
	if (state == CLOSE_STATE_UNKNOWN)
		return err_set(err, -EIO,
			       "it is no HDF5 file any more; remove the file first to replace a "
			       "domain by a plain file");
	return err_set(err, -EIO, "it is not complete: %s", out->kept);
}

int draft_change_commit(struct draft_change *c, const struct commit *commit,
			struct commit_result *out, struct err *err)
{
	struct work w = {.c = c,
			 .commit = commit,
			 .run = {.draft = commit->draft,
				 .is_last = commit->is_last,
				 .number = commit->number,
				 .oldest = commit->number,
				 .end = commit->number}};
	const struct draft_about *about = draft_get_about(commit->draft);
	bool waits, is_unfit = false;
	*out = (struct commit_result){.kind = COMMIT_WAITS};
	int rc = check_close_state(&w, out, &waits, &is_unfit, err);
	if (!rc && !waits)
		rc = update(&w, out, &is_unfit, err);
	if (rc)
		commit_go(&w.run, is_unfit ? COMMIT_UNFIT : commit_failure(rc));
	out->state = w.run.state;
	if (rc || waits)
		return rc;
	out->kind = COMMIT_DOMAIN;
	snprintf(out->version, sizeof(out->version), "%s", about->version);
	snprintf(out->path, sizeof(out->path), "%s", about->path);
	return 0;
}

int draft_change_resume(const struct commit *commit, bool *found, struct err *err)
{
	struct plan plan;
	struct apply_result result;
	uint32_t removed;
	const char *path = draft_get_about(commit->draft)->path;
	struct err why = ERR_INIT;
	int rc = draft_get_plan(commit->draft, &plan, &why);
	*found = rc != -ENOENT;
	if (rc && *found)
		err_copy(err, &why);
	if (rc)
		return *found ? rc : 0;
	const struct apply apply = {.env = &commit->bucket->env,
				    .store = commit->bucket->store,
				    .draft = commit->draft,
				    .snapshot = commit->snapshot,
				    .plan = &plan,
				    .is_repeated = true,
				    .puts = bucket_puts(commit->bucket, 0),
				    .cancelled = commit->cancelled};
	const struct complete complete = {
		.apply = &apply, .schema = bucket_new_domains(commit->bucket), .path = path};
	domain_change_begin(&commit->bucket->changes);
	rc = complete_run(&complete, &result, err);
	if (rc == -ESTALE)
		complete_withdraw(&complete);
	domain_change_end(&commit->bucket->changes);
	if (!rc)
		rc = apply_note_removed(&apply, commit->bucket->gc_log, path, &removed, err);
	if (!rc && removed != GC_NONE)
		add_removed(commit->bucket, path, plan.subject.root, removed);
	plan_release(&plan);
	snapshots_forget(commit->bucket->snapshots, path);
	return rc;
}
