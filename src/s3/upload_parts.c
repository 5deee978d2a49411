/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an upload, several of them side by side. One thread, which belongs to the upload,
 * reads a part from the source or collects its pieces, signs and sends it, and interprets the
 * answers. A part that fails for the moment is sent again: a repeated upload would send all parts
 * again.
 *
 *   state     meaning                                        next
 *   FREE      the sender has no part                         SENT
 *   SENT      the part is being sent; the I/O thread has it  ANSWERED
 *   ANSWERED  the answer has arrived                         FREE, or SENT for another attempt
 *
 * Threads: the lock guards the states. The I/O thread changes SENT to ANSWERED, the upload's thread
 * does the rest. A sender belongs to the I/O thread while it is SENT.
 */
#include "upload_parts.h"

#include <aws/digest.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_ONCE = 4,
	ATTEMPTS = 8,
	PAUSE_MS = 200, /* doubled after each failure, up to: */
	PAUSE_MAX_MS = 5000,
};

enum state { FREE, SENT, ANSWERED };

struct part_sender {
	struct sending *all;
	enum state state;
	unsigned int number; /* of the part, from 1 */
	unsigned int failures;
	struct s3_request call;
	bool has_call;
	struct s3_body *body; /* if the request has a source */
	struct piece *pieces; /* otherwise */
	size_t n_pieces;
};

struct sending {
	const struct s3_parts *parts;
	unsigned int next; /* number of the next part */
	int failed;	   /* the first error, which the answer's err describes */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct part_sender v[AT_ONCE];
};

/* Keeps the first error only. */
static void fail(struct sending *all, int rc, const struct err *why)
{
	if (all->failed)
		return;
	all->failed = rc;
	err_copy(&all->parts->op->req->answer.err, why);
}

static void fail_memory(struct sending *all)
{
	struct err why = ERR_INIT;
	fail(all, err_set(&why, -ENOMEM, "PUT %s: out of memory", all->parts->op->req->key), &why);
}

bool s3_parts_wait(struct s3_operation *op, unsigned int failures)
{
	const struct env *env = op->s->base.env;
	const struct err *why = &op->req->answer.err;
	if (failures >= ATTEMPTS || is_cancelled(&op->req->cancelled))
		return false;
	const uint64_t pause = min_u64((uint64_t)PAUSE_MS << (failures - 1), PAUSE_MAX_MS);
	env->sleep(env, (pause + why->retry_after_ms) * 1000 * 1000);
	return true;
}

/* ---- the bytes of a part ---- */

static uint64_t begin_of(const struct s3_parts *p, unsigned int number)
{
	return (number - 1) * p->part_size;
}

static uint64_t size_of(const struct s3_parts *p, unsigned int number)
{
	return min_u64(p->part_size, p->size - begin_of(p, number));
}

static int add_piece(struct part_sender *s, const uint8_t *data, size_t n)
{
	struct piece *pieces = array_grow(s->pieces, s->n_pieces, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	s->pieces = pieces;
	s->pieces[s->n_pieces++] = (struct piece){data, n};
	return 0;
}

static int collect(struct part_sender *s)
{
	const struct s3_parts *p = s->all->parts;
	const struct store_request *req = p->op->req;
	uint64_t skip = begin_of(p, s->number), left = size_of(p, s->number);
	s->n_pieces = 0;
	for (size_t i = 0; left && i < req->n_pieces; i++) {
		const struct piece *piece = &req->pieces[i];
		if (skip >= piece->n) {
			skip -= piece->n;
			continue;
		}
		const size_t n = (size_t)min_u64(left, piece->n - skip);
		if (add_piece(s, (const uint8_t *)piece->data + skip, n))
			return -ENOMEM;
		skip = 0;
		left -= n;
	}
	return 0;
}

/* Gets the bytes of the part. Returns false if the upload has failed. */
static bool fill(struct part_sender *s)
{
	const struct s3_parts *p = s->all->parts;
	struct store_request *req = p->op->req;
	if (!req->body) {
		if (collect(s))
			fail_memory(s->all);
		return !s->all->failed;
	}
	const int rc =
		s3_body_read(s->body, req, begin_of(p, s->number), (size_t)size_of(p, s->number));
	if (rc)
		s->all->failed = rc;
	return rc == 0;
}

/* ---- requests ---- */

static void set_state(struct part_sender *s, enum state state)
{
	pthread_mutex_lock(&s->all->lock);
	s->state = state;
	pthread_cond_signal(&s->all->answered);
	pthread_mutex_unlock(&s->all->lock);
}

/* Runs in the I/O thread. */
static void after_answer(struct http_call *http)
{
	set_state(http->arg, ANSWERED);
}

static void drop_call(struct part_sender *s)
{
	if (s->has_call)
		s3_request_release(&s->call);
	s->has_call = false;
}

static void send_part(struct part_sender *s)
{
	const struct s3_parts *p = s->all->parts;
	const struct s3_operation *op = p->op;
	struct err why = ERR_INIT;
	char number[16];
	const struct sigv4_pair query[] = {{"partNumber", number}, {"uploadId", p->upload}};
	const struct s3_spec spec = {
		.method = "PUT",
		.key = op->req->key,
		.query = query,
		.n_query = 2,
		.pieces = s->body ? &s->body->piece : s->pieces,
		.n_pieces = s->body ? 1 : s->n_pieces,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	snprintf(number, sizeof(number), "%u", s->number);
	drop_call(s);
	const int rc = s3_request_init(&s->call, op->s, &spec, &why);
	s->has_call = true;
	if (rc) {
		fail(s->all, rc, &why);
		return;
	}
	s->call.cancelled = op->req->cancelled;
	s->call.http.priority = op->req->priority;
	s->call.http.done = after_answer;
	s->call.http.arg = s;
	set_state(s, SENT);
	http_submit(op->s->io, &s->call.http);
}

/* Returns 0 if the server has stored the part. */
static int judge(struct part_sender *s, struct err *err)
{
	const struct s3_operation *op = s->all->parts->op;
	const char *etag = s->call.answer.meta.etag;
	char md5[MD5_HEX];
	const int rc = s3_request_judge(&s->call, NULL, err);
	if (rc)
		return rc;
	if (!etag[0])
		return err_set(err, -EIO, "PUT %s: the server's answer to part %u has no ETag",
			       op->req->key, s->number);
	if (s3_put_verifies(op->s) && s3_request_has_md5(&s->call) &&
	    digest_md5(s->call.http.pieces, s->call.http.n_pieces, md5) == 0 &&
	    strcmp(md5, etag) != 0)
		return err_set(err, -EAGAIN,
			       "PUT %s: the server has stored other bytes in part %u (MD5 %s, "
			       "ETag %s)",
			       op->req->key, s->number, md5, etag);
	return 0;
}

static void take_answer(struct part_sender *s)
{
	struct sending *all = s->all;
	struct s3_operation *op = all->parts->op;
	struct err why = ERR_INIT;
	const int rc = judge(s, &why);
	set_state(s, FREE);
	if (rc == -EAGAIN && !all->failed) {
		err_copy(&op->req->answer.err, &why);
		if (s3_parts_wait(op, ++s->failures)) {
			send_part(s);
			return;
		}
	}
	if (rc)
		fail(all, rc, &why);
	else
		strcpy(all->parts->etags[s->number - 1], s->call.answer.meta.etag);
}

/* ---- the loop ---- */

/* Returns a sender for the next part, or NULL if none is free, or if there is no memory for one
 * more. */
static struct part_sender *free_sender(struct sending *all)
{
	const struct s3_parts *p = all->parts;
	bool first = true; /* no part is in progress */
	struct part_sender *found = NULL;
	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < AT_ONCE; i++) {
		first &= all->v[i].state == FREE && !all->v[i].body;
		if (all->v[i].state == FREE && (!found || (!found->body && all->v[i].body)))
			found = &all->v[i];
	}
	pthread_mutex_unlock(&all->lock);
	if (!found || !p->op->req->body || found->body)
		return found;
	found->body = s3_body_new(p->op->s, (size_t)p->part_size, first);
	if (!found->body && first)
		fail_memory(all);
	return found->body ? found : NULL;
}

/* Waits for an answer. Returns NULL if no part is in progress. */
static struct part_sender *next_answer(struct sending *all)
{
	struct part_sender *found = NULL;
	bool busy = true;
	pthread_mutex_lock(&all->lock);
	while (!found && busy) {
		busy = false;
		for (size_t i = 0; i < AT_ONCE; i++) {
			busy |= all->v[i].state == SENT;
			if (all->v[i].state == ANSWERED)
				found = &all->v[i];
		}
		if (!found && busy)
			pthread_cond_wait(&all->answered, &all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return found;
}

static void start_parts(struct sending *all)
{
	struct part_sender *s;
	while (!all->failed && all->next <= all->parts->n && (s = free_sender(all))) {
		s->number = all->next++;
		s->failures = 0;
		if (fill(s))
			send_part(s);
	}
}

int s3_parts_send(const struct s3_parts *parts)
{
	struct sending *all = calloc(1, sizeof(*all));
	struct part_sender *s;
	if (!all)
		return err_set(&parts->op->req->answer.err, -ENOMEM, "PUT %s: out of memory",
			       parts->op->req->key);
	all->parts = parts;
	all->next = 1;
	for (size_t i = 0; i < AT_ONCE; i++)
		all->v[i].all = all;
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->answered, NULL);
	start_parts(all);
	while ((s = next_answer(all))) {
		take_answer(s);
		start_parts(all);
	}
	const int rc = all->failed;
	for (size_t i = 0; i < AT_ONCE; i++) {
		drop_call(&all->v[i]);
		s3_body_free(all->v[i].body);
		free(all->v[i].pieces);
	}
	pthread_cond_destroy(&all->answered);
	pthread_mutex_destroy(&all->lock);
	free(all);
	return rc;
}
