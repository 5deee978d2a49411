/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to implement a store: what an implementation and a wrapper must do, and the functions by
 * which a request travels through a stack.
 *
 *   store_submit(top) -> top.submit -> store_pass() -> … -> bottom.submit
 *                                                           |
 *   done  <- top.completed <- store_complete() <- … <-------+
 *
 * The store that has the request may change its answer, its own private memory and its job. A
 * wrapper may also change the key (as prefix does) or a condition (as a cache does) if it restores
 * them before it completes the request. A store must not touch a request after it has passed it on
 * or completed it.
 *
 * An implementation is the bottom of a stack. It embeds struct store as its first member and
 * initialises it with store_init(). Its submit() either answers at once or calls store_work(),
 * whose job answers in a worker. To answer means: fill in req->answer (a page with store/page.h),
 * then call one of store_present(), store_absent() and store_fail() once. tests/support/mem_store.c
 * is the shortest complete implementation.
 *
 * A wrapper is initialised with store_wrap(). Its submit() calls store_pass(). Its completed()
 * examines the answer, then calls store_complete(), or store_pass() for another attempt. A wrapper
 * may also answer in submit() without passing the request on. If its constructor fails, inner still
 * belongs to the caller. src/store/prefix.c is the shortest wrapper.
 *
 * tests/support/store_contract.h tests the contract for every implementation and wrapper.
 */
#ifndef STORE_IMPLEMENT_H
#define STORE_IMPLEMENT_H

#include <stdlib.h>

#include <store/store.h>

struct store_upload_page;
struct store_ops {
	const char *name; /* "dir", "count" … */
	/* Starts a request. It cannot fail itself: every error is an answer. It is called in any
	 * thread, so it must not block; blocking work goes to store_work(). The key has passed
	 * store_key_ok(), except for LIST, whose prefix may be any text. A whole listing arrives as
	 * one request for each page, so `whole` can be ignored here.
	 *
	 * GET, HEAD: PRESENT with the meta and, for GET, the body, or `unchanged`; ABSENT with the
	 *   evidence. UNKNOWN with -EACCES, with -ESTALE if if_match fails, with -EFBIG, or with
	 *   -EIO and the reason. store_answer_note() sets the note, store_answer_mark() the mark.
	 * LIST: PRESENT with a page. The page of an unknown prefix is empty. A key that
	 *   store_key_ok() refuses is left out. UNKNOWN with -EACCES or -EIO. If list.limit is not
	 *   0 and the store notices that more items than that follow start_after, it may answer
	 *   -E2BIG, because the caller would discard them. It must not if list.until is set,
	 *   because items after that key do not count.
	 * PUT: replaces the whole object atomically: a reader sees the old object or the new one.
	 *   The new one is durable when the request completes, unless the request is `deferred` and
	 *   the store has a `sync`. PRESENT with the meta of the new version. UNKNOWN with -ESTALE
	 * or -EEXIST if a condition fails, unless the object has the mark of the request, and with
	 *   -EACCES, -ENOSPC or -EIO. If it has a source, the store calls store_work_apart()
	 *   and reads it there with store_body_read().
	 * DELETE: ABSENT, also if the object did not exist; with if_match, `was_absent` is then
	 * set. UNKNOWN with -ESTALE if the object has another version than if_match.
	 *
	 * A store across a network answers -EAGAIN for a temporary failure, and sets
	 * err.retry_after_ms if the server says how long to wait. store_retry_new() hides -EAGAIN
	 * from the callers above it. */
	void (*submit)(struct store *s, struct store_request *req);
	/* Wrappers only. Receives a request that this wrapper passed on, with its answer. It is
	 * called in the thread in which the store below completed the request, and must not block
	 * either. */
	void (*completed)(struct store *s, struct store_request *req);
	/* Optional: see store_space(), store_sync(), store_life(), store_keeps_marks(),
	 * store_checks_absence(), store_part_min(), store_check() and store_move(). A wrapper
	 * without them has those of the store below. The keys of a move have passed store_key_ok()
	 * and differ; cond and meta are not NULL. */
	int (*space)(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes);
	int (*sync)(struct store *s, struct err *err);
	const char *(*life)(struct store *s);
	enum store_marks (*keeps_marks)(struct store *s);
	enum store_absence_check (*checks_absence)(struct store *s);
	uint64_t (*part_min)(struct store *s);
	int (*check)(struct store *s, struct err *err);
	int (*move)(struct store *s, const char *from, const char *from_version, const char *to,
		    const struct store_cond *cond, struct store_meta *meta, struct err *err);
	/* Optional: lists a page of uploads in parts, or aborts one. They fail with -EAGAIN after a
	 * temporary failure. A wrapper without them has those of the store below. */
	int (*list_uploads)(struct store *s, const char *prefix, struct store_upload_page *page,
			    struct err *err);
	int (*abort_upload)(struct store *s, const char *key, const char *id, struct err *err);
	/* It is called when no request is in progress. */
	void (*free)(struct store *s);
};

/* A page of store_each_upload(). The lists begin after the upload that next_key and next_id name;
 * they are "" at first, and then what the service has said. */
struct store_upload_page {
	struct arena *arena; /* has the texts of v */
	struct store_upload *v;
	size_t n;
	bool more;
	char next_key[3 * STORE_KEY_MAX + 1], next_id[STORE_UPLOAD_ID_MAX + 1];
};
enum { STORE_UPLOADS_MAX = 1000 /* of a page */ };
/* Calls list_uploads of the first store from s on that has it. */
int store_list_uploads(struct store *s, const char *prefix, struct store_upload_page *page,
		       struct err *err);

/* Every implementation embeds this as its first member. */
struct store {
	const struct store_ops *ops;
	const struct env *env;
	struct store *inner; /* of a wrapper, the store below; owned */
	struct store *outer; /* the wrapper above, or NULL */
	size_t private_at;   /* offset of its private memory in a request's, bytes */
	size_t private_size; /* of its private memory and of all below it, bytes */
	size_t headroom;     /* bytes that it and all stores below put in front of a key */
};

/* Initialises a store at the bottom of a stack. s is zeroed. private_size is the size in bytes of
 * the store's private memory in each request; see store_private(). env is borrowed until the store
 * is freed. */
void store_init(struct store *s, const struct store_ops *ops, const struct env *env,
		size_t private_size);
/* Initialises a wrapper, which owns inner from now on. headroom is the number of bytes that the
 * wrapper puts in front of a key at most. */
void store_wrap(struct store *s, const struct store_ops *ops, struct store *inner,
		size_t private_size, size_t headroom);
/* Allocates a wrapper without headroom, which begins with its struct store and has `size` bytes,
 * and initialises it. Returns NULL if out of memory; then inner is still the caller's. */
struct store *store_wrap_new(size_t size, const struct store_ops *ops, struct store *inner,
			     size_t private_size, struct err *err);
/* This is `free` for a wrapper that adds nothing to it. It frees inner and s, which must come from
 * malloc(). */
void store_wrapper_free(struct store *s);

/* Returns the store's own memory in a request. It is zeroed when the request is submitted. */
static inline void *store_private(const struct store *s, struct store_request *req)
{
	return req->memory + s->private_at;
}

/* Passes a request down to inner. */
void store_pass(struct store *s, struct store_request *req);
/* Passes an answered request up. Called in a worker, or in the submitting thread if the store did
 * not have to wait for anything. */
void store_complete(struct store *s, struct store_request *req);

/* Cuts a range to an object of `size` bytes. Returns its length and sets *first to its offset. */
uint64_t store_range_clip(const struct store_range *range, uint64_t size, uint64_t *first);

/* ---- answers ---- */

/* Discards the present answer, which belongs to an earlier attempt or is a page that was merged. */
void store_answer_clear(struct store_request *req);
/* The same, but keeps err. */
void store_result_drop(struct store_request *req);
/* Sets the note of the answer to what is stored with the object: n bytes, which may be anything. If
 * they are not valid, the object has no note. */
void store_answer_note(struct store_request *req, const char *text, size_t n);
/* The same for the mark. */
void store_answer_mark(struct store_request *req, const char *text, size_t n);
/* Set the answer's state and complete the request. Before store_present(), the store fills in meta,
 * body, `unchanged` and page. The other two discard them; `was_absent` is kept. */
void store_present(struct store *s, struct store_request *req);
void store_absent(struct store *s, struct store_request *req, enum store_evidence evidence);
/* code is negative and not -ENOENT. fmt is the reason, or NULL if the answer's err already has
 * it. */
void store_fail(struct store *s, struct store_request *req, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Runs fn(req) in a worker. If the pool has no worker and cannot start one, fn runs in the calling
 * thread before store_work() returns. A request has at most one job at a time. */
void store_work(struct store *s, struct store_request *req, pool_fn fn);
/* Runs fn(req) in a thread of its own, which may block. If no thread can be started, as
 * store_work(). */
void store_work_apart(struct store *s, struct store_request *req, pool_fn fn);
/* Called in such a job. Returns the store that called store_work() or store_work_apart(). */
struct store *store_working(const struct store_request *req);

/* Reads n bytes of req->body or req->part at offset. Blocks. If it fails, the answer's err has the
 * reason; the code is never -EAGAIN or -ENOENT. */
int store_body_read(struct store_request *req, uint64_t offset, void *buf, size_t n);
/* Returns whether the body of a PUT is not in memory: a `body` or a `part`. */
static inline bool store_has_source(const struct store_request *req)
{
	return req->op == STORE_PUT && (req->body || req->part);
}

#endif
