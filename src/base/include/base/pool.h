/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of worker threads. With zero workers pool_submit() runs the job inline, in the calling
 * thread, before it returns: tests are single-threaded and repeatable that way.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

struct pool;

typedef void (*pool_fn)(void *arg);

/* workers: threads, 0 = inline. They are started lazily, at the first submit, so that a pool may
 * be made before a daemon forks. NULL without memory. */
struct pool *pool_new(unsigned int workers);
/* Runs what is queued, then joins. No submit may run at the same time. NULL is fine. */
void pool_free(struct pool *pool);
/* Jobs start in the order of submission. Returns 0 or -ENOMEM (then fn was not and will not be
 * called). */
int pool_submit(struct pool *pool, pool_fn fn, void *arg);

#endif
