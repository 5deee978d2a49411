/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a commit: the puts and deletes that it makes, in order. A plan that is durable can be
 * finished by a later process, because each operation may be done twice: the second time gives the
 * same bucket.
 *
 *   draft_seal() -> draft_set_body() -> draft_put_plan()
 *        -> each operation: draft_read_planned(), draft_note_done() -> draft_remove_plan()
 *
 * After a crash: draft_open() -> draft_get_plan(), and draft_seal(), whose snapshot is that of the
 * plan. In the process that has put the plan, its snapshot must remain open until the plan is
 * removed if the operations shall be tried again.
 *
 * A plan has at most PLAN_MAX bytes: about 100 for each operation with its key, and the bodies that
 * are in it. draft_set_body() puts larger bodies, and those of plans with many operations, into the
 * file `bodies`.
 */
#ifndef OVERLAY_PLAN_H
#define OVERLAY_PLAN_H

#include <overlay/draft.h>

enum {
	PLAN_DIGEST = 32,
	PLAN_MAX = 64 << 20,	    /* bytes of a plan */
	PLAN_INLINE_MAX = 64 << 10, /* bytes of a body that draft_set_body() puts into the plan … */
	PLAN_INLINE_SUM = 16 << 20, /* … and of all of them */
};

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
	PLAN_FILE,    /* `length` bytes at `offset` of the draft's file `bodies` */
};

struct plan_operation {
	enum plan_action action;
	enum plan_condition condition;
	enum plan_body body;
	uint32_t phase;	     /* for the caller */
	const char *key;     /* not empty */
	const char *version; /* PLAN_IF_VERSION; else "" */
	const void *bytes;   /* PLAN_INLINE; else NULL */
	uint64_t offset;     /* PLAN_RANGE and PLAN_FILE; else 0 */
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

void plan_digest(const void *bytes, size_t n, uint8_t digest[PLAN_DIGEST]);

/* Appends n bytes to the file `bodies` of the draft. They are counted as those of the spool.
 * -ENOSPC: spool_size or the disk has no room for them; -EROFS: the draft was opened for recovery.
 * If no plan is put then, draft_remove_plan() removes them. */
int draft_add_body(struct draft *d, const void *bytes, size_t n, uint64_t *offset, struct err *err);
/* Sets the body of an operation, its length and its digest. The bytes are in the plan if they are
 * few, otherwise in the file `bodies`. In the plan, they are borrowed until draft_put_plan(). */
int draft_set_body(struct draft *d, struct plan_operation *op, const void *bytes, size_t n,
		   struct err *err);
/* n bytes of the file `bodies`. -EBADMSG: it does not have them. */
int draft_read_body(struct draft *d, uint64_t offset, void *buf, size_t n, struct err *err);

/* Makes the draft, its bodies and a plan for its open snapshot durable. The plan replaces an older
 * one. As long as there is a plan, the bytes of its snapshot do not change, and each change of the
 * draft between two snapshots takes a generation. -EINVAL: an operation is not valid, or there is
 * no snapshot; -E2BIG: the plan is too large; -EROFS: the draft was opened for recovery, and cannot
 * change any more: its commit can be repeated from it. */
int draft_put_plan(struct draft *d, const struct plan_operation *operations, uint32_t count,
		   struct err *err);
/* Notes that an operation of the plan has been done. The note need not survive a crash of the
 * machine. */
int draft_note_done(struct draft *d, uint32_t operation, struct err *err);
/* Reads the plan. -ENOENT: there is none; -EBADMSG: it is damaged; -ENOMEM. */
int draft_get_plan(struct draft *d, struct plan *plan, struct err *err);
void plan_release(struct plan *plan);
/* Reads the whole body of an operation: op->length bytes, of any kind. s: the snapshot of the plan;
 * NULL if the plan has no PLAN_RANGE. What lies beneath is read too, where a range has it: then
 * the call may block. -EBADMSG: the bytes do not have the digest of the operation, or the spool is
 * damaged. */
int draft_read_planned(struct draft *d, struct draft_snapshot *s, const struct plan_operation *op,
		       void *buf, struct err *err);
/* Removes the plan, what is noted as done, the list of removed objects (overlay/removed.h), and
 * all bodies. No other thread uses them. An error means that the plan is still there: the others
 * mean nothing without it, and what of them cannot be removed remains until the next call. */
int draft_remove_plan(struct draft *d, struct err *err);

#endif
