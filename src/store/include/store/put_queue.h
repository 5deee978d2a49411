/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts and deletes, many at a time, for a caller that may block. The body of a put is made in a
 * worker. Bounded in three ways: at most `puts` requests are with the store, and of those whose
 * bodies have 256 KiB or more, half of them, or 32, or what a fast link transfers in the time of
 * the shortest one; as many operations as `puts`, but at most 16, or one for each worker, wait for
 * a request or are being made; and the bodies with what is needed to make them fit into the budget,
 * if there is one. A single operation that is larger than the budget runs alone.
 *
 * The first error stops the queue: operations that have not reached the store are dropped, requests
 * that have are finished. From then on put_queue_add() and put_queue_flush() return that error.
 *
 * All puts are deferred: see store_sync().
 *
 * Threads: one thread adds and flushes.
 */
#ifndef STORE_PUT_QUEUE_H
#define STORE_PUT_QUEUE_H

#include <stdatomic.h>
#include <stdint.h>

#include <base/env.h>
#include <base/mem.h>
#include <base/source.h>
#include <hsmount/err.h>
#include <store/store.h>

enum {
	PUT_NOTHING = 1, /* result of make(): there is nothing to put */
	PUT_AGAIN = 1,	 /* result of answered(): another request follows */
};

/* An operation. put_queue_add() copies the struct and the key. */
struct put {
	const char *key;
	struct store_cond cond; /* borrowed until release() */
	const char *mark;	/* of a put, NULL or as in struct store_request; likewise */
	/* Appends the body of a put to *body, in a worker. Returns 0, PUT_NOTHING or a negative
	 * errno. If it is NULL, the key is deleted. */
	int (*make)(void *arg, struct bytes *body, struct err *err);
	/* Finds the body in a source instead, so that it is not in memory. The source exists until
	 * release(). Called before make(), in the same worker, if the store takes parts of `min`
	 * bytes or more. Returns false if the body must be made. May be NULL. */
	bool (*find)(void *arg, uint64_t min, struct source_part *part);
	/* Judges the answer to a request. Returns 0 if the operation has succeeded, or a negative
	 * errno, which stops the queue. Returns PUT_AGAIN if it has reset *req and set it up for
	 * another request, which is sent next: the same put with the same body, a delete, a HEAD,
	 * or a GET with a limit. It is called in any thread and must not block. If it is NULL, an
	 * answer that is UNKNOWN is an error. */
	int (*answered)(void *arg, struct store_request *req, struct err *err);
	/* Adds to an error what the operation is for. May be NULL. Any thread. */
	void (*explain)(void *arg, struct err *err);
	/* Frees arg when the operation is over, also if it was dropped. May be NULL. Any thread. */
	void (*release)(void *arg);
	void *arg;
	uint64_t memory; /* bytes that make() needs at most, with the body */
	uint64_t weight; /* counts as so much progress when the operation has succeeded */
};

struct put_queue;

/* puts is greater than 0. cancelled is borrowed and may be NULL; as soon as it is true, the queue
 * stops with -ECANCELED. Returns NULL if out of memory. */
struct put_queue *put_queue_new(const struct env *env, struct store *store, unsigned int puts,
				const atomic_bool *cancelled);
/* Waits until the requests that run are done, and frees the queue. q may be NULL. */
void put_queue_free(struct put_queue *q);
static inline void cleanup_put_queue(struct put_queue **q)
{
	put_queue_free(*q);
}
#define auto_put_queue __attribute__((cleanup(cleanup_put_queue)))

/* From now on calls fn() for each put that has succeeded, with its key, the version that it has
 * put and its bytes, before release(): one call at a time, in any thread. Call it before the first
 * put_queue_add(). */
void put_queue_on_put(struct put_queue *q,
		      void (*fn)(void *ctx, const char *key, const char *etag, uint64_t size),
		      void *ctx);
/* Waits for room, then starts the operation. Returns 0 or the error of the queue; p->arg belongs to
 * the queue in either case. */
int put_queue_add(struct put_queue *q, const struct put *p, struct err *err);
/* Waits until all operations are over. Returns 0 or the error of the queue. */
int put_queue_flush(struct put_queue *q, struct err *err);

struct put_queue_counts {
	uint64_t puts, deletes;	 /* that have succeeded */
	uint64_t bytes;		 /* of the bodies of those puts */
	uint64_t weight;	 /* of all operations that have succeeded */
	unsigned int in_flight;	 /* most requests with the store at the same time so far */
	unsigned int operations; /* most operations in the queue so far */
	bool is_made;		 /* the error of the queue is one of a make() */
};
void put_queue_counts(struct put_queue *q, struct put_queue_counts *out);

#endif
