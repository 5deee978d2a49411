/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MD5s of bodies that come together are computed together (md5_many.h). A body stands in a row
 * from the moment when it is complete until a worker comes for it. That worker takes bodies of the
 * same length along, as many as the processor does at once. Those who come for them later find them
 * done. So when little is under way each body is done alone and at once, and when bodies come
 * faster than they are done they are done together.
 *
 * Any thread; the row has a lock, under which nothing is computed.
 */
#ifndef S3_DIGESTS_H
#define S3_DIGESTS_H

#include <pthread.h>
#include <stdbool.h>

#include <aws/digest.h>
#include <base/mem.h>

/* Shorter bodies are done alone: they differ in length, and OpenSSL is as fast with them. */
enum { S3_TOGETHER_FROM = 16 << 10 /* bytes */ };

enum s3_digest_state { S3_DIGEST_NONE, S3_DIGEST_WAITS, S3_DIGEST_TAKEN, S3_DIGEST_DONE };

/* One body, in storage of whoever wants its MD5. A zeroed one is none. */
struct s3_digest {
	const struct bytes *body;
	/* Called once, by another worker, when s3_digests_get() has returned false. */
	void (*resume)(struct s3_digest *d);
	char md5[MD5_HEX]; /* lower case; "" where OpenSSL has no MD5 */
	/* guarded by the row's lock */
	enum s3_digest_state state;
	bool awaited;
	struct s3_digest *prev, *next;
};

struct s3_digests {
	pthread_mutex_t lock;
	struct s3_digest *head; /* those that wait; utlist */
};

void s3_digests_init(struct s3_digests *row);
void s3_digests_release(struct s3_digests *row); /* nothing stands in it */

/* The body and resume are set. d is the row's until s3_digests_get() has returned true. */
void s3_digests_add(struct s3_digests *row, struct s3_digest *d);
/* In a worker, for each that was added. True: d->md5 is there. False: another worker computes it
 * and calls resume; d may be gone by now. */
bool s3_digests_get(struct s3_digests *row, struct s3_digest *d);

#endif
