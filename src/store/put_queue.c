/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See put_queue.h. The life of an operation:
 *
 *   FREE -> put_queue_add() -> made in a worker -> SENT -> FREE
 *                                             \-> READY, if enough requests run -> SENT
 *
 * An answer may lead to another request of an operation that is SENT. The thread that completes the
 * last request of an operation sends the oldest operation that is READY and may be sent.
 * Invariants, under the lock: in_flight <= puts; active = operations that are not free; an
 * operation is READY only while others are SENT, and the queue has no error.
 *
 * Locks: `lock` guards everything but an operation's own members, which belong to the thread that
 * works on the operation. No callback and no request is started under the lock. finish() is the
 * last access to the queue by a thread that is done with an operation, because put_queue_free() may
 * follow at once.
 */
#include <store/put_queue.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <base/repeat_time.h>

/* Bodies that are made or wait for a request, or as many as there are workers. More would only take
 * memory. */
enum { AHEAD = 16 };

/* A few large bodies use the whole bandwidth. More would only need more connections, each with a
 * handshake, and more memory. But if the latency is high, the bytes of a few bodies are less than
 * what a fast link transfers meanwhile. */
enum {
	LARGE_BODY = 256 << 10, /* bytes */
	LARGE_PUTS = 32,
	FAST_LINK = 1 << 30, /* bytes per second */
};

struct operation {
	struct put_queue *queue;
	struct store_request *req;
	struct put put; /* its key is in the request */
	struct bytes body;
	struct piece piece;
	struct source_part part; /* the body, if n is not 0 */
	uint64_t entered_ns;	 /* when its request was sent */
	struct pool_job job;
	uint64_t charged; /* bytes of the budget */
	struct operation *next;
};

struct put_queue {
	const struct env *env;
	struct store *store;
	struct repeat_time *call; /* that has made the queue, or NULL */
	const atomic_bool *cancelled;
	/* May be NULL. */
	void (*on_put)(void *ctx, const char *key, const char *etag, uint64_t size);
	void *on_put_ctx;
	unsigned int puts;  /* requests at a time, at most */
	unsigned int large; /* requests with large bodies that are sent in any case */
	unsigned int ahead; /* operations that are made or READY, at most */

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t less;  /* an operation is over, or needs less memory */
	struct operation *free;
	struct operation *ready, **ready_end;
	unsigned int active, in_flight, large_in_flight;
	uint64_t large_bytes; /* of the bodies of the last ones */
	uint64_t shortest_ns; /* time of a put with a large body; UINT64_MAX at first */
	struct put_queue_counts counts;
	struct err err; /* if its code is not 0, the queue has stopped */

	unsigned int n;
	struct operation operations[];
};

/* ---- the budget ---- */

static bool fits_locked(const struct put_queue *q, uint64_t n)
{
	if (q->active - q->in_flight >= q->ahead)
		return false;
	return q->active == 0 || !q->env->budget || budget_fits_loads(q->env->budget, n);
}

/* Chunks that the cache keeps for readers give way. Not to be called under the lock. */
static void charge(struct operation *op, uint64_t bytes)
{
	struct budget *budget = op->queue->env->budget;
	if (budget && bytes > op->charged) {
		budget_take(budget, BUDGET_LOADS, bytes - op->charged);
		budget_trim(budget);
	} else if (budget && bytes < op->charged)
		budget_return(budget, BUDGET_LOADS, op->charged - bytes);
	op->charged = bytes;
}

static uint64_t size_of(const struct operation *op)
{
	return op->part.n ? op->part.n : op->body.len;
}

/* ---- the end of an operation ---- */

/* Makes the operation free again. This is the last access to the queue. */
static void finish(struct operation *op)
{
	struct put_queue *q = op->queue;
	if (op->put.release)
		op->put.release(op->put.arg);
	bytes_release(&op->body);
	store_request_release(op->req);
	charge(op, 0);
	pthread_mutex_lock(&q->lock);
	op->next = q->free;
	q->free = op;
	q->active--;
	pthread_cond_signal(&q->less);
	pthread_mutex_unlock(&q->lock);
}

/* Records the first error. The operations that are ready are dropped. */
static void stop(struct operation *op, bool is_made, const struct err *err)
{
	struct put_queue *q = op->queue;
	struct err why = *err;
	if (op->put.explain)
		op->put.explain(op->put.arg, &why);
	pthread_mutex_lock(&q->lock);
	if (!q->err.code) {
		q->err = why;
		q->counts.is_made = is_made;
	}
	struct operation *dropped = q->ready;
	q->ready = NULL;
	q->ready_end = &q->ready;
	pthread_mutex_unlock(&q->lock);
	while (dropped) {
		struct operation *next = dropped->next;
		finish(dropped);
		dropped = next;
	}
}

/* ---- requests ---- */

static void sent(struct store_request *req);

static void send(struct operation *op)
{
	struct store_request *req = op->req;
	op->piece = (struct piece){op->body.data, op->body.len};
	if (req->op == STORE_PUT && op->part.n) {
		req->part = &op->part;
	} else if (req->op == STORE_PUT) {
		req->pieces = &op->piece;
		req->n_pieces = op->body.len ? 1 : 0;
	}
	req->priority = STORE_COMMIT;
	req->deferred = true;
	req->cancelled = cancelled_by(op->queue->cancelled);
	req->done = sent;
	req->arg = op;
	/* The answer may end the queue. */
	struct repeat_scope scope;
	repeat_use(&scope, op->queue->call);
	store_submit(op->queue->store, req);
	repeat_end(&scope);
}

static bool is_large(const struct operation *op)
{
	return size_of(op) >= LARGE_BODY;
}

/* Returns how many bytes a fast link transfers during a put. */
static uint64_t bytes_of_a_put_locked(const struct put_queue *q)
{
	enum { NS_PER_S = 1000000000 };
	return q->shortest_ns == UINT64_MAX
		       ? 0
		       : min_u64(q->shortest_ns, NS_PER_S) * FAST_LINK / NS_PER_S;
}

static bool may_be_sent_locked(const struct operation *op)
{
	const struct put_queue *q = op->queue;
	return q->in_flight < q->puts && (!is_large(op) || q->large_in_flight < q->large ||
					  q->large_bytes + size_of(op) <= bytes_of_a_put_locked(q));
}

static void enter_locked(struct operation *op)
{
	struct put_queue *q = op->queue;
	q->in_flight++;
	if (is_large(op)) {
		q->large_in_flight++;
		q->large_bytes += size_of(op);
		op->entered_ns = q->env->now(q->env);
	}
	if (q->counts.in_flight < q->in_flight)
		q->counts.in_flight = q->in_flight;
}

/* Called when the last request of an operation is done. Takes the next one that is ready. */
static struct operation *next_ready(const struct operation *done)
{
	struct put_queue *q = done->queue;
	pthread_mutex_lock(&q->lock);
	q->in_flight--;
	if (is_large(done)) {
		q->large_in_flight--;
		q->large_bytes -= size_of(done);
		q->shortest_ns = min_u64(q->shortest_ns, q->env->now(q->env) - done->entered_ns);
	}
	struct operation **at = &q->ready;
	while (*at && !may_be_sent_locked(*at))
		at = &(*at)->next;
	struct operation *next = *at;
	if (next) {
		*at = next->next;
		if (!*at)
			q->ready_end = at;
		enter_locked(next);
	}
	pthread_mutex_unlock(&q->lock);
	return next;
}

static void count(const struct operation *op)
{
	struct put_queue *q = op->queue;
	pthread_mutex_lock(&q->lock);
	if (op->put.make)
		q->counts.puts++;
	else
		q->counts.deletes++;
	if (op->put.make && q->on_put)
		q->on_put(q->on_put_ctx, op->put.key, op->req->answer.meta.etag, size_of(op));
	q->counts.bytes += size_of(op);
	q->counts.weight += op->put.weight;
	pthread_mutex_unlock(&q->lock);
}

static void sent(struct store_request *req)
{
	struct operation *op = req->arg;
	struct err err = ERR_INIT;
	const int rc = op->put.answered ? op->put.answered(op->put.arg, req, &err)
					: store_failure(&req->answer, &err);
	if (rc == PUT_AGAIN) {
		charge(op, op->body.len + (req->op == STORE_GET ? req->max : 0));
		send(op);
		return;
	}
	if (rc)
		stop(op, false, &err);
	else
		count(op);
	struct operation *next = next_ready(op);
	if (next)
		send(next);
	finish(op);
}

/* Sends the request of an operation, now or when another one is done. */
static void make_ready(struct operation *op)
{
	struct put_queue *q = op->queue;
	pthread_mutex_lock(&q->lock);
	const bool stopped = q->err.code != 0, now = !stopped && may_be_sent_locked(op);
	if (now) {
		enter_locked(op);
	} else if (!stopped) {
		op->next = NULL;
		*q->ready_end = op;
		q->ready_end = &op->next;
	}
	pthread_cond_signal(&q->less); /* the body may need less than making it */
	pthread_mutex_unlock(&q->lock);
	if (now)
		send(op);
	else if (stopped)
		finish(op);
}

static bool find(struct operation *op)
{
	const uint64_t min = op->put.find ? store_part_min(op->queue->store) : UINT64_MAX;
	if (min != UINT64_MAX && op->put.find(op->put.arg, min, &op->part))
		return true;
	op->part.n = 0;
	return false;
}

/* Runs in a worker. */
static void make(void *arg)
{
	struct operation *op = arg;
	struct put_queue *q = op->queue;
	struct err err = ERR_INIT;
	const int rc = find(op) ? 0 : op->put.make(op->put.arg, &op->body, &err);
	if (rc == 0) {
		bytes_trim(&op->body);
		charge(op, op->body.len);
		make_ready(op);
		return;
	}
	if (rc < 0) {
		if (!err.code)
			err_set(&err, rc, "out of memory");
		stop(op, true, &err);
	} else {
		pthread_mutex_lock(&q->lock);
		q->counts.weight += op->put.weight;
		pthread_mutex_unlock(&q->lock);
	}
	finish(op);
}

/* ---- the caller's thread ---- */

static void check_cancelled_locked(struct put_queue *q)
{
	if (!q->err.code && q->cancelled && atomic_load(q->cancelled))
		err_set(&q->err, -ECANCELED, "interrupted");
}

/* Waits for a free operation and for memory. Returns NULL if the queue has stopped. */
static struct operation *take(struct put_queue *q, uint64_t memory)
{
	struct operation *op = NULL;
	pthread_mutex_lock(&q->lock);
	check_cancelled_locked(q);
	while (!q->err.code && (!q->free || !fits_locked(q, memory))) {
		pthread_cond_wait(&q->less, &q->lock);
		check_cancelled_locked(q);
	}
	if (!q->err.code) {
		op = q->free;
		q->free = op->next;
		q->active++;
		if (q->counts.operations < q->active)
			q->counts.operations = q->active;
	}
	pthread_mutex_unlock(&q->lock);
	return op;
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
	struct operation *op = take(q, p->memory);
	if (!op) {
		if (p->release)
			p->release(p->arg);
		return error_of(q, err);
	}
	store_request_reset(op->req, p->make ? STORE_PUT : STORE_DELETE);
	store_request_key(op->req, p->key);
	op->req->cond = p->cond;
	op->req->mark = p->make ? p->mark : NULL;
	op->put = *p;
	op->put.key = op->req->key;
	op->part.n = 0;
	charge(op, p->memory);
	if (!p->make) {
		make_ready(op);
		return 0;
	}
	op->job = (struct pool_job){.fn = make, .arg = op};
	if (pool_run(q->env->pool, &op->job))
		make(op); /* no thread could be started */
	return 0;
}

void put_queue_on_put(struct put_queue *q,
		      void (*fn)(void *ctx, const char *key, const char *etag, uint64_t size),
		      void *ctx)
{
	q->on_put = fn;
	q->on_put_ctx = ctx;
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
	const unsigned int ahead = (unsigned int)min_u64(
		puts, max_u64(AHEAD, env->pool ? pool_workers(env->pool) : 0));
	const unsigned int n = puts + ahead;
	struct put_queue *q = calloc(1, sizeof(*q) + n * sizeof(q->operations[0]));
	if (!q)
		return NULL;
	q->env = env;
	q->store = store;
	q->call = repeat_current();
	q->cancelled = cancelled;
	q->puts = puts;
	q->large = (unsigned int)max_u64(puts / 2, min_u64(puts, LARGE_PUTS));
	q->ahead = ahead;
	q->ready_end = &q->ready;
	q->shortest_ns = UINT64_MAX;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->less, NULL);
	for (; q->n < n; q->n++) {
		struct operation *op = &q->operations[q->n];
		op->queue = q;
		op->req = store_request_new(store, STORE_PUT);
		if (!op->req) {
			put_queue_free(q);
			return NULL;
		}
		op->next = q->free;
		q->free = op;
	}
	return q;
}

void put_queue_free(struct put_queue *q)
{
	if (!q)
		return;
	put_queue_flush(q, NULL);
	for (unsigned int i = 0; i < q->n; i++)
		store_request_free(q->operations[i].req);
	pthread_cond_destroy(&q->less);
	pthread_mutex_destroy(&q->lock);
	repeat_unref(q->call);
	free(q);
}
