/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See draft_save.h. The name is held from before the snapshot until the result is entered, so one
 * commit runs at a time for each draft, and nobody renames or removes the file meanwhile. Programs
 * may go on writing: what they write is in no snapshot, and waits for the next commit.
 *
 * If an object lies beneath a draft, a commit may put a domain in its place. What lies beneath can
 * no longer be read then. So an HDF5 file of this kind is committed when nobody writes it any more,
 * and opening it meanwhile waits.
 */
#include "draft_save.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/repeat_time.h>
#include <base/thread.h>

#include <bucket/bucket.h>
#include <overlay/draft_plan.h>

enum { RETRY_SECONDS = 15 };

/* Returns whether the draft is a domain that is changed in place. */
static bool is_change(const struct file_draft *d)
{
	return d->change && !atomic_load(&d->is_emptied);
}

/* ---- the result of a commit ---- */

/* Replaces a text. If there is no memory, the old text stays. */
static void replace_text(char **text, const char *by)
{
	char *copy = strdup(by);
	if (!copy)
		return;
	free(*text);
	*text = copy;
}

/* Describes the draft to the journal if its version has changed. If the journal cannot be written,
 * the next commit tries it again. */
static int describe(struct file_draft *d, struct draft *bytes, struct err *err)
{
	if (strcmp(draft_get_about(bytes)->version, d->seen) == 0)
		return 0;
	pthread_mutex_lock(&d->making);
	int rc = draft_describe(bytes, d->path, d->name, d->seen, err);
	pthread_mutex_unlock(&d->making);
	return rc;
}

static void replace_base(struct file_draft *d, const struct commit_result *result, uint64_t size)
{
	const char *etag = strchr(result->version, ':');
	struct store_meta meta = {.size = size};
	if (!d->base || result->kind != COMMIT_OBJECT || !etag ||
	    strlen(etag + 1) >= sizeof(meta.etag))
		return;
	strcpy(meta.etag, etag + 1);
	draft_base_replace(d->base, d->path, &meta, NULL);
}

/* Enters the result of a commit. If there is no memory for the new version, the next commit fails
 * with -ESTALE. */
static void enter_success(struct file_draft *d, struct draft_snapshot *s,
			  const struct commit_result *result)
{
	d->saved = draft_snapshot_changes(s);
	pthread_mutex_lock(&d->t->lock);
	replace_text(&d->seen, result->version);
	replace_text(&d->path, result->path);
	const bool has_failed = d->failure;
	d->alone = false;
	/* The document has the list, and is what later changes of the list change. */
	struct schema_document *acls = d->acls;
	d->acls = NULL;
	d->failure = 0;
	d->committed = COMMIT_ENDED;
	const bool is_open = d->writers > 0;
	pthread_mutex_unlock(&d->t->lock);
	schema_document_unref(acls);
	atomic_fetch_add(&d->t->commits, 1);
	if (has_failed)
		draft_note_why(atomic_load(&d->bytes), NULL);
	draft_table_drop_aside(d->t, d->name);
	if (result->kind == COMMIT_OBJECT && result->kept[0])
		log_info(d->t->bucket->log, "/%s: stored as a plain file: %s", d->name,
			 result->kept);
	replace_base(d, result, draft_snapshot_source(s)->size);
	if (is_open)
		describe(d, atomic_load(&d->bytes), NULL);
}

static void enter_failure(struct file_draft *d, int rc, enum commit_state committed,
			  uint64_t changes, const struct err *why)
{
	struct draft *bytes = atomic_load(&d->bytes);
	pthread_mutex_lock(&d->t->lock);
	const bool is_known =
		d->failure && (rc == -ECANCELED || (d->failure == rc && d->tried == changes));
	/* If a repetition was interrupted, the cause is still that of the failure before. */
	if (!d->failure || rc != -ECANCELED) {
		d->failure = rc;
		d->committed = committed;
		replace_text(&d->why, why->msg);
	}
	if (commit_is_conflict(committed))
		d->alone = false;
	pthread_mutex_unlock(&d->t->lock);
	d->tried = changes;
	atomic_fetch_add(&d->t->commit_failures, 1);
	if (!is_known)
		log_warning(d->t->bucket->log,
			    "%s/%s %s not in the bucket: %s; draft %s of the journal has %s",
			    is_change(d) ? "the changes of " : "", d->name,
			    is_change(d) ? "are" : "is", why->msg, draft_id(bytes),
			    is_change(d) ? "them" : "it");
	draft_note_why(bytes, d->why);
	file_draft_sync(d);
}

/* ---- a commit ---- */

/* Decides whether the draft snapshot may be committed now. *waits is set if it has to wait for the
 * last close. For the change of a domain, draft_change_commit() decides, too.
 *
 * - If a write has failed and the bucket has a file of this name, only a complete HDF5 file is
 *   committed. Otherwise a part of the new file would replace the whole old one. The program knows
 *   of the failure, because its write has returned the error.
 * - If a plain object lies beneath, an HDF5 file waits. A domain would replace the object, whose
 *   bytes the programs that go on writing still need. */
static int check_snapshot(const struct file_draft *d, bool is_last, struct draft_snapshot *s,
			  bool *waits, struct err *err)
{
	const uint64_t lost = d->seen[0] ? atomic_load(&d->lost_at) : NOTHING_LOST;
	const bool takes = !is_last && d->base && !d->change;
	enum close_state state;
	char why[256];
	if (lost == NOTHING_LOST && !takes)
		return 0;
	int rc = close_state_read(draft_snapshot_source(s), &state, why, sizeof(why), err);
	if (rc)
		return rc;
	const bool lacks = lost != NOTHING_LOST && state != CLOSE_STATE_CLOSED;
	*waits = !is_last && (lacks || (takes && state != CLOSE_STATE_UNKNOWN));
	if (*waits || !lacks)
		return 0;
	return err_errno(err, atomic_load(&d->lost_code),
			 "it lacks a part, because a write at byte %" PRIu64 " has failed", lost);
}

static int commit_snapshot(struct file_draft *d, struct draft_snapshot *s, bool is_last,
			   bool *waits, enum commit_state *committed, struct err *err)
{
	/* The same bytes are put under the same keys as by the commit that has failed. */
	if (draft_snapshot_changes(s) != d->numbered)
		d->number++;
	d->numbered = draft_snapshot_changes(s);
	const struct commit c = {
		.bucket = d->t->bucket,
		.draft = atomic_load(&d->bytes),
		.snapshot = s,
		.number = d->number,
		.left = &d->left,
		.stored = &d->stored,
		.acls = d->acls ? &d->acls->info : NULL,
		.is_last = is_last,
		.cancelled = &d->t->cancelled,
	};
	struct commit_result result = {.kind = COMMIT_WAITS};
	int rc = check_snapshot(d, is_last, s, waits, err);
	if (!rc && !*waits && is_change(d))
		rc = draft_change_commit(d->change, &c, &result, err);
	else if (!rc && !*waits)
		rc = draft_commit(&c, &result, err);
	atomic_fetch_add(&d->t->scanned_objects, result.objects);
	atomic_fetch_add(&d->t->scanned_nodes, result.nodes);
	*committed = result.state;
	/* A put without an answer may arrive late, and must not replace what a program has changed
	 * in the domain by then. So a repetition has other storage, unless the bucket has no room
	 * for it. If the document was sent, all other requests have been answered. */
	const bool is_full = rc == -ENOSPC || rc == -EDQUOT;
	if (rc && !is_full && result.has_put && !d->left.may_be_seen)
		d->numbered = UINT64_MAX;
	if (rc)
		return rc;
	if (result.kind != COMMIT_WAITS) {
		enter_success(d, s, &result);
		return 0;
	}
	assert(!is_last);
	*waits = true;
	d->waited = draft_snapshot_changes(s);
	return 0;
}

static int commit_once(struct file_draft *d, bool is_last, bool *waits, struct err *err)
{
	struct draft *bytes = atomic_load(&d->bytes);
	struct draft_snapshot *s = NULL;
	struct err own = ERR_INIT;
	uint64_t changes = file_draft_changes(d);
	enum commit_state committed = COMMIT_NONE;
	int rc = store_check(d->t->bucket->store, &own);
	if (!rc)
		rc = describe(d, bytes, &own);
	/* The plan of a change does not matter any more. */
	if (!rc && d->change && !is_change(d))
		rc = draft_remove_plan(bytes, &own);
	if (!rc)
		rc = draft_seal(bytes, &s, &own);
	if (!rc) {
		changes = draft_snapshot_changes(s);
		rc = commit_snapshot(d, s, is_last, waits, &committed, &own);
	}
	draft_snapshot_close(s);
	if (!rc)
		return 0;
	if (committed == COMMIT_NONE)
		committed = commit_failure(rc);
	enter_failure(d, rc, committed, changes, &own);
	err_copy(err, &own);
	return rc;
}

static bool is_saved(const struct file_draft *d)
{
	return !atomic_load(&d->bytes) || file_draft_changes(d) == d->saved;
}

static int commit(struct file_draft *d, bool is_last, bool *waits, struct err *err)
{
	const bool is_pending = is_change(d) && draft_change_is_pending(d->change);
	int rc = commit_once(d, is_last, waits, err);
	/* The first call has only completed an earlier commit. */
	if (!rc && !*waits && is_pending && !is_saved(d))
		rc = commit_once(d, is_last, waits, err);
	return rc;
}

/* ---- when ---- */

static int save_held(struct file_draft *d, bool even_empty, bool *waits, struct err *err)
{
	const uint64_t changes = file_draft_changes(d);
	if (is_saved(d) || (changes == 0 && !even_empty))
		return 0;
	if (commit_is_conflict(d->committed))
		return err_set(err, d->failure, "%s", d->why ? d->why : "");
	*waits = changes == d->waited;
	return *waits ? 0 : commit(d, false, waits, err);
}

int draft_save(struct file_draft *d, bool even_empty, bool *waits, struct err *err)
{
	struct draft_hold hold;
	*waits = false;
	if (!draft_table_hold_draft(d, &hold))
		return 0;
	int rc = save_held(d, even_empty, waits, err);
	draft_table_release(d->t, &hold);
	return rc;
}

/* Makes programs that open the name wait for the end of this commit, if something lies beneath.
 * Returns false if a program has opened the draft again. */
static bool begin_last(struct file_draft *d)
{
	pthread_mutex_lock(&d->t->lock);
	const bool is_closed = d->writers == 0;
	if (is_closed && d->base)
		d->life = DRAFT_ENDING;
	pthread_mutex_unlock(&d->t->lock);
	return is_closed;
}

static void end_last(struct file_draft *d)
{
	struct drafts *t = d->t;
	pthread_mutex_lock(&t->lock);
	const bool conflict = commit_is_conflict(d->committed);
	const bool is_left = d->writers == 0 && is_change(d) && d->committed == COMMIT_UNFIT;
	const bool ends = d->writers == 0 && !conflict && (is_left || is_saved(d));
	d->life = DRAFT_NAMED;
	if (ends)
		draft_table_unname_locked(d);
	else if (d->writers == 0 && conflict)
		draft_table_set_aside_locked(d);
	if (is_left)
		draft_table_leave_locked(d);
	pthread_mutex_unlock(&t->lock);
	if (is_left)
		atomic_fetch_add(&t->left, 1);
	if (ends)
		file_draft_unref(d);
}

void draft_finish(struct file_draft *d, bool again)
{
	struct drafts *t = d->t;
	struct draft_hold hold;
	bool waits = false;
	struct repeat_scope call;
	if (!draft_table_hold_draft(d, &hold))
		return;
	repeat_begin(&call);
	if (begin_last(d)) {
		const bool has_failed = d->failure && file_draft_changes(d) == d->tried;
		if (!is_saved(d) && !commit_is_conflict(d->committed) && (again || !has_failed))
			commit(d, true, &waits, NULL);
		end_last(d);
	}
	repeat_end(&call);
	draft_table_release(t, &hold);
}

/* ---- the end ---- */

struct retry {
	struct drafts *t;
	bool ended; /* guarded by the table's lock */
};

/* Returns a reference to the named draft with the next version after `after`, or NULL. Commits that
 * have failed are among them. */
static struct file_draft *next_draft(struct drafts *t, uint64_t after)
{
	struct file_draft *d, *next, *found = NULL;
	pthread_mutex_lock(&t->lock);
	HASH_ITER (by_name, t->by_name, d, next) {
		if (d->version > after && (!found || d->version < found->version))
			found = d;
	}
	if (found)
		found->refs++;
	pthread_mutex_unlock(&t->lock);
	return found;
}

static void *retry(void *arg)
{
	struct retry *r = arg;
	struct file_draft *d;
	uint64_t version = 0;
	while (!atomic_load(&r->t->cancelled) && (d = next_draft(r->t, version))) {
		version = d->version;
		draft_finish(d, true);
		file_draft_unref(d);
	}
	pthread_mutex_lock(&r->t->lock);
	r->ended = true;
	pthread_cond_broadcast(&r->t->changed);
	pthread_mutex_unlock(&r->t->lock);
	return NULL;
}

void draft_retry_all(struct drafts *t)
{
	struct retry r = {.t = t};
	struct timespec end;
	pthread_t thread;
	int rc = 0;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += RETRY_SECONDS;
	if (!t->by_name || !thread_start(&thread, retry, &r))
		return;
	pthread_mutex_lock(&t->lock);
	while (!r.ended && rc == 0)
		rc = pthread_cond_timedwait(&t->changed, &t->lock, &end);
	pthread_mutex_unlock(&t->lock);
	atomic_store(&t->cancelled, true);
	pthread_join(thread, NULL);
}
