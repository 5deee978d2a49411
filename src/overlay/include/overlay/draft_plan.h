/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a draft's commit (journal/plan.h).
 *
 *   draft_seal() -> draft_set_body() -> draft_put_plan()
 *        -> each operation: draft_read_planned(), draft_note_operation() -> draft_remove_plan()
 *
 * After a crash: draft_open() -> draft_get_plan(), and draft_seal(), whose snapshot is that of the
 * plan. In the process that has put the plan, its snapshot must remain open until the plan is
 * removed if the operations shall be tried again.
 */
#ifndef OVERLAY_DRAFT_PLAN_H
#define OVERLAY_DRAFT_PLAN_H

#include <journal/plan.h>
#include <overlay/draft.h>

/* Appends n bytes to the file `bodies` of the draft. They are counted as those of the spool. If no
 * plan is put afterwards, draft_remove_plan() removes them. Fails with -ENOSPC if spool_size or the
 * disk has no room for them, and with -EROFS if the draft was opened for recovery, and
 * draft_resume() was not called. */
int draft_add_body(struct draft *d, const void *bytes, size_t n, uint64_t *offset, struct err *err);
/* Sets the body of an operation, its length and its digest. The bytes are in the plan if they are
 * few, otherwise in the file `bodies`. In the plan, they are borrowed until draft_put_plan(). */
int draft_set_body(struct draft *d, struct plan_operation *op, const void *bytes, size_t n,
		   struct err *err);
/* Reads n bytes of the file `bodies`. Fails with -EBADMSG if it does not have them. */
int draft_read_body(struct draft *d, uint64_t offset, void *buf, size_t n, struct err *err);
/* Makes the draft, its bodies and a plan for its open snapshot durable. The plan replaces an older
 * one. `subject` is what the plan changes, or NULL. As long as there is a plan, the bytes of its
 * snapshot do not change, and each change of the draft between two snapshots takes a generation.
 * Fails with -EINVAL if an operation is not valid, or there is no snapshot; with -E2BIG if the plan
 * is too large; and with -EROFS as for draft_add_body(). */
int draft_put_plan(struct draft *d, const struct plan_operation *operations, uint32_t count,
		   const struct plan_subject *subject, struct err *err);
/* Notes something about an operation of the plan. PLAN_DONE and PLAN_SENT survive a crash of the
 * machine only after draft_sync_notes(). */
int draft_note_operation(struct draft *d, uint32_t operation, enum plan_note note, struct err *err);
/* Makes all that was noted about the plan durable; something was. One thread at a time notes and
 * synchronises. */
int draft_sync_notes(struct draft *d, struct err *err);
/* Reads the plan. Fails with -ENOENT if there is none, with -EBADMSG if it is damaged, with
 * -ENOTSUP if a later version of the program has written it, and with -ENOMEM. */
int draft_get_plan(struct draft *d, struct plan *plan, struct err *err);
/* Reads the whole body of an operation: op->length bytes, of any kind. s is the snapshot of the
 * plan; it may be NULL if the plan has no PLAN_RANGE. Where a range comes from what lies beneath,
 * that is read, and the call may block. Fails with -EBADMSG if the bytes do not have the digest of
 * the operation, or the spool is damaged. */
int draft_read_planned(struct draft *d, struct draft_snapshot *s, const struct plan_operation *op,
		       void *buf, struct err *err);
/* Removes the plan, what is noted as done, and all bodies. No other thread uses them. An error
 * means that the plan is still there. Without the plan, the others mean nothing; what cannot be
 * removed of them remains until the next call. */
int draft_remove_plan(struct draft *d, struct err *err);

#endif
