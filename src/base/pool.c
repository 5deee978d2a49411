/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads over one FIFO queue. A thread is started when a job is queued that no idle
 * worker will take and the limit is not reached, so a pool that is never used costs nothing and
 * may be made before a daemon forks. Workers block all signals: those are for the front's main
 * loop.
 *
 * Invariants, under lock: started <= workers; idle <= started; a queued job has a worker that
 * will come for it (started > 0). No job runs under the lock. A job may submit jobs, also while
 * pool_rest() waits: its own worker looks at the queue again before it ends.
 */
#include <base/pool.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct pool {
	unsigned int workers;
	pthread_t *threads; /* the first started ones are valid */

	pthread_mutex_t lock; /* guards all below, and threads */
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

/* The next job, or NULL when the pool stops and nothing is left. */
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

static void start_locked(struct pool *pool)
{
	sigset_t all, old;

	/* Blocked before it starts: a new thread inherits the mask, so there is no moment in
	 * which it could take a signal. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&pool->threads[pool->started], NULL, work, pool) == 0)
		pool->started++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
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
		start_locked(pool);
	const bool started = pool->started > 0;
	if (started) {
		*pool->tail = job;
		pool->tail = &job->next;
		pool->queued++;
		pthread_cond_signal(&pool->wake);
	}
	pthread_mutex_unlock(&pool->lock);
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

void pool_rest(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->wake);
	pthread_mutex_unlock(&pool->lock);
	/* No thread is started any more: started and threads are constant. */
	for (unsigned int i = 0; i < pool->started; i++)
		pthread_join(pool->threads[i], NULL);
	pool->started = 0;
	pool->stopping = false;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	pool_rest(pool);
	pthread_cond_destroy(&pool->wake);
	pthread_mutex_destroy(&pool->lock);
	free(pool->threads);
	free(pool);
}
