/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finishes what earlier processes have begun: see draft_commit.h.
 *
 *   in the journal                 what happens
 *   a commit has begun             it is made again; then the draft is dropped
 *   … of a changed domain          its plan is completed, then the draft is dropped; without a
 *                                  plan it is left
 *   … and the bucket refused it    left: something else has the name for good
 *   a commit has ended             the draft is dropped if nothing was written later
 *   no commit has begun            left: nobody knows whether the program had finished
 *   in use, or it cannot be read   left
 *
 * Nothing of a draft that is left is deleted, and `hsimage recover` shows it. The storage that the
 * commit of a damaged draft may have put is garbage of the bucket until that draft is dropped.
 *
 * A commit that had begun while a program had the file open is made only if the file is complete
 * now: the program may have gone on writing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bucket/bucket.h>
#include <drafts/base_reader.h>
#include <drafts/draft_commit.h>
#include <journal/earlier.h>
#include <overlay/draft_plan.h>

#include "draft_table.h"

struct recovery {
	struct drafts *drafts;
	struct bucket *bucket;
	struct journal *j;
	const atomic_bool *cancelled;
	struct bytes items;	/* of struct item, for the drafts that no process has open */
	uint64_t left, refused; /* `refused` counts those of `left` that no line of the log names */
};

struct item {
	char id[JOURNAL_ID];
	char why[ERR_MAX]; /* the note of an earlier mount, which has logged it; see journal_item */
};

static bool was_cancelled(const struct recovery *r)
{
	return r->cancelled && atomic_load(r->cancelled);
}

static void leave(struct recovery *r, const char *id, const char *name, const char *why)
{
	r->left++;
	log_warning(r->bucket->log,
		    "draft %s%s%s is left in the journal: %s; see `hsimage recover list`", id,
		    name[0] ? " of " : "", name, why);
}

static int note_item(void *ctx, const struct journal_item *item)
{
	struct recovery *r = ctx;
	struct item found = {.id = ""};
	switch (item->state) {
	case JOURNAL_LEFT:
		memcpy(found.id, item->id, JOURNAL_ID);
		snprintf(found.why, sizeof(found.why), "%s", item->why);
		return bytes_append(&r->items, &found, sizeof(found));
	case JOURNAL_IN_USE:
		break; /* another mount has it open, and will commit it */
	case JOURNAL_LATER:
	case JOURNAL_UNREADABLE:
		leave(r, item->id, item->about ? item->about->name : "", item->why);
	}
	return 0;
}

/* What has changed in a domain is known from the plan of its commit, and only from that. What a
 * program has written after the commit had begun stays in the draft, which has no plan then. */
static int resume(const struct commit *c, struct commit_result *out, struct err *err)
{
	struct draft_stat stat;
	bool found;
	draft_get_stat(c->draft, &stat);
	int rc = draft_change_resume(c, &found, err);
	if (!rc && found && !stat.is_marked)
		rc = draft_remove_plan(c->draft, err);
	if (!rc && !stat.is_marked)
		return err_set(err, -EBUSY, "it was written to after its last commit had begun");
	if (!rc && !found)
		return err_set(err, -EBUSY,
			       "its commit was interrupted when it had changed nothing or "
			       "everything");
	out->kind = COMMIT_DOMAIN;
	return rc;
}

/* Commits the draft as it is in the journal. */
static int commit(struct recovery *r, struct draft *d, const struct commit_record *m,
		  struct commit_result *out, struct err *err)
{
	struct commit c = {.bucket = r->bucket,
			   .draft = d,
			   .number = m->number,
			   .is_last = m->is_last,
			   .cancelled = r->cancelled};
	int rc = store_check(r->bucket->store, err);
	if (!rc)
		rc = draft_seal(d, &c.snapshot, err);
	if (rc)
		return rc;
	rc = base_reader_is_domain(draft_get_about(d)) ? resume(&c, out, err)
						       : draft_commit(&c, out, err);
	draft_snapshot_close(c.snapshot);
	return rc;
}

/* Returns whether the bucket has what the draft says. Otherwise *err has the reason. */
static bool finish(struct recovery *r, struct draft *d, const char *note,
		   struct base_reader *beneath, struct err *err)
{
	const struct draft_about *about = draft_get_about(d);
	struct commit_result result = {.kind = COMMIT_WAITS};
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	const struct commit_record m = commit_record_decode(stat.mark);
	if (m.state == COMMIT_ENDED && stat.is_marked)
		return true;
	if (!commit_is_running(&m)) {
		auto_str struct str why = {0};
		commit_left_why(&stat, note, &why);
		err_set(err, -EBUSY, "%s", str_text(&why));
		return false;
	}
	/* For a domain that is changed, resume() decides. */
	if (!stat.is_marked && !base_reader_is_domain(about)) {
		err_set(err, -EBUSY, "it was written to after its last commit had begun");
		return false;
	}
	int rc = 0;
	if (!store_key_ok(about->path) || !store_key_ok(about->name))
		rc = err_set(err, -EINVAL, "\"%s\": no object can have this path", about->path);
	else if (about->kind == DRAFT_CHANGE && !base_reader_is_domain(about))
		rc = base_reader_open(beneath, r->bucket, about, err);
	if (!rc)
		rc = commit(r, d, &m, &result, err);
	if (!rc && result.kind == COMMIT_WAITS)
		rc = err_set(err, -EBUSY, "it is not complete: %s", result.kept);
	/* The next mount tries again, whatever the reason was. */
	if (rc && rc != -ECANCELED)
		draft_note_why(d, err->msg);
	return rc == 0;
}

/* Finishes a draft while nobody else changes what the name means. Otherwise closes it, so that the
 * next program that opens the file for writing finds it in the journal. */
static bool finish_alone(struct recovery *r, struct draft *d, const char *name, const char *note,
			 struct base_reader *beneath, struct err *err)
{
	struct draft_hold hold;
	struct engine_stat st;
	bool alone;
	draft_table_hold(r->drafts, &hold, name, NULL);
	/* A program has the file open for writing, or could not commit it in this mount. */
	const bool busy = drafts_stat(r->drafts, name, &st, &alone);
	if (busy)
		err_set(err, -EBUSY, "a program has written a file of this name since");
	const bool done = !busy && finish(r, d, note, beneath, err);
	if (!done)
		draft_close(d);
	draft_table_release(r->drafts, &hold);
	return done;
}

/* Leaves a draft that the bucket has refused. The process that got the refusal has logged and noted
 * why, unless it was killed before. */
static void leave_refused(struct recovery *r, struct draft *d, const struct item *item)
{
	static const char why[] = "another program has changed the file since it was opened for "
				  "writing";
	if (item->why[0]) {
		r->left++;
		r->refused++;
		return;
	}
	draft_note_why(d, why);
	leave(r, item->id, draft_get_about(d)->name, why);
}

static void recover_draft(struct recovery *r, const struct item *item)
{
	const char *id = item->id;
	struct base_reader beneath = {.base = NULL};
	const struct draft_beneath reader = base_reader_beneath(&beneath);
	struct draft *d;
	struct err err = ERR_INIT;
	char name[STORE_KEY_MAX + 1];
	const int rc = draft_open(r->j, id, &reader, &d, &err);
	if (rc == -ENOENT || rc == -EBUSY)
		return; /* another process has been faster */
	if (rc) {
		leave(r, id, "", err.msg);
		return;
	}
	if (commit_record_of(d).state == COMMIT_REFUSED) {
		leave_refused(r, d, item);
		draft_close(d);
		return;
	}
	snprintf(name, sizeof(name), "%s", draft_get_about(d)->name);
	if (!finish_alone(r, d, name, item->why, &beneath, &err)) {
		if (!was_cancelled(r))
			leave(r, id, name, err.msg);
	} else if (draft_drop(d, &err)) {
		leave(r, id, name, err.msg);
	} else {
		log_info(r->bucket->log, "committed what an earlier mount had begun: %s", name);
	}
	base_reader_close(&beneath);
}

static int note_earlier(void *ctx, const struct journal_earlier *item)
{
	struct recovery *r = ctx;
	if (item->is_draft)
		leave(r, item->id, item->name, EARLIER_DRAFT);
	else
		log_warning(r->bucket->log, "the journal has %s", EARLIER_NOTES);
	return 0;
}

void drafts_recover(struct bucket *bucket, struct drafts *t, struct journal *j,
		    const atomic_bool *cancelled, atomic_uint_fast64_t *left)
{
	struct recovery r = {.drafts = t, .bucket = bucket, .j = j, .cancelled = cancelled};
	struct err err = ERR_INIT;
	struct item item;
	int rc = journal_list(j, note_item, &r, &err);
	if (!rc && (rc = journal_list_earlier(j, note_earlier, &r)))
		err_errno(&err, rc, "cannot list the journal");
	if (rc)
		log_warning(bucket->log, "cannot look for drafts of earlier mounts: %s", err.msg);
	for (size_t at = 0; at < r.items.len && !was_cancelled(&r); at += sizeof(item)) {
		memcpy(&item, r.items.data + at, sizeof(item));
		recover_draft(&r, &item);
	}
	if (r.refused)
		log_info(
			bucket->log,
			"files that another program has changed, and that are left in the journal: "
			"%" PRIu64 "; see `hsimage recover list`",
			r.refused);
	atomic_fetch_add(left, r.left);
	bytes_release(&r.items);
}
