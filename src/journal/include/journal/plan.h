/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a commit: the puts and deletes that it makes, in order. A plan that is durable can be
 * finished by a later process, because each operation may be done twice: the second time gives the
 * same bucket. overlay/draft_plan.h keeps the plan of a draft.
 *
 * A plan has at most PLAN_MAX bytes: about 100 for each operation with its key, the bodies that are
 * in it, and about 100 for each object that is removed. Larger bodies, and those of plans with many
 * operations, are in the file `bodies`.
 */
#ifndef JOURNAL_PLAN_H
#define JOURNAL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <journal/gc_event.h>

enum {
	PLAN_DIGEST = 32,
	PLAN_MARK = 16 + 1 + 10 + 1, /* bytes of a mark, with its NUL */
	PLAN_MAX = 256 << 20,	     /* bytes of a plan */
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
	 * whether the bucket has refused it. */
	bool sent;
	/* Set by complete_run(): it puts the shape of a dataset that grows, with which new chunks
	 * become visible. */
	bool shows;
};

enum plan_note {
	PLAN_DONE = 1, /* the bucket has what the operation leaves behind */
	PLAN_SENT,     /* the request of the operation follows */
	/* The request counts as not sent: the bucket has refused it, or what it has put was
	 * removed. This note survives a crash of the machine. */
	PLAN_VOID,
};

/* The domain that a plan changes. When all operations are done, the domain must still have these
 * objects. Whoever completes the plan looks for them before the plan is removed. */
struct plan_subject {
	const char *root; /* id of the root group, or NULL if it is not known, as in plans of other
			   * files */
	/* Ids of the objects whose document or chunks are put or deleted. New ones are not among
	 * them, because a link in a changed group leads to each of them. */
	const char **objects;
	uint32_t count;
	/* Numbers of the plans of the same commit that this one has replaced. Objects that carry
	 * their marks were put by this commit, too. */
	uint64_t *earlier;
	uint32_t nearlier;
	/* Objects that the domain has lost. When all operations are done, they go into the log of
	 * what is to be deleted (journal/gc_log.h), before the plan is removed. */
	struct gc_object *removed;
	uint32_t nremoved;
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

/* Writes the mark with which an operation of a plan puts its object: see struct store_request. */
void plan_mark(uint64_t plan, uint32_t operation, char mark[PLAN_MARK]);
/* Finds the operation that has a mark. Returns false if it is no mark of this plan. */
bool plan_find_mark(const struct plan *plan, const char *mark, uint32_t *operation);
/* Returns whether a mark is one of this plan, or of a plan that it has replaced. */
bool plan_has_mark(const struct plan *plan, const char *mark);
void plan_release(struct plan *plan);

#endif
