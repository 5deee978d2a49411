/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the plan of a commit (overlay/plan.h): phase after phase, in ascending order, the operations
 * of one phase side by side.
 *
 * Invariants:
 *  1. An operation begins only when all operations of lower phases have succeeded. What they have
 *     put is durable by then, so a later phase may name it.
 *  2. Each operation may be done twice: the second time gives the same bucket. If the condition of
 *     an operation fails, the object is examined. If it is what the operation, or a later one of
 *     the same key, would have left behind, the operation has been done. If it still has the
 *     version of the condition, the operation is tried again. Otherwise it is a conflict.
 *  3. After an error, no operation begins any more. Those that have begun are finished.
 *  4. An operation is noted in the journal when it is done and durable. If the note fails, the
 *     commit goes on, because the operation may be done twice; the log has a warning.
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
#ifndef DOMAIN_APPLY_H
#define DOMAIN_APPLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <hsmount/err.h>
#include <overlay/plan.h>
#include <store/store.h>

struct removed;

struct apply {
	const struct env *env;
	struct store *store;
	struct draft *draft;
	struct draft_snapshot *snapshot; /* of the plan; NULL if no body is a PLAN_RANGE */
	const struct plan *plan;	 /* operations that are done are left out */
	/* An earlier process or attempt may have done operations that the journal does not note. */
	bool is_repeated;
	unsigned int puts;	      /* requests at the same time, > 0 */
	const atomic_bool *cancelled; /* NULL, or true: the run ends with -ECANCELED */
	/* Called for each operation that has succeeded, also if an earlier attempt had done it, but
	 * not if it was noted as done before. etag: the version that a put has left behind; "" for
	 * a delete, and for a put whose object a later operation has deleted already. May be NULL.
	 */
	void (*done)(void *ctx, uint32_t operation, const char *etag);
	void *ctx;
};

enum { APPLY_NO_CONFLICT = UINT32_MAX };

struct apply_result {
	uint64_t puts, deletes; /* that have succeeded, as for done() */
	uint64_t bytes;		/* bodies of the puts */
	uint32_t conflict;	/* with -ESTALE: the operation; otherwise APPLY_NO_CONFLICT */
};

/* *out is set in any case. The plan remains; the caller removes it after success. -ESTALE: another
 * program has changed an object of the plan; -EINVAL: two operations of one phase have the same
 * key; -EBADMSG: the journal has lost a body; -ECANCELED; other errors are those of the store.
 * After each of them, the same plan may be run again with is_repeated. */
int apply_run(const struct apply *a, struct apply_result *out, struct err *err);

/* After apply_run() has succeeded, and before the plan is removed: takes the list of what the plan
 * has removed from the domain. *removed is NULL if there is none; the caller closes it. A damaged
 * list is no error, because the bucket has what was planned; the log has a warning. */
int apply_take_removed(const struct apply *a, struct removed **removed, struct err *err);

#endif
