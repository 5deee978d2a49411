/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits a draft that an earlier process has left, because a person asks for it: see
 * draft_commit.h.
 *
 *   in the journal                         what happens
 *   a commit has ended, and nothing was    nothing: the bucket has it
 *   written later
 *   a plan                                 it is completed
 *   a domain that was changed in place     if the domain is as it was: a complete scan of the file,
 *                                          then as the commit of a mount
 *   another file                           as the commit of a mount, if the bucket has what it had
 *                                          when the file was opened
 *
 * A scan without a problem does not prove that a program had finished: what killed programs leave
 * can nearly always be read. Only the person can decide that the data are right.
 *
 * If the process is killed, the draft is in one of these states. Each can be committed again.
 *
 *   before the mark is durable      as it was
 *   after it, and before the plan   a commit has begun; the bucket is as it was
 *   after the plan                  the next mount, or the next call, completes it
 *   after the end                   the next mount, or the next call, drops the draft
 */

#include <errno.h>

#include <bucket/bucket.h>
#include <drafts/base_reader.h>
#include <h5file/h5file.h>
#include <overlay/draft_plan.h>

#include "draft_base.h"
#include "draft_change.h"

/* ---- the file ---- */

/* Reads all structures of the file, also those that the program has not written. */
static int check_file(const struct bucket *bucket, struct draft_snapshot *s, struct err *err)
{
	const struct h5file_options opt = {.budget = bucket->env.budget, .claim_chunks = true};
	struct h5file *f;
	int rc = h5file_open(draft_snapshot_source(s), &opt, &f, err);
	if (rc)
		return rc;
	if (h5file_problems_of(f, H5FILE_DAMAGED)) {
		const struct h5file_problem *p = h5file_first_problem(f, H5FILE_DAMAGED);
		rc = err_set(err, -EIO, "it is damaged: %s: %s",
			     p && *p->path ? p->path : "the file",
			     p ? p->text : "a part of it cannot be read");
	}
	h5file_close(f);
	return rc;
}

/* ---- a domain that was changed in place ---- */

/* Completes the plan, if there is one. What was written after the plan belongs to another state of
 * the domain. */
static int resume_plan(const struct commit *c, bool *found, struct err *err)
{
	struct draft_stat stat;
	draft_get_stat(c->draft, &stat);
	int rc = draft_change_resume(c, found, err);
	if (rc || !*found || stat.is_marked)
		return rc;
	rc = draft_remove_plan(c->draft, err);
	return rc ? rc
		  : err_set(err, -EBUSY,
			    "its interrupted commit is complete now, but what was written to it "
			    "later cannot be committed, because the domain has changed");
}

static int change_domain(struct commit *c, struct base_reader *beneath, struct commit_result *out,
			 struct err *err)
{
	int rc = base_reader_open(beneath, c->bucket, draft_get_about(c->draft), err);
	if (!rc)
		rc = draft_resume(c->draft, err);
	if (rc)
		return rc;
	struct draft_change *change =
		draft_change_new(c->bucket, draft_base_snapshot(beneath->base));
	if (!change)
		return err_no_memory(err);
	rc = check_file(c->bucket, c->snapshot, err);
	if (!rc)
		rc = draft_change_commit(change, c, out, err);
	draft_change_free(change);
	return rc;
}

static int commit_change(struct commit *c, struct base_reader *beneath, struct commit_result *out,
			 struct err *err)
{
	bool found = false;
	int rc = draft_seal(c->draft, &c->snapshot, err);
	if (!rc)
		rc = resume_plan(c, &found, err);
	if (!rc && found)
		out->kind = COMMIT_DOMAIN;
	else if (!rc)
		rc = change_domain(c, beneath, out, err);
	draft_snapshot_close(c->snapshot);
	return rc;
}

/* ---- another file ---- */

static int commit_file(struct commit *c, struct base_reader *beneath, struct commit_result *out,
		       struct err *err)
{
	const struct draft_about *about = draft_get_about(c->draft);
	int rc = about->kind == DRAFT_CHANGE ? base_reader_open(beneath, c->bucket, about, err) : 0;
	if (!rc)
		rc = draft_resume(c->draft, err);
	if (!rc)
		rc = draft_seal(c->draft, &c->snapshot, err);
	if (!rc)
		rc = draft_commit(c, out, err);
	draft_snapshot_close(c->snapshot);
	return rc;
}

/* ---- both ---- */

int draft_commit_left(struct bucket *bucket, struct draft *d, struct base_reader *beneath,
		      const atomic_bool *cancelled, struct commit_result *out, struct err *err)
{
	const struct draft_about *about = draft_get_about(d);
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	const struct commit_record m = commit_record_decode(stat.mark);
	const bool is_same = m.state == COMMIT_BEGUN && stat.is_marked;
	struct commit c = {.bucket = bucket,
			   .draft = d,
			   .number = m.number + !is_same,
			   .is_last = true,
			   .is_asked = true,
			   .cancelled = cancelled};
	*out = (struct commit_result){.kind = COMMIT_WAITS};
	if (m.state == COMMIT_ENDED && stat.is_marked)
		return 0;
	if (!store_key_ok(about->path) || !store_key_ok(about->name))
		return err_set(err, -EINVAL, "\"%s\": no object can have this path", about->path);
	return base_reader_is_domain(about) ? commit_change(&c, beneath, out, err)
					    : commit_file(&c, beneath, out, err);
}
