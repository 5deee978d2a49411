/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of worker threads, which run jobs in the order of submission. With zero workers a job runs
 * inline, in the calling thread, before pool_submit() or pool_run() returns: tests are
 * single-threaded and repeatable that way. A job may submit others; it must not wait for one,
 * because all workers might do so. Any thread.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>

struct pool;

typedef void (*pool_fn)(void *arg);

/* A job in memory of the caller's, who fills fn and arg in. The pool's from pool_run() until fn
 * starts; fn may free it or use it again. */
struct pool_job {
	pool_fn fn;
	void *arg;
	struct pool_job *next;
	bool heap; /* made by pool_submit() */
};

/* workers: threads, 0 = inline. They are started lazily, at the first submit, so that a pool may
 * be made before a daemon forks. NULL without memory. */
struct pool *pool_new(unsigned int workers);
/* Runs what is queued, then ends the threads; the next submit starts them again. Submits other than
 * those of jobs may not run at the same time. For a program that uses the pool before it forks. */
void pool_rest(struct pool *pool);
/* Runs what is queued, then joins. No submit may run at the same time. NULL is fine. */
void pool_free(struct pool *pool);
/* Calls fn(arg) in a worker. 0, or -ENOMEM: fn was not and will not be called. */
int pool_submit(struct pool *pool, pool_fn fn, void *arg);
/* The same without an allocation: -ENOMEM only when not one thread can be started. */
int pool_run(struct pool *pool, struct pool_job *job);

#endif
