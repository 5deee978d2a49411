/* SPDX-License-Identifier: Apache-2.0 */
/* Commits a draft for hsmount/recover.h, and says what to do if that is impossible. */
#include "left_drafts.h"

#include <engine/parts.h>
#include <errno.h>
#include <stdio.h>

#include <drafts/base_reader.h>
#include <drafts/draft_commit.h>
#include <overlay/draft_plan.h>

struct job {
	const struct engine_drafts *s;
	struct recover_found found;
	struct draft *draft;
	struct engine *bucket;
	struct base_reader beneath;
	bool changes_domain, has_plan;
	uint64_t mark; /* when it was opened */
};

/* ---- errors ---- */

/* Returns whether this process has noted that a commit begins, or there is a plan. */
static bool has_begun(const struct job *j)
{
	struct draft_stat stat;
	draft_get_stat(j->draft, &stat);
	return j->has_plan || stat.mark != j->mark;
}

static int explain_stale(const struct job *j, struct err *err)
{
	const struct err why = *err;
	const char *id = j->found.id;
	if (j->changes_domain && has_begun(j))
		return err_set(err, -ESTALE,
			       "draft %s: %s; a part of the changes may be in the bucket, and the "
			       "others cannot be stored; `hsimage recover drop %s` deletes the "
			       "draft",
			       id, why.msg, id);
	if (draft_get_about(j->draft)->kind == DRAFT_CHANGE)
		return recover_explain_stale(j->s, &j->found, j->draft, err);
	return err_set(
		err, -ESTALE,
		"draft %s: %s; `hsimage recover export %s FILE` saves what was written, and a "
		"copy of FILE to the mount replaces the file; then `hsimage recover drop %s` "
		"deletes the draft",
		id, why.msg, id, id);
}

static int explain(const struct job *j, int rc, struct err *err)
{
	const struct err why = *err;
	const char *id = j->found.id;
	/* A plain object beneath the draft may be gone. */
	if (rc == -ESTALE || (rc == -ENOENT && draft_get_about(j->draft)->kind == DRAFT_CHANGE))
		return explain_stale(j, err);
	if (has_begun(j))
		return err_set(err, rc,
			       "draft %s: %s; the commit has begun: the next mount, or the same "
			       "command, completes it",
			       id, why.msg);
	if (rc == -EIO || rc == -EOPNOTSUPP)
		return err_set(err, rc,
			       "draft %s: %s; `hsimage recover export %s FILE` saves the file, "
			       "`hsimage recover drop %s` deletes the draft",
			       id, why.msg, id, id);
	return err_wrap(err, rc, "draft %s", id);
}

/* ---- the commit ---- */

static int open_draft(struct job *j, const struct draft_beneath *reader, struct err *err)
{
	int rc = draft_open(j->found.journal, j->found.id, reader, &j->draft, err);
	if (rc == -EBUSY)
		return err_set(err, rc,
			       "draft %s: another process has the draft open: close the file, or "
			       "unmount, and try again",
			       j->found.id);
	if (rc)
		return recover_explain(j->s, &j->found, rc, err);
	struct draft_stat stat;
	struct plan plan;
	draft_get_stat(j->draft, &stat);
	j->mark = stat.mark;
	j->changes_domain = base_reader_is_domain(draft_get_about(j->draft));
	j->has_plan = draft_get_plan(j->draft, &plan, NULL) == 0;
	if (j->has_plan)
		plan_release(&plan);
	return 0;
}

static int commit(struct job *j, const struct engine_draft_commit *opt, struct commit_result *out,
		  struct err *err)
{
	int rc = recover_open_bucket(&j->found, opt->bucket, j->s->path, &j->bucket, err);
	if (rc)
		return err_wrap(err, rc, "draft %s", j->found.id);
	rc = draft_commit_left(&j->bucket->bucket, j->draft, &j->beneath, opt->cancelled, out, err);
	if (rc)
		return explain(j, rc, err);
	struct draft *d = j->draft;
	j->draft = NULL;
	rc = draft_drop(d, err);
	return rc ? err_wrap(err, rc, "draft %s is committed, but remains in the journal",
			     j->found.id)
		  : 0;
}

int engine_drafts_commit(struct engine_drafts *s, const char *id,
			 const struct engine_draft_commit *opt, struct err *err)
{
	struct err own = ERR_INIT;
	struct commit_result result = {.kind = COMMIT_WAITS};
	struct job j = {.s = s};
	const struct draft_beneath reader = base_reader_beneath(&j.beneath);
	err = err ? err : &own;
	int rc = recover_find(s, id, &j.found, err);
	if (!rc)
		rc = open_draft(&j, &reader, err);
	if (!rc)
		rc = commit(&j, opt, &result, err);
	if (!rc && opt->line && result.kind == COMMIT_OBJECT && result.kept[0]) {
		auto_str struct str text = {0};
		str_addf(&text, "stored as a plain file: %s", result.kept);
		opt->line(opt->arg, str_text(&text));
	}
	/* Closing the bucket deletes what the commit has made garbage. */
	draft_close(j.draft);
	base_reader_close(&j.beneath);
	engine_close(j.bucket);
	recover_found_release(&j.found);
	return rc;
}
