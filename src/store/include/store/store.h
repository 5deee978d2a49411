/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects by key. A store knows neither JSON nor HDF5, nor what a key means. Keys are UTF-8 or
 * any other bytes without NUL, at most STORE_KEY_MAX, no leading slash; "/" separates prefixes.
 *
 * One ops struct per implementation (dir, mem, s3) and per wrapper (count, diskcache, fault,
 * prefix, retry); wrappers stack in any order. Callers use the store_*() functions, which check the
 * contract before and after every call; never s->ops. A key that is not fit (store_key_ok()) is
 * foreign data like any other: -EINVAL. A request that is malformed otherwise is a bug: an
 * assertion.
 *
 * Threads: every method may be called from any thread at any time between new and free.
 * Completion: `done` is called exactly once for every accepted request, from any thread,
 * possibly before the submitting call has returned (zero workers). A callback must not block on
 * another request of the same store. The blocking calls wait for jobs of the environment's pool,
 * so a job of that pool must not make them, except store_list_page(), store_list_all(),
 * store_put(), store_delete() and store_space(), which run in the calling thread.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/env.h>
#include <base/err.h>
#include <base/histogram.h>
#include <base/mem.h>
#include <store/meter.h>

enum {
	STORE_KEY_MAX = 1024,  /* bytes, as in S3 */
	STORE_PAGE_MAX = 1000, /* items of a page, as in S3 */
	STORE_ETAG_MAX = 80,
};

/* What is known of one version of an object. */
struct store_meta {
	uint64_t size;		   /* of the whole object, bytes */
	int64_t mtime_ns;	   /* since the epoch; 0 unknown */
	char etag[STORE_ETAG_MAX]; /* opaque, equal for equal versions, "" unknown */
};

/* Preconditions; a zeroed struct is none. A store that cannot check one answers -EOPNOTSUPP. */
struct store_cond {
	const char *if_match;	   /* etag: only this version, else -ESTALE */
	const char *if_none_match; /* get: -EALREADY when still this version; put: "*" = only when
				      absent, else -EEXIST */
	bool again;		   /* put: an earlier attempt of this very put may have been done
				      without our knowing. Where the store can tell that it was, a
				      condition that fails for that reason is success */
};

enum store_op { STORE_GET, STORE_HEAD };

struct store_get_result {
	int code;		/* 0 or negative errno */
	struct bytes body;	/* transferred to the callee; exactly the range (cut at the
				   object's end), empty for head */
	struct store_meta meta; /* of the whole object */
	struct err err;
};

typedef void (*store_get_done)(void *arg, struct store_get_result *res);

struct store_get {
	enum store_op op;
	const char *key;	/* borrowed until the submitting call returns */
	uint64_t offset;	/* first byte */
	uint64_t length;	/* UINT64_MAX: to the end. An offset at or past the end gives an
				   empty body, not an error */
	uint64_t max;		/* -EFBIG when the answer's body would be longer; 0: no limit */
	struct store_cond cond; /* borrowed likewise */
	/* NULL, or the version that the caller has reason to believe current (a listing named it).
	 * Borrowed likewise. No condition: a cache on the way may answer with that version without
	 * asking, everybody else ignores it. */
	const char *known_etag;
	/* NULL, or borrowed until done is called: while it is true nobody wants the answer, and a
	 * store may give the request up, with -ECANCELED. S3 does so once it has been true for half
	 * a second: what comes by then is worth more than a connection. So does who waits to ask
	 * again. */
	const atomic_bool *unwanted;
	store_get_done done;
	void *arg;
};

struct store_item {
	const char *key; /* whole key; for a prefix with its trailing delimiter */
	bool is_prefix;	 /* then meta is zero. A directory store gives every directory as a
			    prefix, also one that holds no object: it does not descend to see */
	struct store_meta meta;
};

struct store_list {
	const char *prefix;	 /* "" = everything. Need not end with the delimiter */
	bool delimit;		 /* "/" groups keys: what follows the next "/" is folded */
	bool complete;		 /* an entry that is there but cannot be looked at makes the listing
				    fail: it is to prove what is absent. Always so without delimit.
				    Otherwise such an entry is left out, and the log says so */
	const char *start_after; /* NULL or: only keys (and prefixes) greater than this */
	uint32_t max;		 /* items in this page, at least 1; fewer may come: S3 and mem
				    give at most STORE_PAGE_MAX, dir gives what is asked */
	uint32_t limit;		 /* 0, or: the caller throws all away when more than this many
				    items follow start_after. A store that notices more may then
				    answer -E2BIG at once, without having read the rest */
};

struct store_page {
	struct store_item *items; /* in ascending byte order of key */
	size_t n;
	bool more;	     /* call again with start_after = next */
	const char *next;    /* begins with prefix, greater than start_after; NULL unless more */
	struct arena *arena; /* holds all of the above */
};
void store_page_release(struct store_page *page);
#define auto_page __attribute__((cleanup(store_page_release)))

struct store;

struct store_ops {
	const char *name; /* "dir", "mem", "count" … */
	/* Starts a get or head. Never fails itself: whatever goes wrong comes through done.
	 * -ENOENT: it is proved that there is no such object; -EACCES; -ENOLINK a link that leads
	 * nowhere; -ESTALE, -EALREADY (conditions); -EFBIG; -EIO with the reason in err. Here and
	 * below, -EAGAIN: a passing fault of a store across a network; above store_retry_new()
	 * nobody sees it. */
	void (*get)(struct store *s, const struct store_get *req);
	/* One page, in the calling thread: it waits for no job of the pool. An unknown prefix is
	 * an empty page, not an error; a key that store_key_ok() refuses is left out. -E2BIG only
	 * with req->limit; -EACCES, -EIO; of an entry below a directory that cannot be looked at
	 * -EACCES, -ELOOP, -ENOLINK. */
	int (*list)(struct store *s, const struct store_list *req, struct store_page *page,
		    struct err *err);
	/* Whole object, replacing; atomic: a reader sees the old or the new. Durable when it
	 * returns. cond and meta may be NULL. -ESTALE, -EEXIST (conditions); -EACCES, -ENOSPC,
	 * -EIO. */
	int (*put)(struct store *s, const char *key, const void *body, size_t n,
		   const struct store_cond *cond, struct store_meta *meta, struct err *err);
	/* An object that is not there is no error, whatever the condition. cond may be NULL;
	 * -ESTALE for another version than if_match. */
	int (*del)(struct store *s, const char *key, const struct store_cond *cond,
		   struct err *err);
	/* Optional: bytes free and total behind the store; -EOPNOTSUPP. */
	int (*space)(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes);
	/* No request is under way any more. */
	void (*free)(struct store *s);
};

/* Every implementation embeds this first. */
struct store {
	const struct store_ops *ops;
	const struct env *env;
};

/* ---- checked calls ---- */
void store_get_async(struct store *s, const struct store_get *req);
/* Blocking: waits for the completion. res is filled always; the caller releases res->body.
 * Returns res->code, copies the reason to err. */
int store_get(struct store *s, const char *key, uint64_t offset, uint64_t length, uint64_t max,
	      const struct store_cond *cond, struct store_get_result *res, struct err *err);
int store_head(struct store *s, const char *key, struct store_meta *meta, struct err *err);
int store_list_page(struct store *s, const struct store_list *req, struct store_page *page,
		    struct err *err);
/* How to list: fields of struct store_list. */
enum {
	STORE_DELIMIT = 1 << 0,
	STORE_COMPLETE = 1 << 1,
};
/* All items below a prefix, over as many pages as it takes, but at most `limit`: -E2BIG when
 * there are more (then nothing is returned, and of a store that fills its pages no more than
 * limit/1000 (rounded up) were asked for; a directory store stops reading as soon as it has counted
 * past it). */
int store_list_all(struct store *s, const char *prefix, unsigned int how, uint32_t limit,
		   struct store_page *all, struct err *err);
int store_put(struct store *s, const char *key, const void *body, size_t n,
	      const struct store_cond *cond, struct store_meta *meta, struct err *err);
int store_delete(struct store *s, const char *key, const struct store_cond *cond, struct err *err);
int store_space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes);
void store_free(struct store *s);

/* Many at once, blocking until all are done: results in the order of the keys. For the rounds of
 * opening a domain. Results are the caller's; a failure is in its own result. Returns 0 or
 * -ENOMEM. reqs[i].done and arg are ignored. */
int store_get_many(struct store *s, const struct store_get *reqs, size_t n,
		   struct store_get_result *results);
/* Likewise for lists, in workers of the environment: each of n store_list_all() with its own
 * result and code. */
struct store_list_job {
	const char *prefix;
	unsigned int how;
	uint32_t limit;
	struct store_page page;
	int code;
	struct err err;
};
int store_list_many(struct store *s, struct store_list_job *jobs, size_t n);
/* Gets and lists side by side: one round. Results as of the two above. */
int store_round(struct store *s, const struct store_get *reqs, size_t nreqs,
		struct store_get_result *results, struct store_list_job *jobs, size_t njobs);

/* A long row of gets, each consumed while later ones are under way. Blocking. */
struct store_each {
	size_t n;
	size_t at_once; /* results that may be under way, or wait for those before them */
	/* Describes the i-th request; its strings are borrowed until the next call. done and arg
	 * are ignored. False: nothing is to be asked, take gets a zeroed result. */
	bool (*request)(void *arg, size_t i, struct store_get *req);
	/* The i-th result, in the calling thread, in order, as soon as it is there and all before
	 * it were taken. The body is released afterwards; who takes it over leaves an empty one.
	 * What is not zero ends the row. */
	int (*take)(void *arg, size_t i, struct store_get_result *res);
	void *arg;
};
/* 0, what take returned, or -ENOMEM. */
int store_get_each(struct store *s, const struct store_each *each);

/* True when key is fit to be sent to any store: length, no NUL, no leading slash, no component
 * that is empty, "." or "..". */
bool store_key_ok(const char *key);

/* ---- implementations and wrappers: constructors are all that they export ---- */

/* A directory is the bucket (HSDS's POSIX layout). path must exist. Never leaves it: keys with
 * "..", links that are absolute or lead out (-EACCES). Objects are regular files; anything else is
 * -ENOENT. That an object is absent is proved by the directory that it would be in: the entry is
 * looked at without following links. An object that is read while HSDS writes it in place may be
 * empty: a zero-byte *.json is retried briefly, then reported as -ENOENT. One that is written each
 * time that it is read is -EIO. if_match of put and delete is compared, then acted upon:
 * another writer may come between the two (if_none_match has no such gap). A put where the key is
 * a directory gives -EISDIR, where a part of it is an object -ENOTDIR. NULL with err set. */
struct store *store_dir_new(const struct env *env, const char *path, struct err *err);
/* In memory, for tests. Knows no times (mtime_ns is 0) and, unlike a directory, can hold both "a"
 * and "a/b". */
struct store *store_mem_new(const struct env *env, struct err *err);

/* A bucket of an S3 service: store/s3.h. */

/* Asks again after -EAGAIN, at growing intervals; then -EIO with the number of attempts. Owns
 * inner, on success. opt NULL, or 0 in it: the usual, which outlasts a server that is away for
 * 30 s. */
struct store_retry_options {
	unsigned int attempts; /* in all */
	uint64_t base_ms;      /* the first pause; each further one is twice as long … */
	uint64_t cap_ms;       /* … but no longer than this; half of each is random */
	uint64_t budget_ms;    /* no attempt begins later than this after the first */
	struct meter *meter;   /* counts the further attempts; borrowed, may be NULL */
};
struct store *store_retry_new(struct store *inner, const struct store_retry_options *opt,
			      struct err *err);

/* What lies below prefix ("a/b", as long as a key may be) as a bucket of its own. Owns inner, on
 * success. NULL with -EINVAL for what cannot be a prefix. */
struct store *store_prefix_new(struct store *inner, const char *prefix, struct err *err);

/* Counts requests and bytes of everything that passes, what came of each, and how long its caller
 * waited. Owns inner, on success. */
enum store_call {
	STORE_CALL_GET,
	STORE_CALL_HEAD,
	STORE_CALL_LIST,
	STORE_CALL_PUT,
	STORE_CALL_DELETE,
	STORE_CALLS
};
enum { STORE_RESULTS = 20 };
struct store_counts {
	uint64_t gets, range_gets; /* range_gets: those of the gets that asked for a part */
	uint64_t heads, lists, puts, deletes;
	uint64_t bytes_in, bytes_out; /* bodies got, bodies put */
	uint64_t failures;	      /* negative results of any request, -ENOENT too */
	uint64_t in_flight_max;	      /* most gets under way at once */
	uint64_t results[STORE_CALLS][STORE_RESULTS]; /* calls that ended so: store_result_name() */
	struct histogram_counts seconds[STORE_CALLS];
};
struct store *store_count_new(struct store *inner, struct err *err);
void store_count_read(struct store *counting, struct store_counts *out);
/* "get" … */
const char *store_call_name(enum store_call call);
/* "ok", "ENOENT" …, "other"; result < STORE_RESULTS. */
const char *store_result_name(unsigned int result);

/* Injects failures, as spec orders them (store/fault_spec.h). Owns inner, on success. A get that is
 * delayed sleeps in a worker of the pool before it is passed on, so at most as many gets are
 * delayed at once as there are workers; other requests sleep in their caller. What fails does not
 * reach inner. NULL with -EINVAL and the reason in err. */
struct store *store_fault_new(struct store *inner, const char *spec, struct err *err);

#endif
