/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies whose MD5 is wanted. They wait in a row for a worker, which takes all it can do at once
 * (md5_many.h): when little is under way each is done alone and at once, and when bodies come
 * faster than they are done they are done together.
 *
 * Any thread may add; the row has a lock of its own, under which nothing is computed.
 */
#ifndef S3_DIGESTS_H
#define S3_DIGESTS_H

#include <pthread.h>

#include <base/env.h>
#include <base/mem.h>

#include <aws/digest.h>

/* One body, in storage of whoever wants its MD5. */
struct s3_digest {
	const struct bytes *body;
	pool_fn done; /* once, in a worker; the storage may be gone when it returns */
	void *arg;
	char md5[MD5_HEX]; /* lower case; "" where OpenSSL has no MD5 */
	struct s3_digest *next;
};

struct s3_digests {
	const struct env *env;
	pthread_mutex_t lock;
	/* guarded by the lock */
	struct s3_digest *head, **tail;
	unsigned int jobs;   /* of the pool, that will look at the row */
	pthread_cond_t idle; /* jobs is 0 */
};

/* -ENOMEM */
int s3_digests_init(struct s3_digests *row, const struct env *env);
/* Everything that was added is done; waits for jobs that will find nothing more. */
void s3_digests_release(struct s3_digests *row);

/* d is borrowed until its done() is called. */
void s3_digests_add(struct s3_digests *row, struct s3_digest *d);

#endif
