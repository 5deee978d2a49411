/* SPDX-License-Identifier: Apache-2.0 */
/* A row of bodies for MD5: see s3_digests.h. */
#include "digests.h"

#include <errno.h>

#include "md5_many.h"

#include <base/hex.h>

/* Shorter ones are done alone: they differ in length, and OpenSSL is as fast with them. */
enum { TOGETHER_FROM = 16 << 10 };

int s3_digests_init(struct s3_digests *row, const struct env *env)
{
	*row = (struct s3_digests){.env = env};
	row->tail = &row->head;
	if (pthread_mutex_init(&row->lock, NULL))
		return -ENOMEM;
	if (pthread_cond_init(&row->idle, NULL) == 0)
		return 0;
	pthread_mutex_destroy(&row->lock);
	return -ENOMEM;
}

void s3_digests_release(struct s3_digests *row)
{
	pthread_mutex_lock(&row->lock);
	while (row->jobs)
		pthread_cond_wait(&row->idle, &row->lock);
	pthread_mutex_unlock(&row->lock);
	pthread_cond_destroy(&row->idle);
	pthread_mutex_destroy(&row->lock);
}

static struct s3_digest *pop_locked(struct s3_digests *row)
{
	struct s3_digest *d = row->head;
	row->head = d->next;
	if (!row->head)
		row->tail = &row->head;
	return d;
}

/* The first of the row, and those of the same length that follow: all that a job has to do with the
 * row, which may be gone when this returns 0. Returns how many. */
static unsigned int take(struct s3_digests *row, struct s3_digest **taken, unsigned int max)
{
	unsigned int n = 0;
	pthread_mutex_lock(&row->lock);
	while (row->head && n < max &&
	       (n == 0 || (row->head->body->len == taken[0]->body->len &&
			   row->head->body->len >= TOGETHER_FROM)))
		taken[n++] = pop_locked(row);
	if (--row->jobs == 0)
		pthread_cond_signal(&row->idle);
	pthread_mutex_unlock(&row->lock);
	return n;
}

static void compute_one(struct s3_digest *d)
{
	if (digest_md5(d->body->len ? (const void *)d->body->data : "", d->body->len, d->md5))
		d->md5[0] = '\0';
}

static void compute(const struct md5_kernel *kernel, struct s3_digest *const *taken, unsigned int n)
{
	const void *bodies[MD5_LANES_MAX];
	uint8_t out[MD5_LANES_MAX][MD5_SIZE];
	if (n < kernel->least) {
		for (unsigned int i = 0; i < n; i++)
			compute_one(taken[i]);
		return;
	}
	for (unsigned int i = 0; i < n; i++)
		bodies[i] = taken[i]->body->data;
	md5_many(kernel, bodies, n, taken[0]->body->len, out);
	for (unsigned int i = 0; i < n; i++)
		hex_encode(out[i], MD5_SIZE, taken[i]->md5);
}

/* There is a job for each body; one that finds nothing was relieved by another. What comes after
 * the digest is a job for each again. */
static void work(void *arg)
{
	struct s3_digests *row = arg;
	const struct env *env = row->env;
	const struct md5_kernel *kernel = md5_widest();
	struct s3_digest *taken[MD5_LANES_MAX];
	unsigned int n = take(row, taken, kernel->lanes);
	if (n == 0)
		return;
	compute(kernel, taken, n);
	for (unsigned int i = 1; i < n; i++)
		if (pool_submit(env->pool, taken[i]->done, taken[i]->arg))
			taken[i]->done(taken[i]->arg);
	taken[0]->done(taken[0]->arg);
}

void s3_digests_add(struct s3_digests *row, struct s3_digest *d)
{
	d->next = NULL;
	pthread_mutex_lock(&row->lock);
	*row->tail = d;
	row->tail = &d->next;
	row->jobs++;
	pthread_mutex_unlock(&row->lock);
	if (pool_submit(row->env->pool, work, row))
		work(row);
}
