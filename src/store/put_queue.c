/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See put_queue.h. The life of a slot:
 *
 *   FREE -> put_queue_add() -> made in a worker -> READY, if `puts` requests run, else SENT -> FREE
 *
 * An answer may lead to another request of a slot that is SENT. Whoever completes the last request
 * of a slot sends the oldest slot that is READY. Invariants, under the lock:
 * in_flight <= puts; active = slots that are not free; a slot is READY only while in_flight = puts
 * and the queue has no error.
 *
 * Locks: `lock` guards everything but a slot's own members, which belong to the thread that works
 * on the slot. No callback and no request is started under the lock. finish() is the last access to
 * the queue by a thread that is done with a slot, because put_queue_free() may follow at once.
 */
#include <store/put_queue.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* Bodies that are made or wait while `puts` requests run. Enough for all workers of a large
 * machine; more would only take memory. */
enum { READY_MAX = 16 };

struct slot {
	struct put_queue *queue;
	struct store_request *req;
	struct put put; /* its key is in the request */
	struct bytes body;
	struct piece piece;
	struct pool_job job;
	uint64_t charged; /* bytes of the budget */
	struct slot *next;
};

struct put_queue {
	const struct env *env;
	struct store *store;
	const atomic_bool *cancelled;
	unsigned int puts;

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t less;  /* an operation is over, or needs less memory */
	struct slot *free;
	struct slot *ready, **ready_end;
	unsigned int active, in_flight;
	struct put_queue_counts counts;
	struct err err; /* its code is not 0: the queue has stopped */

	unsigned int n;
	struct slot slots[];
};

/* ---- the budget ---- */

static bool fits_locked(const struct put_queue *q, uint64_t n)
{
	return q->active == 0 || !q->env->budget || budget_fits_loads(q->env->budget, n);
}

/* Chunks that the cache keeps for readers give way. Not under the lock. */
static void charge(struct slot *s, uint64_t bytes)
{
	struct budget *budget = s->queue->env->budget;
	if (budget && bytes > s->charged) {
		budget_take(budget, BUDGET_LOADS, bytes - s->charged);
		budget_trim(budget);
	} else if (budget && bytes < s->charged)
		budget_return(budget, BUDGET_LOADS, s->charged - bytes);
	s->charged = bytes;
}

/* ---- the end of an operation ---- */

/* The slot is free again. The last access to the queue. */
static void finish(struct slot *s)
{
	struct put_queue *q = s->queue;
	if (s->put.release)
		s->put.release(s->put.arg);
	bytes_release(&s->body);
	store_request_release(s->req);
	charge(s, 0);
	pthread_mutex_lock(&q->lock);
	s->next = q->free;
	q->free = s;
	q->active--;
	pthread_cond_signal(&q->less);
	pthread_mutex_unlock(&q->lock);
}

/* Records the first error. The operations that are ready are dropped. */
static void stop(struct slot *s, bool is_made, const struct err *err)
{
	struct put_queue *q = s->queue;
	struct err why = *err;
	if (s->put.explain)
		s->put.explain(s->put.arg, &why);
	pthread_mutex_lock(&q->lock);
	if (!q->err.code) {
		q->err = why;
		q->counts.is_made = is_made;
	}
	struct slot *dropped = q->ready;
	q->ready = NULL;
	q->ready_end = &q->ready;
	pthread_mutex_unlock(&q->lock);
	while (dropped) {
		struct slot *next = dropped->next;
		finish(dropped);
		dropped = next;
	}
}

/* ---- requests ---- */

static void sent(struct store_request *req);

static void send(struct slot *s)
{
	struct store_request *req = s->req;
	s->piece = (struct piece){s->body.data, s->body.len};
	req->pieces = req->op == STORE_PUT ? &s->piece : NULL;
	req->n_pieces = req->op == STORE_PUT && s->body.len ? 1 : 0;
	req->priority = STORE_COMMIT;
	req->deferred = true;
	req->cancelled = cancelled_by(s->queue->cancelled);
	req->done = sent;
	req->arg = s;
	store_submit(s->queue->store, req);
}

/* A request is done: takes the next slot that is ready. */
static struct slot *next_ready(struct put_queue *q)
{
	pthread_mutex_lock(&q->lock);
	struct slot *next = q->ready;
	if (next) {
		q->ready = next->next;
		if (!q->ready)
			q->ready_end = &q->ready;
	} else {
		q->in_flight--;
	}
	pthread_mutex_unlock(&q->lock);
	return next;
}

static void count(const struct slot *s)
{
	struct put_queue *q = s->queue;
	pthread_mutex_lock(&q->lock);
	if (s->put.make)
		q->counts.puts++;
	else
		q->counts.deletes++;
	q->counts.bytes += s->body.len;
	q->counts.weight += s->put.weight;
	pthread_mutex_unlock(&q->lock);
}

static void sent(struct store_request *req)
{
	struct slot *s = req->arg;
	struct err err = ERR_INIT;
	const int rc = s->put.answered ? s->put.answered(s->put.arg, req, &err)
				       : store_failure(&req->answer, &err);
	if (rc == PUT_AGAIN) {
		charge(s, s->body.len + (req->op == STORE_GET ? req->max : 0));
		send(s);
		return;
	}
	if (rc)
		stop(s, false, &err);
	else
		count(s);
	struct slot *next = next_ready(s->queue);
	if (next)
		send(next);
	finish(s);
}

/* Sends the request of a slot, now or when another one is done. */
static void make_ready(struct slot *s)
{
	struct put_queue *q = s->queue;
	pthread_mutex_lock(&q->lock);
	const bool stopped = q->err.code != 0, now = !stopped && q->in_flight < q->puts;
	if (now) {
		q->in_flight++;
		if (q->counts.in_flight < q->in_flight)
			q->counts.in_flight = q->in_flight;
	} else if (!stopped) {
		s->next = NULL;
		*q->ready_end = s;
		q->ready_end = &s->next;
	}
	pthread_cond_signal(&q->less); /* the body may need less than making it */
	pthread_mutex_unlock(&q->lock);
	if (now)
		send(s);
	else if (stopped)
		finish(s);
}

/* In a worker. */
static void make(void *arg)
{
	struct slot *s = arg;
	struct put_queue *q = s->queue;
	struct err err = ERR_INIT;
	const int rc = s->put.make(s->put.arg, &s->body, &err);
	if (rc == 0) {
		bytes_trim(&s->body);
		charge(s, s->body.len);
		make_ready(s);
		return;
	}
	if (rc < 0) {
		if (!err.code)
			err_set(&err, rc, "out of memory");
		stop(s, true, &err);
	} else {
		pthread_mutex_lock(&q->lock);
		q->counts.weight += s->put.weight;
		pthread_mutex_unlock(&q->lock);
	}
	finish(s);
}

/* ---- the caller's thread ---- */

static void check_cancelled_locked(struct put_queue *q)
{
	if (!q->err.code && q->cancelled && atomic_load(q->cancelled))
		err_set(&q->err, -ECANCELED, "interrupted");
}

/* Waits for a slot and for memory. NULL: the queue has stopped. */
static struct slot *take(struct put_queue *q, uint64_t memory)
{
	struct slot *s = NULL;
	pthread_mutex_lock(&q->lock);
	check_cancelled_locked(q);
	while (!q->err.code && (!q->free || !fits_locked(q, memory))) {
		pthread_cond_wait(&q->less, &q->lock);
		check_cancelled_locked(q);
	}
	if (!q->err.code) {
		s = q->free;
		q->free = s->next;
		q->active++;
		if (q->counts.operations < q->active)
			q->counts.operations = q->active;
	}
	pthread_mutex_unlock(&q->lock);
	return s;
}

static int error_of(struct put_queue *q, struct err *err)
{
	pthread_mutex_lock(&q->lock);
	const struct err why = q->err;
	pthread_mutex_unlock(&q->lock);
	if (why.code)
		err_copy(err, &why);
	return why.code;
}

int put_queue_add(struct put_queue *q, const struct put *p, struct err *err)
{
	struct slot *s = take(q, p->memory);
	if (!s) {
		if (p->release)
			p->release(p->arg);
		return error_of(q, err);
	}
	store_request_reset(s->req, p->make ? STORE_PUT : STORE_DELETE);
	store_request_key(s->req, p->key);
	s->req->cond = p->cond;
	s->req->mark = p->make ? p->mark : NULL;
	s->put = *p;
	s->put.key = s->req->key;
	charge(s, p->memory);
	if (!p->make) {
		make_ready(s);
		return 0;
	}
	s->job = (struct pool_job){.fn = make, .arg = s};
	if (pool_run(q->env->pool, &s->job))
		make(s); /* no thread could be started */
	return 0;
}

int put_queue_flush(struct put_queue *q, struct err *err)
{
	pthread_mutex_lock(&q->lock);
	while (q->active)
		pthread_cond_wait(&q->less, &q->lock);
	check_cancelled_locked(q);
	assert(q->in_flight == 0 && !q->ready);
	pthread_mutex_unlock(&q->lock);
	return error_of(q, err);
}

void put_queue_counts(struct put_queue *q, struct put_queue_counts *out)
{
	pthread_mutex_lock(&q->lock);
	*out = q->counts;
	pthread_mutex_unlock(&q->lock);
}

struct put_queue *put_queue_new(const struct env *env, struct store *store, unsigned int puts,
				const atomic_bool *cancelled)
{
	const unsigned int n = puts + (puts < READY_MAX ? puts : READY_MAX);
	struct put_queue *q = calloc(1, sizeof(*q) + n * sizeof(q->slots[0]));
	if (!q)
		return NULL;
	q->env = env;
	q->store = store;
	q->cancelled = cancelled;
	q->puts = puts;
	q->ready_end = &q->ready;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->less, NULL);
	for (; q->n < n; q->n++) {
		struct slot *s = &q->slots[q->n];
		s->queue = q;
		s->req = store_request_new(store, STORE_PUT);
		if (!s->req) {
			put_queue_free(q);
			return NULL;
		}
		s->next = q->free;
		q->free = s;
	}
	return q;
}

void put_queue_free(struct put_queue *q)
{
	if (!q)
		return;
	put_queue_flush(q, NULL);
	for (unsigned int i = 0; i < q->n; i++)
		store_request_free(q->slots[i].req);
	pthread_cond_destroy(&q->less);
	pthread_mutex_destroy(&q->lock);
	free(q);
}
