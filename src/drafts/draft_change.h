/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain that programs change in place: commits what has changed with update/update.h, when the
 * file is complete (close_state.h). If a library never marks the file, that is when the last
 * program closes it.
 */
#ifndef DRAFTS_DRAFT_CHANGE_H
#define DRAFTS_DRAFT_CHANGE_H

#include <drafts/close_state.h>
#include <drafts/draft_commit.h>

#include <snapshots/snapshots.h>

struct draft_change;

/* Borrows s, the snapshot of the domain. Returns NULL if out of memory. */
struct draft_change *draft_change_new(struct bucket *bucket, struct snapshot *s);
void draft_change_free(struct draft_change *c); /* c may be NULL */

/* Checks a change of n bytes of the file: see linked_data_check(). */
int draft_change_check(struct draft_change *c, struct draft *d, uint64_t offset, uint64_t n,
		       bool *is_first, struct err *err);
/* To be called after a write to [offset, offset + n) of the draft. Any thread. */
void draft_change_wrote(struct draft_change *c, struct draft *d, uint64_t offset, size_t n);

/* Returns whether a commit has failed that the next one completes, without what was written
 * since. */
bool draft_change_is_pending(const struct draft_change *c);
/* Commits what has changed since the last commit. Blocks; one call at a time. version and path of
 * the result are those of the draft. out->kind is COMMIT_WAITS if the file is not complete, and may
 * be later. Errors are those of domain_update(), and -EIO if the file is not complete, or is no
 * HDF5 file any more. */
int draft_change_commit(struct draft_change *c, const struct commit *commit,
			struct commit_result *out, struct err *err);
/* Completes the plan that an earlier process has left in the journal. What it removes from the
 * domain becomes garbage. The plan stays in the journal. *found is set if there is one. Without
 * one, the function does nothing and returns 0. Errors are those of apply_run() and of
 * update/confirm.h. */
int draft_change_resume(const struct commit *commit, bool *found, struct err *err);

#endif
