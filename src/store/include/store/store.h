/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects by key. A store knows neither JSON nor HDF5, nor what a key means. Keys are UTF-8 or
 * any other bytes without NUL, at most STORE_KEY_MAX, no leading slash; "/" separates prefixes.
 *
 * One ops struct per implementation (dir, mem; s3 to come) and per wrapper (count, fault, …);
 * wrappers stack in any order. Callers use the store_*() functions, which check the contract
 * before and after every call; never s->ops.
 *
 * Threads: every method may be called from any thread at any time between new and free.
 * Completion: `done` is called exactly once for every accepted request, from any thread,
 * possibly before the submitting call has returned (zero workers). A callback must not block on
 * another request of the same store.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/env.h>
#include <base/err.h>
#include <base/mem.h>

enum {
	STORE_KEY_MAX = 1024, /* bytes, as in S3 */
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
	store_get_done done;
	void *arg;
};

struct store_item {
	const char *key; /* whole key; for a prefix with its trailing delimiter */
	bool is_prefix;	 /* then meta is zero */
	struct store_meta meta;
};

struct store_list {
	const char *prefix;	 /* "" = everything. Need not end with the delimiter */
	bool delimit;		 /* "/" groups keys: what follows the next "/" is folded */
	const char *start_after; /* NULL or: only keys (and prefixes) greater than this */
	uint32_t max;		 /* items in this page, 1..1000; fewer may come */
};

struct store_page {
	struct store_item *items; /* in ascending byte order of key */
	size_t n;
	bool more; /* call again with start_after = next */
	const char *next;
	struct arena *arena; /* holds all of the above */
};
void store_page_release(struct store_page *page);
#define auto_page __attribute__((cleanup(store_page_release)))

struct store;

struct store_ops {
	const char *name; /* "dir", "mem", "count" … */
	/* Starts a get or head. Never fails itself: whatever goes wrong comes through done.
	 * -ENOENT no such object; -EACCES; -ESTALE, -EALREADY (conditions); -EFBIG; -EIO with the
	 * reason in err. */
	void (*get)(struct store *s, const struct store_get *req);
	/* One page, blocking. An unknown prefix is an empty page, not an error. */
	int (*list)(struct store *s, const struct store_list *req, struct store_page *page,
		    struct err *err);
	/* Whole object, replacing; atomic: a reader sees the old or the new. meta may be NULL. */
	int (*put)(struct store *s, const char *key, const void *body, size_t n,
		   const struct store_cond *cond, struct store_meta *meta, struct err *err);
	/* An object that is not there is no error. */
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
/* All items below a prefix, over as many pages as it takes, but at most `limit`: -E2BIG when
 * there are more (then nothing is returned, and no more than limit/1000+1 pages were asked for;
 * a directory store stops reading as soon as it has counted past it). */
int store_list_all(struct store *s, const char *prefix, bool delimit, uint32_t limit,
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
	bool delimit;
	uint32_t limit;
	struct store_page page;
	int code;
	struct err err;
};
int store_list_many(struct store *s, struct store_list_job *jobs, size_t n);

/* True when key is fit to be sent to any store: length, no NUL, no leading slash, no component
 * that is empty, "." or "..". */
bool store_key_ok(const char *key);

/* ---- implementations and wrappers: constructors are all that they export ---- */

/* A directory is the bucket (HSDS's POSIX layout). path must exist. Never leaves it: keys with
 * "..", links that lead out. An object that is read while HSDS writes it in place may be empty:
 * a zero-byte *.json is retried briefly, then reported as -ENOENT. NULL with err set. */
struct store *store_dir_new(const struct env *env, const char *path, struct err *err);
/* In memory. max bytes in all. */
struct store *store_mem_new(const struct env *env, struct err *err);

/* Counts requests and bytes of everything that passes. Owns inner. */
struct store_counts {
	uint64_t gets, range_gets, heads, lists, puts, deletes;
	uint64_t bytes_in, bytes_out; /* bodies got, bodies put */
	uint64_t failures;
	uint64_t in_flight_max; /* most gets under way at once */
};
struct store *store_count_new(struct store *inner, struct err *err);
void store_count_read(struct store *counting, struct store_counts *out);

/* Injects failures. Owns inner. spec, comma-separated, each "what:when[:value][@glob]":
 * what = fail (value: errno name, EIO), truncate (value: bytes kept), delay (value: ms),
 * flip (value: byte offset); when = n (the n-th matching request), n+ (from the n-th on),
 * *n (every n-th) or p% (a fraction, pseudo-random from a fixed seed). @glob: fnmatch(3) pattern
 * on the key. "" injects nothing. -EINVAL with the reason. */
struct store *store_fault_new(struct store *inner, const char *spec, struct err *err);

#endif
