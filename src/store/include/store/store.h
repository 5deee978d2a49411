/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects by key. A store knows neither JSON nor HDF5, nor what a key means. Keys are UTF-8 or
 * any other bytes without NUL, at most STORE_KEY_MAX, no leading slash; "/" separates prefixes.
 *
 * Everything that is asked of a store is one struct store_request. The caller owns it, fills it in,
 * submits it, and must not touch it until its `done` is called. The answer is in the request then,
 * and is one of three kinds:
 *
 *   PRESENT   the object is there, as meta and body say (a listing: as page says)
 *   ABSENT    the store has proved that there is no such object; `absence` holds the evidence
 *   UNKNOWN   the store could not tell; err says why. Its code is never -ENOENT
 *
 * Absence is data in this project: an absent chunk reads as fill values. So nothing may be taken
 * for absent unless store_absence() says that it is.
 *
 *   op      the caller sets                                       the answer, unless UNKNOWN
 *   GET     key; if wanted: range, max, known_etag, cond          PRESENT: meta, body; or ABSENT
 *   HEAD    key; if wanted: cond                                  PRESENT: meta; or ABSENT
 *   LIST    key, which is a prefix; if wanted: list               PRESENT: page, possibly empty
 *   PUT     key, pieces, n_pieces; if wanted: cond                PRESENT: meta of what was put
 *   DELETE  key; if wanted: cond.if_match                         ABSENT
 *
 * An object, got by a thread that may block:
 *
 *   auto_request struct store_request *req = store_request_new(s, STORE_GET);
 *   if (!req)
 *           return err_set(err, -ENOMEM, "out of memory");
 *   store_request_key(req, key);
 *   store_run(s, req);
 *   if (req->answer.state == STORE_UNKNOWN)
 *           return store_failure(&req->answer, err);
 *   if (store_absence(&req->answer))
 *           there is no such object
 *   else
 *           use req->answer.body, which lives as long as req
 *
 * A thread that must not block sets req->done and req->arg and calls store_submit() instead.
 *
 * One ops struct per implementation (dir, mem, s3/) and per wrapper (count, fault, prefix, retry,
 * diskcache/); wrappers stack in any order. Each hands the caller's own request down and sees it
 * again on the way up. What a wrapper has to remember of a request is in its slot of the request,
 * whose size is known when the stack is built, so nothing is allocated or copied on the way.
 *
 * Callers use the functions below, which check the contract before and after every call; never
 * s->ops. A key that is not fit (store_key_ok()) is foreign data like any other: UNKNOWN with
 * -EINVAL. A request that is malformed otherwise is a bug: an assertion.
 *
 * Threads: every function may be called from any thread at any time between new and free. `done` is
 * called exactly once for every submitted request, in a worker of the environment's pool or, where
 * nothing had to be waited for (no workers, a bad key), in the submitting thread before
 * store_submit() returns. From then on the request is the caller's again: `done` may free it, or
 * submit it once more. `done` must not block on another request. The functions that block say so,
 * and must not be called by a job of that pool.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/env.h>
#include <base/histogram.h>
#include <base/mem.h>

enum {
	STORE_KEY_MAX = 1024,  /* bytes, as in S3 */
	STORE_PAGE_MAX = 1000, /* items of a page, as in S3 */
	STORE_ETAG_MAX = 80,
};
#define STORE_TO_END UINT64_MAX

/* What is known of one version of an object. */
struct store_meta {
	uint64_t size;		   /* of the whole object, bytes */
	int64_t mtime_ns;	   /* since the epoch; 0 unknown */
	char etag[STORE_ETAG_MAX]; /* opaque, equal for equal versions, "" unknown */
};

/* ---- listings ---- */

struct store_item {
	const char *key; /* whole key; for a prefix with its trailing delimiter */
	bool is_prefix;	 /* then meta is zero. A directory store gives every directory as a
			    prefix, also one that holds no object: it does not descend to see */
	struct store_meta meta;
};

struct store_page {
	struct store_item *items; /* in ascending byte order of key */
	size_t n;
	bool more;	  /* call again with start_after = next */
	const char *next; /* begins with the prefix, greater than start_after; NULL unless more */
	struct arena *arena; /* holds all of the above */
};
void store_page_release(struct store_page *page);
#define auto_page __attribute__((cleanup(store_page_release)))

/* ---- requests ---- */

/* STORE_DELETE_MANY and STORE_COPY are reserved: they are answered with -EOPNOTSUPP. */
enum store_op {
	STORE_GET,
	STORE_HEAD,
	STORE_LIST,
	STORE_PUT,
	STORE_DELETE,
	STORE_DELETE_MANY,
	STORE_COPY,
	STORE_OPS
};
/* "get", "head" … */
const char *store_op_name(enum store_op op);

/* Where requests wait for each other (connections), the lower number is served first. */
enum store_priority { STORE_READER, STORE_PREFETCH, STORE_COMMIT, STORE_PRIORITIES };

/* Bytes of an object. A range that begins at or past the end gives an empty body, not an error; one
 * that ends past the end is cut there. */
struct store_range {
	uint64_t first;
	uint64_t length; /* STORE_TO_END: all from first on */
	bool from_end; /* the last `length` bytes, or the whole object when it has fewer; first is 0
			*/
};

/* Preconditions; a zeroed struct is none. The strings are borrowed until done. A store that cannot
 * check one answers -EOPNOTSUPP. */
struct store_cond {
	const char *if_match;	   /* not of a list. ETag: only this version, else -ESTALE */
	const char *if_none_match; /* get, head: `unchanged` when still this version; put: "*" =
				      only when absent, else -EEXIST */
	bool again;		   /* put: an earlier attempt of this very put may have succeeded
				      without our knowing. Where the store can tell that it did, a
				      condition that fails for that reason is success. Set by
				      store_retry_new() */
};

enum store_state { STORE_UNKNOWN, STORE_PRESENT, STORE_ABSENT };

/* How it was proved that an object is not there. */
enum store_evidence {
	STORE_LISTED = 1, /* a complete listing does not name it */
	STORE_SAID,   /* the service's own error document says NoSuchKey, or it did the delete */
	STORE_LOOKED, /* the directory that would hold it has no such entry */
};
struct store_absence {
	enum store_evidence evidence;
};

struct store_answer {
	enum store_state state;
	bool unchanged; /* PRESENT: still the version that if_none_match names; no body */
	struct store_absence absence;
	struct store_meta meta; /* of the whole object */
	struct bytes body; /* exactly the range; empty for all but a get. The request's: whoever
			      takes it over leaves an empty one */
	struct store_page page; /* of a listing; likewise */
	struct err err;		/* UNKNOWN: the code and the reason. Else code is 0 */
};

struct store;
struct store_request;
typedef void (*store_done)(struct store_request *req);

struct store_list {
	bool delimit; /* "/" groups keys: what follows the next "/" is folded */
	/* What is not named is concluded to be absent: an entry that is there but cannot be
	 * examined makes the listing fail. It always does without delimit; with it, and without
	 * this, it is left out and the log says so. */
	bool complete;
	/* The whole listing, over as many pages as it takes; the page that comes has more =
	 * false. -E2BIG when there are more than `limit` items: then no page that cannot be needed
	 * is asked for, and a directory store stops as soon as it has counted past the limit. */
	bool whole;
	uint32_t limit;	   /* of a whole listing; of a page: see store_ops.submit */
	uint32_t max;	   /* items of a page, at least 1; fewer may come: S3 and mem give at most
			      STORE_PAGE_MAX, dir gives what is asked for */
	char *start_after; /* NULL or: only keys (and prefixes) greater than this. In the request's
			      own buffer: store_request_start_after() */
};

struct store_request {
	/* What is asked for: the caller's, constant from submit to done. */
	enum store_op op;
	enum store_priority priority;
	char *key; /* in the request's own buffer of STORE_KEY_MAX + 1 bytes; of a listing: the
		      prefix, "" = everything, which need not end with the delimiter */
	struct store_range range; /* get */
	uint64_t max; /* get: -EFBIG when the answer's body would be longer; 0: no limit */
	struct store_cond cond;
	/* get: NULL, or the version that the caller has reason to believe current (a listing named
	 * it). Borrowed until done. No condition: a cache on the way may answer with that version
	 * without asking, everybody else ignores it. */
	const char *known_etag;
	struct store_list list;
	const struct piece *pieces; /* put: the body; borrowed until done */
	size_t n_pieces;
	/* NULL, or borrowed until done: while it is true the request is cancelled, and a store may
	 * end it with -ECANCELED. S3 does so once it has been true for half a second, because what
	 * comes by then is worth more than a connection; so does a request that waits to be
	 * repeated. */
	const atomic_bool *cancelled;
	store_done done;
	void *arg;

	struct store_answer answer;

	/* The stores' own. */
	struct store *top;	   /* where it was submitted */
	struct store *at;	   /* whose job it is */
	size_t slots;		   /* bytes of memory that are slots */
	struct store_page sum;	   /* of a whole listing, so far */
	struct pool_job job;	   /* of the store that has the request now */
	char *after;		   /* buffer for list.start_after */
	size_t room;		   /* of key and of after, bytes */
	alignas(16) char memory[]; /* slots, then the two buffers with headroom in front */
};

/* A request for this store (a wrapper: and all beneath it). Zeroed, but for these defaults: the
 * range is the whole object, a page has at most STORE_PAGE_MAX items, a whole listing has no limit.
 * NULL without memory. */
struct store_request *store_request_new(const struct store *s, enum store_op op);
/* The same in memory of the caller's, of store_request_size() bytes, aligned as malloc() does. */
size_t store_request_size(const struct store *s);
struct store_request *store_request_init(void *memory, const struct store *s, enum store_op op);
/* Back to what store_request_init() makes, for another use with the same store. Releases what the
 * answer holds. */
void store_request_reset(struct store_request *req, enum store_op op);
/* Releases what the answer holds; for a request in the caller's memory. */
void store_request_release(struct store_request *req);
/* NULL is fine. */
void store_request_free(struct store_request *req);
static inline void cleanup_store_request(struct store_request **req)
{
	store_request_free(*req);
}
#define auto_request __attribute__((cleanup(cleanup_store_request)))

/* Copies the text. A key that is too long makes the request fail with -EINVAL. */
void store_request_key(struct store_request *req, const char *key);
void store_request_start_after(struct store_request *req, const char *key);

/* The proof that the object is not there; NULL unless the store has one. */
static inline const struct store_absence *store_absence(const struct store_answer *a)
{
	return a->state == STORE_ABSENT ? &a->absence : NULL;
}
/* 0 unless UNKNOWN; then its code, with the reason copied to err. */
int store_failure(const struct store_answer *a, struct err *err);

/* ---- calls ---- */

/* Releases the answer of an earlier use. s: the store that the request was made for. */
void store_submit(struct store *s, struct store_request *req);
/* Submits one request, or n side by side, and waits for them. Blocks: not for jobs of the pool. The
 * caller leaves done and arg alone: these functions set them. */
void store_run(struct store *s, struct store_request *req);
void store_run_all(struct store *s, struct store_request *const *reqs, size_t n);
/* Bytes behind the store; -EOPNOTSUPP when it cannot tell. */
int store_space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes);
/* Frees a stack from its top. No request is under way any more. NULL is fine. */
void store_free(struct store *s);

/* n requests in one array, for a round. NULL without memory. */
struct store_request **store_requests_new(const struct store *s, size_t n);
void store_requests_free(struct store_request **reqs, size_t n);

/* A long row of requests, each consumed while later ones are under way. Blocks. */
struct store_row {
	size_t n;
	size_t at_once; /* requests that may be under way, or wait for those before them */
	/* Describes the i-th request, which is a get of a whole object until it is changed. False:
	 * nothing is to be asked, take gets the request without an answer. */
	bool (*request)(void *arg, size_t i, struct store_request *req);
	/* The i-th answer, in the calling thread, in order, as soon as it is there and all before
	 * it were taken. What is not zero ends the row. */
	int (*take)(void *arg, size_t i, struct store_request *req);
	void *arg;
};
/* 0, what take returned, or -ENOMEM. */
int store_run_row(struct store *s, const struct store_row *row);

/* True when key is fit to be sent to any store: length, no NUL, no leading slash, no component
 * that is empty, "." or "..". */
bool store_key_ok(const char *key);

/* ---- implementations and wrappers: constructors are all that they export ---- */

/* A directory is the bucket (HSDS's POSIX layout). path must exist. Never leaves it: keys with
 * "..", links that lead out (-EACCES). Objects are regular files. That an object is absent is
 * proved by the directory that would hold it. HSDS writes objects in place: a zero-byte *.json is
 * read again briefly before it is answered as it is, and one that is written to each time that it
 * is read fails with -EIO. if_match of put and delete is compared, then acted upon: another writer
 * may come between the two (if_none_match has no such gap). A put where the key is a directory
 * gives -EISDIR, where a part of it is an object -ENOTDIR. NULL with err set. */
struct store *store_dir_new(const struct env *env, const char *path, struct err *err);
/* In memory, for tests. Knows no times (mtime_ns is 0) and, unlike a directory, can hold both "a"
 * and "a/b". */
struct store *store_mem_new(const struct env *env, struct err *err);

/* A bucket of an S3 service: s3/s3.h. A cache on disk: diskcache/diskcache.h. */

/* Repeats a request after -EAGAIN, at growing intervals; then -EIO with the number of attempts.
 * Owns inner, on success. opt NULL, or 0 in it: the defaults, which outlast a server that is away
 * for 30 s. */
struct store_retry_options {
	unsigned int attempts; /* in all */
	uint64_t base_ms;      /* the first pause; each further one is twice as long … */
	uint64_t cap_ms;       /* … but no longer than this; half of each is random */
	uint64_t budget_ms;    /* no attempt begins later than this after the first */
};
struct store *store_retry_new(struct store *inner, const struct store_retry_options *opt,
			      struct err *err);
/* Attempts so far that repeated a request. */
uint64_t store_retry_count(struct store *retrying);
/* Ends the thread of such a store; the next request that waits starts it again. No request is under
 * way. For a daemon that asks before it forks. */
void store_retry_rest(struct store *retrying);

/* What lies below prefix ("a/b", as long as a key may be) as a bucket of its own. Owns inner, on
 * success. NULL with -EINVAL for what cannot be a prefix. */
struct store *store_prefix_new(struct store *inner, const char *prefix, struct err *err);

/* Counts requests and bytes of everything that passes, what came of each, and how long its caller
 * waited. Owns inner, on success. */
enum { STORE_RESULTS = 21 };
struct store_counts {
	uint64_t calls[STORE_OPS];
	uint64_t range_gets;	      /* those of the gets that asked for a part */
	uint64_t bytes_in, bytes_out; /* bodies got, bodies put */
	uint64_t failures;	      /* UNKNOWN, and ABSENT where an object was asked for */
	uint64_t in_flight_max;	      /* most gets under way at once */
	uint64_t results[STORE_OPS][STORE_RESULTS]; /* calls that ended so: store_result_name() */
	struct histogram_counts seconds[STORE_OPS];
};
struct store *store_count_new(struct store *inner, struct err *err);
void store_count_read(struct store *counting, struct store_counts *out);
/* "ok", "absent", "EIO" …, "other"; result < STORE_RESULTS. */
const char *store_result_name(unsigned int result);

/* Injects failures, as spec orders them (store/fault_spec.h). Owns inner, on success. A request
 * that is delayed sleeps in a worker of the pool before it is passed on, so at most as many are
 * delayed at once as there are workers. What fails does not reach inner. NULL with -EINVAL and the
 * reason in err. */
struct store *store_fault_new(struct store *inner, const char *spec, struct err *err);

#endif
