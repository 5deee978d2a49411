/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a commit: the puts and deletes that it makes, in order. A plan that is durable can be
 * finished by a later process, because each operation may be done twice: the second time gives the
 * same bucket.
 *
 *   draft_seal() -> draft_put_plan() -> each operation, draft_note_done() -> draft_remove_plan()
 *
 * After a crash: draft_open() -> draft_get_plan(), and draft_seal(), whose snapshot is that of the
 * plan.
 */
#ifndef OVERLAY_PLAN_H
#define OVERLAY_PLAN_H

#include <overlay/draft.h>

enum { PLAN_DIGEST = 32, PLAN_MAX = 64 << 20 /* bytes of a plan */ };

enum plan_action { PLAN_PUT = 1, PLAN_DELETE };

enum plan_condition {
	PLAN_ALWAYS,
	PLAN_IF_ABSENT,
	PLAN_IF_VERSION, /* only if the object has this version */
};

enum plan_body {
	PLAN_NO_BODY, /* PLAN_DELETE */
	PLAN_INLINE,  /* `length` bytes in the plan */
	PLAN_RANGE,   /* `length` bytes at `offset` of the snapshot */
};

struct plan_operation {
	enum plan_action action;
	enum plan_condition condition;
	enum plan_body body;
	uint32_t phase;	     /* for the caller */
	const char *key;     /* not empty */
	const char *version; /* PLAN_IF_VERSION; else "" */
	const void *bytes;   /* PLAN_INLINE; else NULL */
	uint64_t offset;     /* PLAN_RANGE; else 0 */
	uint64_t length;
	uint8_t sha256[PLAN_DIGEST]; /* of the body; zeros without one */
	bool done;		     /* set by draft_get_plan() */
};

struct plan {
	uint64_t number;     /* differs between the plans of a draft */
	uint32_t generation; /* of the snapshot */
	uint64_t size;	     /* of the snapshot */
	uint32_t count;
	struct plan_operation *operations;
	uint8_t *file; /* to which the operations point */
};

/* Makes the draft and a plan for its open snapshot durable. It replaces an older one. -EINVAL: an
 * operation is not valid, or there is no snapshot; -E2BIG: the plan is too large; -EROFS: the draft
 * was opened for recovery, and cannot change any more: its commit can be repeated from it. */
int draft_put_plan(struct draft *d, const struct plan_operation *operations, uint32_t count,
		   struct err *err);
/* Notes that an operation of the plan has been done. The note need not survive a crash of the
 * machine. */
int draft_note_done(struct draft *d, uint32_t operation, struct err *err);
/* Reads the plan. -ENOENT: there is none; -EBADMSG: it is damaged; -ENOMEM. */
int draft_get_plan(struct draft *d, struct plan *plan, struct err *err);
void plan_release(struct plan *plan);
int draft_remove_plan(struct draft *d, struct err *err);

#endif
