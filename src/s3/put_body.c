/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that are read from a source, or parts of them, in memory. The SHA-256 of a body is sent
 * before the body, and a repeated request needs the bytes again. So they are in memory while they
 * are sent. All bodies of a store together have a limit; the thread of a put that does not fit
 * waits, first come, first served. A put gets its second body and all further ones only without
 * waiting, so the puts cannot wait for each other.
 */
#include "s3_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <base/checksum.h>

static const uint64_t limit = UINT64_C(128) << 20; /* bytes */

void s3_bodies_init(struct s3_bodies *b)
{
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->given, NULL);
}

void s3_bodies_release(struct s3_bodies *b)
{
	pthread_cond_destroy(&b->given);
	pthread_mutex_destroy(&b->lock);
}

static bool fits_locked(const struct s3_bodies *b, size_t n)
{
	return b->used == 0 || b->used + n <= limit;
}

static bool take(struct s3_store *s, size_t n, bool wait)
{
	struct s3_bodies *b = &s->bodies;
	pthread_mutex_lock(&b->lock);
	if (wait) {
		const uint64_t ticket = b->ticket++;
		while (b->turn != ticket || !fits_locked(b, n))
			pthread_cond_wait(&b->given, &b->lock);
		b->turn++;
		pthread_cond_broadcast(&b->given);
	}
	const bool fits = wait || (b->turn == b->ticket && fits_locked(b, n));
	if (fits)
		b->used += n;
	pthread_mutex_unlock(&b->lock);
	if (fits && s->base.env->budget)
		budget_take(s->base.env->budget, BUDGET_LOADS, n);
	return fits;
}

static void give(struct s3_store *s, size_t n)
{
	struct s3_bodies *b = &s->bodies;
	if (s->base.env->budget)
		budget_return(s->base.env->budget, BUDGET_LOADS, n);
	pthread_mutex_lock(&b->lock);
	b->used -= n;
	pthread_cond_broadcast(&b->given);
	pthread_mutex_unlock(&b->lock);
}

struct s3_body *s3_body_new(struct s3_store *s, size_t n, bool wait)
{
	if (!take(s, n, wait))
		return NULL;
	struct s3_body *body = malloc(sizeof(*body));
	uint8_t *data = malloc(n ? n : 1);
	if (!body || !data) {
		free(body);
		free(data);
		give(s, n);
		return NULL;
	}
	*body = (struct s3_body){.s = s, .data = data, .room = n, .piece = {data, 0}};
	return body;
}

void s3_body_free(struct s3_body *body)
{
	if (!body)
		return;
	free(body->data);
	give(body->s, body->room);
	free(body);
}

int s3_body_read(struct s3_body *body, struct store_request *req, uint64_t offset, size_t n)
{
	body->piece.n = n;
	return store_body_read(req, offset, body->data, n);
}

int s3_part_check(const struct source_part *part, struct err *err)
{
	enum { PIECE = 64 << 10 };
	auto_free uint8_t *buf = malloc(PIECE);
	uint32_t crc = 0;
	if (!buf)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint64_t at = 0; at < part->n;) {
		const size_t n = (size_t)min_u64(part->n - at, PIECE);
		const int rc = source_read(part->source, part->offset + at, buf, n, err);
		if (rc)
			return rc;
		crc = checksum_crc32c(buf, n, crc);
		at += n;
	}
	return crc == part->crc ? 0
				: err_set(err, -EIO,
					  "the bytes to store are not those that were written: "
					  "the local disk is damaged");
}
