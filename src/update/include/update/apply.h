/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the plan of a commit (journal/plan.h): phase after phase, in ascending order, the operations
 * of one phase side by side.
 *
 * Invariants:
 *  1. An operation begins only when all operations of lower phases have succeeded. What they have
 *     put is durable by then, so a later phase may name it.
 *  2. Each operation may be done twice: the second time gives the same bucket. Each put has a mark
 *     of its own (plan_mark()), which is stored with the object. If the condition of an operation
 *     fails, the object is examined. If it has the mark of the operation, or of a later one of the
 *     same key, the operation has been done. If it has the mark of an earlier one of the same key,
 *     its version is the expected one. If it still has the version of the condition, the operation
 *     is tried again. Otherwise it is a conflict, also if the bytes are equal: another program may
 *     have put the same bytes. Only if the store does not keep marks, equal bytes show that an
 *     operation was done, and only of an operation whose request may have lost its answer.
 *  3. After an error, no operation begins any more. Those that have begun are finished.
 *  4. An operation is noted in the journal when it is done and durable. If the note fails, the
 *     commit goes on, because the operation may be done twice; the log has a warning.
 *
 * A DELETE is left out if a later operation of the same key is done: the object is what that one
 * has put.
 *
 * Requests: one for each operation, as long as no condition fails.
 *
 * Several operations may have one key, in different phases. Plans know only the version that the
 * object has before the first of them. Therefore PLAN_IF_VERSION of a later one means what the one
 * before it has put.
 *
 * Threads: the function blocks. It calls done() in the thread of the caller. Bodies are read in
 * workers; so no range of the snapshot in the plan may need a request for what lies beneath it.
 */
#ifndef UPDATE_APPLY_H
#define UPDATE_APPLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <hsmount/err.h>
#include <journal/plan.h>
#include <store/store.h>

struct gc_log;

struct apply {
	const struct env *env;
	struct store *store;
	struct draft *draft;
	struct draft_snapshot *snapshot; /* of the plan; may be NULL if no body is a PLAN_RANGE */
	struct plan *plan;		 /* operations that are done are left out */
	/* An earlier process or attempt may have done operations that the journal does not note. */
	bool is_repeated;
	unsigned int puts;	      /* requests at the same time, > 0 */
	const atomic_bool *cancelled; /* may be NULL; if it becomes true, the run ends with
				       * -ECANCELED */
	/* Called for each operation that has succeeded, also if an earlier attempt had done it, but
	 * not if it was noted as done before. `etag` is the version that a put has left behind, or
	 * "" for a delete, and for a put whose object a later operation has deleted already. May be
	 * NULL. */
	void (*done)(void *ctx, uint32_t operation, const char *etag);
	/* Called in the thread of the caller when all operations of a phase are done, if some of
	 * them were not done before. A result that is not 0 ends the run and is returned. May be
	 * NULL. */
	int (*phase_done)(void *ctx, uint32_t phase, struct err *err);
	void *ctx;
	/* The journal gets PLAN_SENT for each put with a condition, also if the store keeps marks.
	 */
	bool notes_sent;
};

enum { APPLY_NO_CONFLICT = UINT32_MAX };

struct apply_result {
	uint64_t puts, deletes; /* that have succeeded, as for done() */
	uint64_t bytes;		/* bodies of the puts */
	uint32_t conflict;	/* the operation after -ESTALE; otherwise APPLY_NO_CONFLICT */
};

/* Runs the plan. *out is set in any case. The plan remains in the journal; the caller removes it
 * after success. Fails with -ESTALE if another program has changed an object of the plan, with
 * -EINVAL if two operations of one phase have the same key, with -EBADMSG if the journal has lost a
 * body, with -ECANCELED, and with errors of the store. After each of them, the same plan may be run
 * again with is_repeated. */
int apply_run(const struct apply *a, struct apply_result *out, struct err *err);

/* After apply_run() has succeeded, and before the plan is removed: puts what the plan has removed
 * from the domain at this path into the log. *number becomes that of the entry, or GC_NONE if there
 * is none. */
int apply_note_removed(const struct apply *a, struct gc_log *log, const char *path,
		       uint32_t *number, struct err *err);

#endif
