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
 *
 * A store at the bottom of a stack embeds struct store first, sets it up by store_init(), and in
 * its submit() either answers at once or calls store_work(), whose job answers in a worker. To
 * answer is to fill in req->answer (a page by store/page.h) and to call one of store_present(),
 * store_absent() and store_fail(), once. src/store/mem.c is the shortest complete one.
 *
 * A wrapper is set up by store_wrap(). Its submit() calls store_pass(), its completed() looks at
 * the answer and calls store_complete(), or store_pass() again for another attempt. It may also
 * answer in its submit() and not pass the request on. Its constructor leaves inner to the caller
 * when it fails. src/store/prefix.c is the shortest one.
 *
 * tests/support/store_contract.h has the contract as tests, for every implementation and wrapper.
 */
#ifndef STORE_IMPLEMENT_H
#define STORE_IMPLEMENT_H

#include <stdlib.h>

#include <store/store.h>

struct store_ops {
	const char *name; /* "dir", "count" … */
	/* Starts a request and never fails itself: whatever goes wrong is an answer. The op is one
	 * of the first five; what is not supported is answered with store_unsupported(). The key
	 * has passed store_key_ok(); the prefix of a list may be anything. A whole listing comes as
	 * one request per page, so `whole` is of no concern here. Called in any thread, so it must
	 * not block: that is for store_work().
	 *
	 * get, head: PRESENT with the meta, and of a get with the body, or `unchanged`; ABSENT with
	 *   the evidence. UNKNOWN with -EACCES; -ESTALE (if_match); -EFBIG; -EIO with the reason.
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
	/* Of a wrapper: a request that it passed on comes back, answered. In the thread in which
	 * the store beneath has completed it; it must not block either. */
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

/* slot: bytes that it wants in each request for itself: store_slot(). They are zero when a request
 * is submitted. s is zeroed. */
void store_init(struct store *s, const struct store_ops *ops, const struct env *env, size_t slot);
/* A wrapper: owns inner from now on. headroom: the most bytes that it puts in front of a key. */
void store_wrap(struct store *s, const struct store_ops *ops, struct store *inner, size_t slot,
		size_t headroom);
/* For the ops of a wrapper that has nothing of its own to say or to release. */
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

/* Drops the answer that there is: of an earlier attempt, or a page that was merged. */
void store_answer_clear(struct store_request *req);
/* The same, but err stays. */
void store_result_drop(struct store_request *req);
/* These set the answer's state and complete the request. Of PRESENT, meta, body, `unchanged` and
 * page are filled in before; store_absent() drops them. */
void store_present(struct store *s, struct store_request *req);
void store_absent(struct store *s, struct store_request *req, enum store_evidence evidence);
/* code: negative and not -ENOENT. fmt NULL: the reason is in the answer's err already. */
void store_fail(struct store *s, struct store_request *req, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void store_unsupported(struct store *s, struct store_request *req);

/* Runs fn(req) in a worker; one job of a request at a time. Where the pool has no worker, and when
 * none can be started, it runs here and at once. */
void store_work(struct store *s, struct store_request *req, pool_fn fn);
/* In such a job: the store that store_work() was called for. */
struct store *store_working(const struct store_request *req);

#endif
