/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads that serve one FIFO queue. A job starts a thread if no idle worker is available
 * and the limit is not reached. An unused pool therefore costs nothing and may be made before a
 * daemon forks. Workers block all signals, which are for the main thread.
 *
 * Invariants, under lock: started <= workers; idle <= started; if a job is queued, a worker will
 * take it (started > 0). No job runs under the lock. A job may submit jobs, also while
 * pool_stop_threads() waits: its worker checks the queue again before it ends.
 */
#include <base/pool.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <base/thread.h>

struct pool {
	unsigned int workers;
	pthread_t *threads; /* the first `started` are valid */

	pthread_mutex_t lock; /* guards the members below, and threads */
	pthread_cond_t wake;
	struct pool_job *head, **tail;
	unsigned int queued, idle, started;
	bool stopping;
};

struct pool *pool_new(unsigned int workers)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->workers = workers;
	pool->tail = &pool->head;
	if (workers > 0) {
		pool->threads = calloc(workers, sizeof(*pool->threads));
		if (!pool->threads)
			goto fail;
	}
	if (pthread_mutex_init(&pool->lock, NULL) != 0)
		goto fail;
	if (pthread_cond_init(&pool->wake, NULL) != 0) {
		pthread_mutex_destroy(&pool->lock);
		goto fail;
	}
	return pool;
fail:
	free(pool->threads);
	free(pool);
	return NULL;
}

unsigned int pool_workers(const struct pool *pool)
{
	return pool->workers;
}

/* Returns the next job, or NULL if the pool stops and the queue is empty. */
static struct pool_job *next_locked(struct pool *pool)
{
	struct pool_job *job;
	while (!pool->head && !pool->stopping) {
		pool->idle++;
		pthread_cond_wait(&pool->wake, &pool->lock);
		pool->idle--;
	}
	job = pool->head;
	if (job) {
		pool->head = job->next;
		if (!pool->head)
			pool->tail = &pool->head;
		pool->queued--;
	}
	return job;
}

static void *work(void *arg)
{
	struct pool *pool = arg;
	struct pool_job *job;
	pthread_mutex_lock(&pool->lock);
	while ((job = next_locked(pool))) {
		pthread_mutex_unlock(&pool->lock);
		const pool_fn fn = job->fn;
		void *const job_arg = job->arg;
		if (job->heap)
			free(job);
		fn(job_arg);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int pool_run(struct pool *pool, struct pool_job *job)
{
	if (pool->workers == 0) {
		job->fn(job->arg);
		return 0;
	}
	job->next = NULL;
	pthread_mutex_lock(&pool->lock);
	if (pool->queued >= pool->idle && pool->started < pool->workers && !pool->stopping)
		pool->started += thread_start(&pool->threads[pool->started], work, pool);
	const bool started = pool->started > 0;
	if (started) {
		*pool->tail = job;
		pool->tail = &job->next;
		pool->queued++;
	}
	pthread_mutex_unlock(&pool->lock);
	/* After the unlock, so that the worker does not wake up only to wait for the lock. */
	if (started)
		pthread_cond_signal(&pool->wake);
	return started ? 0 : -ENOMEM;
}

int pool_submit(struct pool *pool, pool_fn fn, void *arg)
{
	if (pool->workers == 0) {
		fn(arg);
		return 0;
	}
	struct pool_job *job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	*job = (struct pool_job){.fn = fn, .arg = arg, .heap = true};
	int rc = pool_run(pool, job);
	if (rc)
		free(job);
	return rc;
}

void pool_stop_threads(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->wake);
	pthread_mutex_unlock(&pool->lock);
	/* No more threads are started, so started and threads are constant. */
	for (unsigned int i = 0; i < pool->started; i++)
		pthread_join(pool->threads[i], NULL);
	pool->started = 0;
	pool->stopping = false;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	pool_stop_threads(pool);
	pthread_cond_destroy(&pool->wake);
	pthread_mutex_destroy(&pool->lock);
	free(pool->threads);
	free(pool);
}
