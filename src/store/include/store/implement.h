/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For those who implement a store: what an implementation and a wrapper have to do, and the
 * functions with which a request travels through a stack.
 *
 *   store_submit(top) -> top.submit -> store_pass() -> … -> bottom.submit
 *                                                           |
 *   done  <- top.completed <- store_complete() <- … <-------+
 *
 * Whoever has the request may change its answer, its slot and its job. A wrapper that changes
 * anything else (the key of a prefix, a condition of a cache) changes it back before it completes
 * the request. A request is touched no more once it was passed on or completed.
 */
#ifndef STORE_IMPLEMENT_H
#define STORE_IMPLEMENT_H

#include <stdlib.h>

#include <store/store.h>

struct store_ops {
	const char *name; /* "dir", "count" … */
	/* Starts a request and never fails itself: whatever goes wrong is an answer. The op is one
	 * of the first five; what is not supported is answered with store_unsupported().
	 *
	 * get, head: UNKNOWN with -EACCES; -ESTALE (if_match); -EFBIG; -EIO with the reason.
	 * list: a page. An unknown prefix is an empty page. A key that store_key_ok() refuses is
	 *   left out. UNKNOWN with -EACCES, -EIO; -E2BIG when list.limit is not 0 and the store
	 *   notices that more than so many items follow start_after, which the caller would throw
	 *   away.
	 * put: the whole object is replaced. It is atomic: a reader sees the old object or the new
	 *   one. It is durable when it is done. PRESENT with the meta of the new version. UNKNOWN
	 *   with -ESTALE, -EEXIST (conditions); -EACCES, -ENOSPC, -EIO.
	 * delete: ABSENT, also when it was not there. UNKNOWN with -ESTALE for another version than
	 *   if_match.
	 *
	 * -EAGAIN: a passing fault of a store across a network, with err.again_ms when the server
	 * says how long it wants to be left alone; above store_retry_new() nobody sees it. */
	void (*submit)(struct store *s, struct store_request *req);
	/* Of a wrapper: a request that it passed on comes back, answered. */
	void (*completed)(struct store *s, struct store_request *req);
	/* Optional: bytes free and total behind the store; -EOPNOTSUPP. */
	int (*space)(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes);
	/* No request is under way any more. */
	void (*free)(struct store *s);
};

/* Every implementation embeds this first. */
struct store {
	const struct store_ops *ops;
	const struct env *env;
	struct store *inner; /* of a wrapper: owned */
	struct store *outer; /* the wrapper around it, or NULL */
	size_t slot;	     /* where in a request's memory its slot is */
	size_t slots;	     /* of it and all beneath it, bytes */
	size_t headroom;     /* of keys: what it and all beneath it put in front */
};

/* slot: bytes that it wants in each request; they are zero when a request is submitted. */
void store_init(struct store *s, const struct store_ops *ops, const struct env *env, size_t slot);
/* A wrapper: owns inner from now on. headroom: bytes that it puts in front of keys. */
void store_wrap(struct store *s, const struct store_ops *ops, struct store *inner, size_t slot,
		size_t headroom);
int store_wrapper_space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes);
/* Frees inner and s, which came from malloc(). */
void store_wrapper_free(struct store *s);

static inline void *store_slot(const struct store *s, struct store_request *req)
{
	return req->memory + s->slot;
}

/* Hands a request down to inner. */
void store_pass(struct store *s, struct store_request *req);
/* The request is answered as far as s goes: hands it up. In a worker, unless nothing was waited
 * for. */
void store_complete(struct store *s, struct store_request *req);

/* ---- answers ---- */

/* Drops the answer that there is: an attempt before, a page that was merged. */
void store_answer_clear(struct store_request *req);
/* The same but for err. */
void store_result_drop(struct store_request *req);
/* Set the answer and complete the request. */
void store_present(struct store *s, struct store_request *req);
void store_absent(struct store *s, struct store_request *req, enum store_evidence evidence);
/* code: negative and not -ENOENT. What is in err already is kept when fmt is NULL. */
void store_fail(struct store *s, struct store_request *req, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void store_unsupported(struct store *s, struct store_request *req);

/* Runs fn(arg = the request) in a worker; one job at a time. Fails the request when there is no
 * worker to be had. */
void store_work(struct store *s, struct store_request *req, pool_fn fn);
/* The store that store_work() was called for. */
struct store *store_working(const struct store_request *req);

#endif
