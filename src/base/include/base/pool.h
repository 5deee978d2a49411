/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of worker threads, which run jobs in the order of submission. With zero workers,
 * pool_submit() and pool_run() call the job themselves, which makes tests single-threaded and
 * repeatable. A job may submit other jobs. It must not wait for one, because all workers might be
 * waiting. Any thread.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>

struct pool;

typedef void (*pool_fn)(void *arg);

/* A job in the caller's memory. The caller sets fn and arg. It belongs to the pool from pool_run()
 * until fn starts; fn may free or reuse it. */
struct pool_job {
	pool_fn fn;
	void *arg;
	struct pool_job *next;
	bool heap; /* allocated by pool_submit() */
};

/* workers is the number of threads, which may be 0. Threads are started when jobs are submitted, so
 * a pool may be made before a daemon forks. Returns NULL if out of memory. */
struct pool *pool_new(unsigned int workers);
unsigned int pool_workers(const struct pool *pool);
/* Runs the queued jobs, then ends the threads, for a program that uses the pool before it forks.
 * The next job starts threads again. Meanwhile only jobs may submit jobs. */
void pool_stop_threads(struct pool *pool);
/* Runs the queued jobs, then ends the threads. No thread may submit meanwhile. pool may be NULL. */
void pool_free(struct pool *pool);
/* Submits fn(arg) as a job. Returns 0, or -ENOMEM if fn will not be called. */
int pool_submit(struct pool *pool, pool_fn fn, void *arg);
/* The same without an allocation. Fails with -ENOMEM if no thread could be started. */
int pool_run(struct pool *pool, struct pool_job *job);

#endif
