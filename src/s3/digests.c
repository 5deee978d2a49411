/* SPDX-License-Identifier: Apache-2.0 */
/* A row of bodies for MD5: see digests.h. */
#include "digests.h"

#include <utlist.h>

#include <base/hex.h>

#include "md5_many.h"

void s3_digests_init(struct s3_digests *row)
{
	row->head = NULL;
	pthread_mutex_init(&row->lock, NULL);
}

void s3_digests_release(struct s3_digests *row)
{
	pthread_mutex_destroy(&row->lock);
}

void s3_digests_add(struct s3_digests *row, struct s3_digest *d)
{
	d->awaited = false;
	d->state = S3_DIGEST_WAITS;
	pthread_mutex_lock(&row->lock);
	DL_APPEND(row->head, d);
	pthread_mutex_unlock(&row->lock);
}

static void take_locked(struct s3_digests *row, struct s3_digest *d)
{
	DL_DELETE(row->head, d);
	d->state = S3_DIGEST_TAKEN;
}

/* d, and others of the same length, the oldest first. Returns how many. */
static unsigned int take_some_locked(struct s3_digests *row, struct s3_digest *d,
				     struct s3_digest **taken, unsigned int max)
{
	struct s3_digest *other, *next;
	unsigned int n = 0;
	take_locked(row, d);
	taken[n++] = d;
	DL_FOREACH_SAFE(row->head, other, next)
	{
		if (n == max)
			break;
		if (other->body->len == d->body->len) {
			take_locked(row, other);
			taken[n++] = other;
		}
	}
	return n;
}

static void compute_one(struct s3_digest *d)
{
	if (digest_md5(&(struct piece){d->body->data, d->body->len}, 1, d->md5))
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

/* Who has not come yet will find it done, and may then be gone at once. Returns those who have
 * come: n of them stay in `taken`. */
static unsigned int finish_locked(struct s3_digest **taken, unsigned int n)
{
	unsigned int awaited = 0;
	for (unsigned int i = 0; i < n; i++) {
		taken[i]->state = S3_DIGEST_DONE;
		if (taken[i]->awaited)
			taken[awaited++] = taken[i];
	}
	return awaited;
}

bool s3_digests_get(struct s3_digests *row, struct s3_digest *d)
{
	const struct md5_kernel *kernel = md5_widest();
	struct s3_digest *taken[MD5_LANES_MAX];
	unsigned int n = 0;
	pthread_mutex_lock(&row->lock);
	const enum s3_digest_state state = d->state;
	if (state == S3_DIGEST_WAITS)
		n = take_some_locked(row, d, taken, kernel->lanes);
	else
		d->awaited = state == S3_DIGEST_TAKEN;
	pthread_mutex_unlock(&row->lock);
	if (!n)
		return state != S3_DIGEST_TAKEN;
	compute(kernel, taken, n);
	pthread_mutex_lock(&row->lock);
	n = finish_locked(taken, n);
	pthread_mutex_unlock(&row->lock);
	for (unsigned int i = 0; i < n; i++)
		taken[i]->resume(taken[i]);
	return true;
}
