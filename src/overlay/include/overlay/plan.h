/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a commit: the puts and deletes that it makes, in order. A plan that is durable can be
 * finished by a later process, because each operation may be done twice: the second time gives the
 * same bucket.
 *
 *   draft_seal() -> draft_set_body() -> draft_put_plan()
 *        -> each operation: draft_read_planned(), draft_note_operation() -> draft_remove_plan()
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
	PLAN_MARK = 16 + 1 + 10 + 1, /* bytes of a mark, with its NUL */
	PLAN_MAX = 64 << 20,	     /* bytes of a plan */
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
	/* Set by draft_get_plan(): the request may have reached the bucket, and it is not known
	 * that the bucket has refused it. */
	bool sent;
};

enum plan_note {
	PLAN_DONE, /* the bucket has what the operation leaves behind */
	PLAN_SENT, /* the request of the operation follows */
	/* It is as if it had not been sent: the bucket has refused it, or what it has put was
	 * removed. This note survives a crash of the machine. */
	PLAN_VOID,
};

/* The domain that a plan changes. When all operations are done, the domain must still have these
 * objects. Whoever completes the plan looks for them before the plan is removed. */
struct plan_subject {
	const char *root; /* id of the root group; NULL: not known, as in plans of other files */
	/* Ids of the objects whose document or chunks are put or deleted. New ones are not among
	 * them, because a link in a changed group leads to each of them. */
	const char **objects;
	uint32_t count;
	/* Numbers of the plans of the same commit that this one has replaced. Objects that carry
	 * their marks were put by this commit, too. */
	uint64_t *earlier;
	uint32_t nearlier;
};

struct plan {
	uint64_t number;     /* differs between the plans of a draft */
	uint32_t generation; /* of the snapshot */
	uint64_t size;	     /* of the snapshot */
	uint32_t count;
	struct plan_operation *operations;
	struct plan_subject subject;
	uint8_t *file; /* to which the operations and the subject point */
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
 * one. subject: NULL, or what the plan changes. As long as there is a plan, the bytes of its
 * snapshot do not change, and each change of the draft between two snapshots takes a generation.
 * -EINVAL: an operation is not valid, or there is no snapshot; -E2BIG: the plan is too large;
 * -EROFS: the draft was opened for recovery, and cannot change any more: its commit can be repeated
 * from it. */
int draft_put_plan(struct draft *d, const struct plan_operation *operations, uint32_t count,
		   const struct plan_subject *subject, struct err *err);
/* Notes something about an operation of the plan. PLAN_DONE and PLAN_SENT need not survive a crash
 * of the machine. */
int draft_note_operation(struct draft *d, uint32_t operation, enum plan_note note, struct err *err);
/* Writes the mark with which an operation of a plan puts its object: see struct store_request. */
void plan_mark(uint64_t plan, uint32_t operation, char mark[PLAN_MARK]);
/* The operation that has a mark. False: it is no mark of this plan. */
bool plan_find_mark(const struct plan *plan, const char *mark, uint32_t *operation);
/* Whether a mark is one of this plan, or of a plan that it has replaced. */
bool plan_has_mark(const struct plan *plan, const char *mark);
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
