/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects by key. A store does not know what a key means: neither JSON nor HDF5. A key is at most
 * STORE_KEY_MAX bytes, in UTF-8 or in any other encoding without NUL. "/" separates its components.
 *
 * Every operation is one struct store_request. The caller owns it, fills it in and submits it, and
 * must not touch it until `done` is called. By then the request holds the answer, which has one of
 * three states:
 *
 *   PRESENT   the object exists; meta and body describe it (of a listing: page)
 *   ABSENT    the store has proved that the object does not exist; `absence` holds the evidence
 *   UNKNOWN   the store could not find out; err holds the reason. Its code is never -ENOENT
 *
 * Absence is data in this project: an absent chunk reads as fill values. Therefore a caller
 * concludes that an object is absent only from store_absence(), never from an error.
 *
 *   op      the caller sets                            the answer, unless it is UNKNOWN
 *   GET     key; optional: range, max, known_etag,     PRESENT with meta and body, or ABSENT
 *           cond
 *   HEAD    key; optional: cond, wants_note,           PRESENT with meta, or ABSENT
 *           wants_mark
 *   LIST    key, which is a prefix; optional: list     PRESENT with page, which may be empty
 *   PUT     key; pieces, n_pieces, or body;            PRESENT with meta of the new version
 *           optional: cond, note, mark
 *   DELETE  key; optional: cond.if_match               ABSENT
 *
 * A thread that may block gets an object like this:
 *
 *   auto_request struct store_request *req = store_request_new(s, STORE_GET);
 *   if (!req)
 *           return err_no_memory(err);
 *   store_request_key(req, key);
 *   store_run(s, req);
 *   if (req->answer.state == STORE_UNKNOWN)
 *           return store_failure(&req->answer, err);
 *   if (store_absence(&req->answer))
 *           the object does not exist
 *   else
 *           use req->answer.body, which is valid as long as req
 *
 * store_move() gives an object another key; it is a call that blocks, not a request.
 *
 * A thread that must not block sets req->done and req->arg and calls store_submit() instead.
 *
 * Each implementation (dir, mem, s3/) and each wrapper (count, fault, prefix, retry, diskcache/) is
 * one ops struct. Wrappers can be stacked in any order. A wrapper passes the caller's own request
 * down and gets it back on its way up. It keeps its state of a request in private memory inside the
 * request. The sizes of all such memory are known when the stack is built, so a request is neither
 * copied nor extended on its way.
 *
 * Callers use the functions below, never s->ops. The functions check the contract before and after
 * every call. If a key is invalid (see store_key_ok()), the answer is UNKNOWN with -EINVAL, because
 * keys may come from foreign data. Any other malformed request is a bug of the caller and fails an
 * assertion.
 *
 * Threads: every function may be called in any thread at any time between new and free. `done` is
 * called exactly once for each submitted request. It is called in a worker of the environment's
 * pool or in a thread of the store; or, if the store does not have to wait for anything (no
 * workers, an invalid key), in the submitting thread before store_submit() returns. From then on
 * the request belongs to the caller again: `done` may free it or submit it once more. `done` must
 * not block on another request. A function that blocks says so; a job of the pool must not call it.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <hsmount/err.h>
#include <base/cancelled.h>
#include <base/env.h>
#include <base/histogram.h>
#include <base/mem.h>

enum {
	STORE_KEY_MAX = 1024,  /* bytes, as in S3 */
	STORE_PAGE_MAX = 1000, /* items of a page, as in S3 */
	STORE_ETAG_MAX = 80,
	STORE_NOTE_MAX = 512, /* bytes */
	STORE_MARK_MAX = 64,
	STORE_UPLOAD_ID_MAX = 2047,
};
#define STORE_TO_END UINT64_MAX

/* One version of an object. */
struct store_meta {
	uint64_t size;		   /* of the whole object, bytes */
	int64_t mtime_ns;	   /* since the epoch; 0 if unknown */
	char etag[STORE_ETAG_MAX]; /* opaque; equal for equal versions; "" if unknown */
};

/* ---- listings ---- */

/* An object; in a listing with `delimit` also a prefix; in one with `markers` also a directory
 * marker: an object whose key ends with "/", which consoles and other tools put for an empty
 * folder. S3 and mem have markers, a directory has none. S3 and mem list a prefix only if it
 * contains an object. A directory store lists every directory as a prefix, even one without
 * objects, because it does not descend to find out. */
struct store_item {
	const char *key; /* the whole key; a prefix and a marker have their trailing "/" */
	bool is_prefix;
	struct store_meta meta; /* zero for a prefix */
};

struct store_page {
	struct store_item *items; /* in ascending byte order of key */
	size_t n;
	bool more;	  /* more items follow; list again with start_after = next */
	const char *next; /* begins with the prefix, greater than start_after; NULL unless more */
	/* The first key that the listing leaves out because it is no valid key, in printable form
	 * and with the reason, or NULL. Of a whole listing: of its first page. */
	const char *left_out;
	struct arena *arena; /* owns all of the above */
};
static inline bool store_item_is_marker(const struct store_item *item)
{
	return !item->is_prefix && item->key[0] && item->key[strlen(item->key) - 1] == '/';
}
/* Frees the page and zeroes it. The page may be zeroed already. */
void store_page_release(struct store_page *page);
#define auto_page __attribute__((cleanup(store_page_release)))

/* ---- requests ---- */

enum store_op { STORE_GET, STORE_HEAD, STORE_LIST, STORE_PUT, STORE_DELETE, STORE_OPS };
/* Returns "get", "head" … */
const char *store_op_name(enum store_op op);

/* Requests that wait for a connection are sent in this order. */
enum store_priority { STORE_READER, STORE_PREFETCH, STORE_COMMIT, STORE_PRIORITIES };

/* A range of an object's bytes. If it begins at or past the end of the object, the body is empty,
 * which is no error. If it reaches past the end, it is cut there. */
struct store_range {
	uint64_t first;	 /* 0 if from_end */
	uint64_t length; /* STORE_TO_END for all bytes from first on */
	bool from_end;	 /* the last `length` bytes, or the whole object if it is shorter */
};

/* Preconditions. A zeroed struct has none. The strings are borrowed until `done`. If a server
 * does not support a condition, the store compares the version itself before it writes, and another
 * writer may come between the two. */
struct store_cond {
	/* An ETag, not for LIST. If the object has another version, the request fails with
	 * -ESTALE. */
	const char *if_match;
	/* GET, HEAD: an ETag. If the object still has this version, the answer is `unchanged` and
	 * has no body. PUT: "*". If the object exists, the request fails with -EEXIST. */
	const char *if_none_match;
	/* PUT: an earlier attempt of this request may have succeeded although its answer was lost.
	 * The mark shows whether it did. If the service drops marks, a store whose ETags follow
	 * from the bytes compares those. A condition that fails only because of that attempt counts
	 * as met. store_retry_new() sets this, unless the service has refused the attempt. A caller
	 * sets it if an earlier process may have made the same request. */
	bool retried;
	/* PUT with if_match: the object gets another version also if its bytes stay the same. Then
	 * a DELETE of the old version, which another program has sent, does not remove it. S3 sends
	 * it in parts, unless the old version was sent so: the ETag has another form then. A
	 * service that refuses this, and an empty object, may keep the version. */
	bool is_new_version;
};

enum store_state { STORE_UNKNOWN, STORE_PRESENT, STORE_ABSENT };

/* How the store has proved that an object is absent. */
enum store_evidence {
	STORE_BY_LISTING = 1, /* a complete listing does not contain it */
	STORE_BY_SERVICE,   /* the service's error document says NoSuchKey, or it did the delete */
	STORE_BY_DIRECTORY, /* the directory that would contain it has no such entry */
};
struct store_absence {
	enum store_evidence evidence;
};

struct store_answer {
	enum store_state state;
	bool unchanged; /* PRESENT: the version that if_none_match names; no body */
	/* PUT, DELETE: the object may have been changed, even if this answer says that the
	 * condition fails. Either the request was sent more than once, and an attempt whose
	 * answer was lost has changed it; or another writer has replaced the object just after
	 * this PUT, or the store could not find out whether one has. */
	bool repeated;
	/* PUT that fails with -EAGAIN: the service has not carried it out. Otherwise it may have.
	 */
	bool refused;
	/* DELETE with cond.if_match: there was no object when the store looked at it. If the answer
	 * is `repeated`, an earlier attempt may have deleted it. */
	bool was_absent;
	struct store_absence absence; /* ABSENT */
	struct store_meta meta;	      /* of the whole object; if PRESENT, but not of LIST */
	/* GET: exactly the range. LIST: the page. They belong to the request. A caller that takes
	 * one over leaves a zeroed one. */
	struct bytes body;
	struct store_page page;
	/* HEAD with wants_note: true, unless it is `unchanged`. Other HEADs, and GETs: true if the
	 * store got to know the note at no cost. */
	bool has_note;
	char note[STORE_NOTE_MAX + 1]; /* "" if the object has none, or none that is valid */
	/* HEAD with wants_mark: true, unless it is `unchanged`. */
	bool has_mark;
	char mark[STORE_MARK_MAX + 1]; /* "" if the object has none, or none that is valid */
	/* UNKNOWN with -EAGAIN: a checksum of the answer that is damaged, or 0. If a repeated
	 * request gets an answer that is damaged in the same way, no further attempt helps. */
	uint32_t damage;
	struct err err; /* UNKNOWN: the code and the reason; otherwise the code is 0 */
};

struct store;
struct store_request;
typedef void (*store_done)(struct store_request *req);

struct store_list {
	/* "/" groups keys: all keys with the same text up to the next "/" after the prefix become
	 * one item, a prefix. */
	bool delimit;
	/* Directory markers are items, too. Otherwise they are left out. */
	bool markers;
	/* The caller treats every object that the listing does not contain as absent. If an entry
	 * exists but cannot be examined, the listing fails. Without `complete`, a listing with
	 * `delimit` leaves out such an entry and logs a warning; a listing without `delimit` always
	 * fails. */
	bool complete;
	/* The whole listing, from as many pages as necessary. Its page has more = false. If it has
	 * more than `limit` items, it fails with -E2BIG and the rest is not requested; a directory
	 * store stops as soon as it has counted more than `limit`. */
	bool whole;
	/* If it is not NULL, a listing has only items up to this key. Borrowed until `done`. */
	const char *until;
	uint32_t limit; /* of a whole listing. Of a single page: see submit() in implement.h */
	/* Items of a page, at least 1. A page may have fewer: S3 and mem return at most
	 * STORE_PAGE_MAX, dir returns up to max. */
	uint32_t max;
	/* If it is not NULL, a listing has only keys and prefixes greater than this. It is in the
	 * request's own buffer, see store_request_start_after(). */
	char *start_after;
};

struct store_request {
	/* Set by the caller, constant from submit to `done`. */
	enum store_op op;
	enum store_priority priority;
	char *key; /* in the request's own buffer, see store_request_key(). LIST: the prefix, which
		      need not end with "/"; "" lists everything */
	struct store_range range; /* GET */
	uint64_t max; /* GET: fails with -EFBIG if the body would be longer; 0 if there is no limit
		       */
	/* GET: the length that the body probably has, or 0 if it is unknown. A store whose link is
	 * shared by all its requests sends prefetches at intervals that depend on it. */
	uint64_t expected;
	struct store_cond cond;
	/* GET: the version that a listing has just shown, borrowed until `done`, or NULL. This is
	 * not a condition: a cache in the stack may answer with that version without a request to
	 * the service. All other stores ignore it. */
	const char *known_etag;
	/* GET: the caller keeps the object itself, so a cache in the stack does neither look it up
	 * nor store it. */
	bool is_kept;
	/* GET of a range: a cache in the stack may store the range by itself. Otherwise it stores
	 * whole objects only. */
	bool keep_range;
	/* GET with keep_range: the parts of the range that the caller needs, sorted, borrowed until
	 * `done`, or NULL if it needs all of it. A cache in the stack that has all parts may answer
	 * with other bytes between them. */
	const struct store_range *parts;
	size_t n_parts;
	struct store_list list;	    /* LIST */
	const struct piece *pieces; /* PUT: the body; borrowed until `done` */
	size_t n_pieces;
	/* PUT: if it is not NULL, the bytes of this source are the body, instead of pieces. It is
	 * borrowed until `done`. A store reads it in a thread of its own, never two at a time, so a
	 * read may wait for another request. A repeated attempt reads it again and must find the
	 * same bytes. An error of the source fails the request with its code and is not repeated:
	 * -EAGAIN and -ENOENT become -EIO. Nothing is stored then. */
	struct source *body;
	/* PUT: the same for a part that has been prepared (source_prepare()). A store that sends
	 * such parts (store_part_min()) reads it in any thread, and sends it with its CRC, so that
	 * no other bytes are stored. Errors of the source may become -EIO. */
	const struct source_part *part;
	/* PUT: the object may be lost if the machine stops before the next store_sync(). */
	bool deferred;
	/* PUT: S3 may send an object of more than 64 MiB in parts. The ETag is not the MD5 then,
	 * and another writer may come between the check of a condition and the change. */
	bool in_parts;
	/* PUT: a short text about the object, which is stored with it, or NULL; see
	 * store_note_ok(). If it is NULL, the new object has no note. It is borrowed until `done`.
	 * A directory whose file system has no extended attributes puts the object without the
	 * note. */
	const char *note;
	bool wants_note; /* HEAD: the answer has the note of the object */
	/* PUT: a short text that identifies the request that has put the object, or NULL; see
	 * store_mark_ok(). No other request has it. It is stored with the object, and borrowed
	 * until `done`. If the condition fails and the object has this mark, an earlier attempt has
	 * put the object: the answer is PRESENT with its meta. A conditional PUT without a mark
	 * gets a random one from store_retry_new(). A copy of the object does not have its mark; a
	 * moved object has it. */
	const char *mark;
	bool wants_mark; /* HEAD: the answer has the mark of the object */
	/* While this is true, the request is cancelled, and a store may fail it with -ECANCELED. S3
	 * does so half a second after the cancellation, because an answer that arrives within that
	 * time is worth more than a closed connection. The same applies to a request that waits for
	 * its next attempt. */
	struct cancelled cancelled;
	store_done done;
	void *arg;
	/* `done` only notes that the request is done. So a store need not wake a worker for a small
	 * answer: it may call `done` in the thread that serves all its requests. */
	bool is_brief;

	struct store_answer answer;

	/* Private to the stores. */
	struct store *top;	   /* the store to which the request was submitted */
	struct store *at;	   /* the store whose job `job` is */
	size_t private_size;	   /* bytes of `memory` that the stores use */
	struct store_page sum;	   /* of a whole listing: the items of the pages so far */
	struct pool_job job;	   /* of the store that has the request now */
	char *after;		   /* buffer of list.start_after */
	size_t room;		   /* size of the buffers of key and after, bytes */
	alignas(16) char memory[]; /* private memory, then the buffers after their headroom */
};

/* Returns a new request for s, on the heap. It is zeroed except for these defaults: the range is
 * the whole object, a page has at most STORE_PAGE_MAX items, a whole listing has no limit. Returns
 * NULL if out of memory. */
struct store_request *store_request_new(const struct store *s, enum store_op op);
/* The same in the caller's memory, which has store_request_size() bytes and is aligned as by
 * malloc(). It cannot fail. */
size_t store_request_size(const struct store *s);
struct store_request *store_request_init(void *memory, const struct store *s, enum store_op op);
/* Resets the request for another use with the same store. Releases its answer. */
void store_request_reset(struct store_request *req, enum store_op op);
/* Releases the answer. The counterpart of store_request_init(). */
void store_request_release(struct store_request *req);
/* The counterpart of store_request_new(). req may be NULL. */
void store_request_free(struct store_request *req);
static inline void cleanup_store_request(struct store_request **req)
{
	store_request_free(*req);
}
#define auto_request __attribute__((cleanup(cleanup_store_request)))

/* Copy the text into the request, at most STORE_KEY_MAX + 1 bytes of it: a request whose key is
 * longer than STORE_KEY_MAX fails with -EINVAL. */
void store_request_key(struct store_request *req, const char *key);
void store_request_start_after(struct store_request *req, const char *key);

/* Returns the proof that the object is absent, or NULL if the store has none. */
static inline const struct store_absence *store_absence(const struct store_answer *a)
{
	return a->state == STORE_ABSENT ? &a->absence : NULL;
}
/* If the answer is UNKNOWN, copies the reason to err and returns its code; otherwise returns 0. */
int store_failure(const struct store_answer *a, struct err *err);

/* ---- calls ---- */

/* Starts a request. Releases the answer of an earlier use. s is the store for which the request was
 * made. */
void store_submit(struct store *s, struct store_request *req);
/* Returns the length of the body of a PUT in bytes. */
uint64_t store_body_size(const struct store_request *req);
/* Submit one request, or n requests side by side, and block until all are done. They set done and
 * arg. */
void store_run(struct store *s, struct store_request *req);
void store_run_all(struct store *s, struct store_request *const *reqs, size_t n);
/* Sends a HEAD and blocks. cancelled may be NULL. Returns 1 and sets *meta if there is an object, 0
 * if there is none, or a negative errno. */
int store_look(struct store *s, const char *key, const atomic_bool *cancelled,
	       struct store_meta *meta, struct err *err);
/* Gets the number of free bytes and of all bytes of the store. Fails with -EOPNOTSUPP if the store
 * does not know it, or with another negative errno. */
int store_space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes);
/* Makes every object durable whose deferred PUT is done. Blocks. If it fails, some of them may be
 * lost. A store whose PUTs are always durable at once returns 0. */
int store_sync(struct store *s, struct err *err);
/* Objects of deferred PUTs, of any process, are lost at most when this text changes, that is, when
 * the machine is started again. The text is "" if a PUT is durable at once. It is valid as long as
 * s. */
const char *store_life(struct store *s);
/* Returns from which length on, in bytes, the body of a PUT should be a `part`, because the store
 * sends it without having it in memory. UINT64_MAX if it does not, or does not know yet. */
uint64_t store_part_min(struct store *s);
/* For work that is not worth beginning while requests fail at once, because the service has not
 * answered for some time. Returns 0, or fails with -EIO. The log has the reason. Sends no request,
 * and does not block. */
int store_check(struct store *s, struct err *err);
/* Says whether a HEAD returns the marks of objects. Some services and file systems drop them, and
 * some stores know it only after the first PUT with a mark. */
enum store_marks { STORE_MARKS_UNKNOWN, STORE_MARKS_KEPT, STORE_MARKS_DROPPED };
enum store_marks store_keeps_marks(struct store *s);
/* Says whether the service itself refuses a PUT with if_none_match if the object exists, in one
 * step with the PUT. Otherwise the store compares before and after. Also IGNORED for a store
 * without a service, which answers so fast that nobody needs to know. */
enum store_absence_check { STORE_ABSENCE_UNKNOWN, STORE_ABSENCE_CHECKED, STORE_ABSENCE_IGNORED };
enum store_absence_check store_checks_absence(struct store *s);
/* Gives an object another key, in one step that is durable on return. Blocks. The object keeps its
 * content, its note and its mark, and has a new version, which *meta describes. meta may be NULL.
 * from_version is "", or the version that the object must have; it is compared just before the
 * move. cond is NULL, or the condition of a PUT at the new key; without one, an object there is
 * replaced. Fails with -ESTALE if `from` has another version or is gone, or if if_match of the new
 * key fails; with -ENOENT if `from` is proved to be absent and from_version is ""; with -EEXIST if
 * if_none_match fails; with -EOPNOTSUPP if the store cannot move objects, as S3; and with -EXDEV if
 * it cannot move an object between these two keys. In the last two cases nothing has changed, and
 * the caller puts a copy and deletes the original. -EINVAL if a key is not valid, or if the keys
 * are equal. Other errors are those of a PUT. */
int store_move(struct store *s, const char *from, const char *from_version, const char *to,
	       const struct store_cond *cond, struct store_meta *meta, struct err *err);
/* Returns false if store_move() fails with -EOPNOTSUPP. */
bool store_moves(const struct store *s);
/* An upload in parts that was begun, and neither completed nor aborted. */
struct store_upload {
	const char *key, *id;
	int64_t began_ns; /* since the epoch, by the clock of the service; 0 if unknown */
	int64_t now_ns;	  /* what time it is by that clock; 0 if unknown */
};
/* Returns false if the store has no uploads, as a directory. */
bool store_has_uploads(const struct store *s);
/* Calls fn for each upload whose key begins with prefix. A result of fn that is not 0 ends the walk
 * and is returned. Fails with -EOPNOTSUPP if the service does not list them, and with the errors of
 * a listing. Blocks. */
typedef int store_upload_fn(void *ctx, const struct store_upload *u);
int store_each_upload(struct store *s, const char *prefix, store_upload_fn *fn, void *ctx,
		      struct err *err);
/* Removes an upload and its parts. Does nothing if it has ended. Blocks. */
int store_abort_upload(struct store *s, const char *key, const char *id, struct err *err);
/* Frees a stack; s is its top. No request may be in progress. s may be NULL. */
void store_free(struct store *s);

/* Returns an array of n new GET requests for store_run_all(), or NULL if out of memory. */
struct store_request **store_requests_new(const struct store *s, size_t n);
void store_requests_free(struct store_request **reqs, size_t n);

/* A long sequence of requests. The caller consumes the answers in order while later requests are in
 * progress. */
struct store_sequence {
	size_t n;
	size_t window; /* most requests that may be in progress or not yet consumed */
	/* Fills in the i-th request, which is a GET of a whole object by default. If it returns
	 * false, nothing is submitted, and take() gets the request without an answer. */
	bool (*request)(void *arg, size_t i, struct store_request *req);
	/* Consumes the i-th answer. Called in the calling thread, in order, as soon as the answer
	 * is complete. If it does not return 0, the sequence ends. */
	int (*take)(void *arg, size_t i, struct store_request *req);
	void *arg;
};
/* Blocks until every request that was submitted is done. Returns 0, the result of take() that ended
 * the sequence, or -ENOMEM. */
int store_run_sequence(struct store *s, const struct store_sequence *seq);

/* Returns true if a key is valid for every store: 1 to STORE_KEY_MAX bytes, and no component that
 * is empty, "." or "..". So it neither begins nor ends with a slash. NULL is not valid. */
bool store_key_ok(const char *key);
/* Returns true if a key is that of a directory marker: a valid key and "/". Only a DELETE may have
 * such a key; in a directory, which has no markers, it does nothing. */
bool store_key_is_marker(const char *key);
/* Returns true if a text is valid as the note of an object: 1 to STORE_NOTE_MAX bytes of UTF-8
 * without control characters. */
bool store_note_ok(const char *text);
/* Returns true if a text is valid as the mark of an object: 1 to STORE_MARK_MAX characters of
 * [0-9a-z-]. */
bool store_mark_ok(const char *text);

/* ---- implementations and wrappers ---- */

/* A constructor returns NULL on error and stores the reason in err. A wrapper owns `inner` if its
 * constructor succeeds; otherwise `inner` still belongs to the caller. */

/* Makes a store of the directory `path`, which is laid out as HSDS does it on POSIX file systems.
 * Objects are regular files. The directory must exist. No key leads out of it: a link that leaves
 * it fails with -EACCES. An object is absent if the directory that would contain it has no such
 * entry. HSDS writes objects in place; therefore an empty *.json file is read again for 10 ms
 * before it counts as empty, and a file that changes during each of three attempts to read it fails
 * with -EIO. if_match of PUT and DELETE is checked before the change, not atomically with it:
 * another writer may come between the two. if_none_match has no such gap. The mark of an object is
 * void as soon as another program writes into the file or copies it. A PUT fails with -EISDIR if
 * its key is a directory, and with -ENOTDIR if a part of its key is an object. */
struct store *store_dir_new(const struct env *env, const char *path, struct err *err);
/* The directory with this key, which ends in "/", is not removed when it becomes empty. The text is
 * borrowed until the end of the store. To be called before the first request. */
void store_dir_keep(struct store *s, const char *dir);
/* Listings remove temporary files of programs on this machine that have ended. To be called before
 * the first request. */
void store_dir_sweep(struct store *s);
/* Calls fn for each temporary file below the directory: those of PUTs that are running, and those
 * that a program has left that was killed. Listings do not show them. A result of fn that is not 0
 * ends the walk and is returned. Fails with errors of the file system. Blocks. */
typedef int store_dir_temp_fn(void *ctx, const char *path, const struct store_meta *meta);
int store_dir_each_temp(struct store *s, store_dir_temp_fn *fn, void *ctx, struct err *err);
/* Removes a temporary file that store_dir_each_temp() has found, and the directories above it that
 * are empty then. Does nothing if it is gone. Blocks. */
int store_dir_remove_temp(struct store *s, const char *path, struct err *err);
/* s3/s3.h has the bucket of an S3 service, diskcache/diskcache.h a cache on disk. */

/* Repeats a request that failed with -EAGAIN, at growing intervals. When no attempt is left, the
 * request fails with -EIO, and the reason names the number of attempts. If opt is NULL or a field
 * of it is 0, the defaults apply, with which a request survives a server that is unreachable for 30
 * s. */
struct store_retry_options {
	unsigned int attempts; /* in all */
	uint64_t base_ms;      /* first pause; each further one is twice as long … */
	uint64_t cap_ms;       /* … but no longer than this; half of each is random */
	/* No attempt begins later than this after the first. The same is the limit for what all
	 * requests of a call lose (base/repeat_time.h). */
	uint64_t budget_ms;
};
struct store *store_retry_new(struct store *inner, const struct store_retry_options *opt,
			      struct err *err);
/* Returns the number of repeated attempts so far. */
uint64_t store_retry_count(struct store *retrying);
/* Ends the thread of this wrapper, for a daemon that is about to fork. The next request that has to
 * wait starts it again. No request may be in progress. */
void store_retry_stop_thread(struct store *retrying);

/* Shows the part of a bucket below prefix ("a/b") as a bucket of its own. Fails with -EINVAL if the
 * prefix is not valid. */
struct store *store_prefix_new(struct store *inner, const char *prefix, struct err *err);

/* Counts the requests and bytes that pass, the results of the requests, and how long they take. At
 * the log level debug it also logs each request. */
enum { STORE_RESULTS = 21 };
struct store_counts {
	uint64_t calls[STORE_OPS];
	uint64_t range_gets;			    /* GETs of a part of an object */
	uint64_t bytes_in, bytes_out;		    /* bodies received, bodies sent */
	uint64_t failures;			    /* UNKNOWN, and ABSENT except for DELETE */
	uint64_t in_flight_max;			    /* most GETs in progress at once */
	uint64_t moves;				    /* calls of store_move() */
	uint64_t results[STORE_OPS][STORE_RESULTS]; /* by store_result_name() */
	struct histogram_counts seconds[STORE_OPS];
};
struct store *store_count_new(struct store *inner, struct err *err);
/* Reads the counters one by one, while requests go on. */
void store_count_read(struct store *counting, struct store_counts *out);
/* Returns "ok", "absent", "EIO" …, or "other"; result < STORE_RESULTS. */
const char *store_result_name(unsigned int result);

/* Injects failures according to spec (store/fault_spec.h). A request that fails does not reach
 * inner. A delayed request sleeps in a worker of the pool before it is passed on, so no more
 * requests are delayed at once than there are workers. Fails with -EINVAL or -E2BIG if spec is not
 * valid. */
struct store *store_fault_new(struct store *inner, const char *spec, struct err *err);

#endif
