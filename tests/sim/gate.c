/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See gate.h. A gate is the bottom of its engine's stack. Each of its threads takes one of the
 * submitted requests, repeats it at the bucket, which has no workers, and takes the answer over. A
 * request that is late is kept with copies of all that it refers to.
 */
#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/source.h>
#include <storage/garbage.h>
#include <store/implement.h>

#include "baton.h"

enum {
	CARRIERS = 3,	      /* threads of a gate */
	ROOM = 1024,	      /* submitted requests */
	TRAVEL_NS = 50000000, /* at most, of a request */
	SLOW_S = 200,	      /* likewise */
	EXPIRED_S = 120,      /* at most, until somebody gets new credentials */
	ARRIVES_AT_DELETE = 6,
	BUSY_REQUESTS = 6, /* a busy service refuses one in so many for a moment */
};

#define SECOND UINT64_C(1000000000)

/* ---- steps ---- */

void scheduler_init(struct scheduler *s, struct store *bucket, struct rng random)
{
	static const unsigned int arrives[] = {8, 30, 120};
	*s = (struct scheduler){
		.random = random,
		.bucket = bucket,
		.hash = UINT64_C(0xcbf29ce484222325),
	};
	s->arrives = arrives[rng_below(&s->random, 3)];
}

void scheduler_release(struct scheduler *s)
{
	scheduler_deliver(s);
	str_release(&s->trace);
}

static void deliver_one(struct scheduler *s);

void scheduler_step(struct scheduler *s)
{
	s->steps++;
	if (s->late && !s->delivers && rng_once_in(&s->random, s->arrives))
		deliver_one(s);
	baton_pass();
}

void scheduler_between(void *scheduler, const char *key)
{
	struct scheduler *s = scheduler;
	if (!s->delivers)
		scheduler_step(s);
}

uint64_t scheduler_moment(struct scheduler *s)
{
	return ++s->steps;
}

/* ---- the trace ---- */

void scheduler_note(struct scheduler *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (const char *c = text; *c; c++)
		s->hash = (s->hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	if (!s->quiet)
		str_addf(&s->trace, "%6llu %s\n", (unsigned long long)s->steps, text);
}

/* ---- requests that are late ---- */

struct late {
	struct store_request *req;
	struct bytes body;
	struct piece piece;
	char *texts[4]; /* that the request refers to */
	unsigned int engine;
	struct late *next;
};

static const char *keep(struct late *l, unsigned int i, const char *text)
{
	l->texts[i] = text ? strdup(text) : NULL;
	return l->texts[i];
}

static int read_body(struct store_request *req, struct bytes *out)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < req->n_pieces; i++)
		if (req->pieces[i].n)
			rc = bytes_append(out, req->pieces[i].data, req->pieces[i].n);
	if (rc || !req->body)
		return rc;
	rc = bytes_reserve(out, (size_t)req->body->size);
	if (rc)
		return rc;
	out->len = (size_t)req->body->size;
	return store_body_read(req, 0, out->data, out->len);
}

/* What a request asks for, without its key and its answer. Strings are borrowed. */
static void copy_request(struct store_request *to, const struct store_request *from)
{
	store_request_key(to, from->key);
	to->range = from->range;
	to->max = from->max;
	to->cond = from->cond;
	to->list = from->list;
	to->list.start_after = NULL;
	if (from->list.start_after)
		store_request_start_after(to, from->list.start_after);
	to->pieces = from->pieces;
	to->n_pieces = from->n_pieces;
	to->body = from->body;
	to->deferred = from->deferred;
	to->in_parts = from->in_parts;
	to->note = from->note;
	to->wants_note = from->wants_note;
	to->mark = from->mark;
	to->wants_mark = from->wants_mark;
}

/* The request is carried out later, if there is memory and its body can be read. */
static void add_late(struct scheduler *s, unsigned int engine, struct store_request *req)
{
	struct late *l = calloc(1, sizeof(*l));
	struct late **last = &s->late;
	l->req = store_request_new(s->bucket, req->op);
	copy_request(l->req, req);
	if (read_body(req, &l->body))
		abort();
	l->piece = (struct piece){l->body.data, l->body.len};
	l->req->pieces = &l->piece;
	l->req->n_pieces = l->body.len ? 1 : 0;
	l->req->body = NULL;
	l->req->cond.if_match = keep(l, 0, req->cond.if_match);
	l->req->cond.if_none_match = keep(l, 1, req->cond.if_none_match);
	l->req->note = keep(l, 2, req->note);
	l->req->mark = keep(l, 3, req->mark);
	l->engine = engine;
	while (*last)
		last = &(*last)->next;
	*last = l;
}

static void deliver_one(struct scheduler *s)
{
	struct late *l = s->late;
	s->late = l->next;
	s->delivers = true;
	store_run(s->bucket, l->req);
	s->delivers = false;
	const bool done = l->req->answer.state != STORE_UNKNOWN;
	scheduler_note(s, "engine %u: late %s %s arrives: %s", l->engine, store_op_name(l->req->op),
		       l->req->key, done ? "done" : l->req->answer.err.msg);
	store_request_free(l->req);
	bytes_release(&l->body);
	for (unsigned int i = 0; i < sizeof(l->texts) / sizeof(l->texts[0]); i++)
		free(l->texts[i]);
	free(l);
}

void scheduler_deliver(struct scheduler *s)
{
	while (s->late)
		deliver_one(s);
}

/* ---- the gate ---- */

struct gate {
	struct store base;
	struct line *line;
	pthread_t carriers[CARRIERS];
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t changed;
	struct store_request *waiting[ROOM];
	unsigned int n;
	bool ends;
};

const char *fault_name(enum fault fault)
{
	static const char *const names[] = {[FAULT_NONE] = "none",
					    [FAULT_REFUSED] = "refused",
					    [FAULT_FAILED] = "failed",
					    [FAULT_LOST] = "lost",
					    [FAULT_REPEATED] = "repeated",
					    [FAULT_SLOW] = "slow",
					    [FAULT_LATE] = "late",
					    [FAULT_EXPIRED] = "expired",
					    [FAULT_KILL] = "kill before",
					    [FAULT_KILL_AFTER] = "kill after",
					    [FAULT_KILL_LATE] = "kill, and late"};
	return names[fault];
}

void line_arm(struct line *l, enum fault fault, unsigned int at, const char *key, bool all)
{
	l->fault = fault;
	l->at = at;
	l->key = key;
	l->all = all;
	l->n = 0;
	l->hit = false;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), k = strlen(end);
	return n >= k && strcmp(text + n - k, end) == 0;
}

/* A request that does not change anything cannot be late. */
static enum fault without_effect(enum fault fault)
{
	if (fault == FAULT_LATE || fault == FAULT_LOST || fault == FAULT_REPEATED)
		return FAULT_FAILED;
	return fault == FAULT_KILL_LATE ? FAULT_KILL : fault;
}

/* The fault of a request. other: the second key of a move, or NULL. */
static enum fault fault_of(struct line *l, bool changes, const char *key, const char *other)
{
	l->changes += changes;
	if (baton_now() < l->renewed_ns) {
		l->faults++;
		return FAULT_EXPIRED;
	}
	if (changes && l->is_swept(l->ctx)) {
		l->hit = true;
		return (enum fault)(FAULT_KILL +
				    rng_below(&l->scheduler->random, FAULTS - FAULT_KILL));
	}
	const bool again = l->fault <= FAULT_LOST && l->n + 1 < l->at + l->many;
	if (!l->fault || (l->hit && !again) || !(l->all || changes))
		return FAULT_NONE;
	if (l->key && !ends_with(key, l->key) && !(other && ends_with(other, l->key)))
		return FAULT_NONE;
	const unsigned int i = ++l->n;
	if (i < l->at)
		return FAULT_NONE;
	l->hit = true;
	l->faults++;
	if (l->fault == FAULT_EXPIRED)
		l->renewed_ns = baton_now() + rng_below(&l->scheduler->random, EXPIRED_S) * SECOND;
	if (l->fault == FAULT_REPEATED && !l->repeats)
		return changes ? FAULT_LOST : FAULT_FAILED;
	return changes ? l->fault : without_effect(l->fault);
}

static void note_request(struct line *l, const struct store_request *req, enum fault fault)
{
	const struct store_cond *c = &req->cond;
	scheduler_note(l->scheduler, "engine %u:     %s %s%s%s%s%s", l->engine,
		       store_op_name(req->op), req->key,
		       c->if_none_match ? " if absent"
		       : c->if_match	? " if "
					: "",
		       c->if_match ? c->if_match : "", fault ? "; fault: " : "",
		       fault ? fault_name(fault) : "");
}

static void kill_engine(struct line *l)
{
	l->dead = true;
	l->kill(l->ctx);
}

/* Carries the request out, and takes the answer over. */
static void carry_out(struct line *l, struct store_request *req)
{
	struct scheduler *s = l->scheduler;
	struct store_request *own = store_request_new(s->bucket, req->op);
	copy_request(own, req);
	store_run(s->bucket, own);
	if (own->answer.state == STORE_UNKNOWN && (req->op == STORE_PUT || req->op == STORE_DELETE))
		scheduler_note(s, "engine %u:       answer: %s", l->engine, own->answer.err.msg);
	req->answer = own->answer;
	own->answer = (struct store_answer){0};
	store_request_free(own);
}

static bool is_carried_out(enum fault fault)
{
	return fault == FAULT_NONE || fault == FAULT_SLOW || fault == FAULT_LOST ||
	       fault == FAULT_REPEATED || fault == FAULT_KILL_AFTER;
}

/* -EAGAIN: the engine sends the request again. */
static int code_of(enum fault fault)
{
	return fault == FAULT_REFUSED || fault == FAULT_EXPIRED ? -EACCES
	       : fault == FAULT_REPEATED			? -EAGAIN
								: -EIO;
}

/* Often so long that the bucket deletes storage at the same moment. */
static uint64_t slow_ns(struct scheduler *s)
{
	return rng_once_in(&s->random, 2)
		       ? rng_below(&s->random, SLOW_S) * SECOND
		       : GARBAGE_DELAY_NS - SECOND + rng_below(&s->random, 2000000) * 1000;
}

/* Forgets that the service has refused a request. Returns whether it has. */
static bool was_refused(struct line *l, uint64_t id)
{
	unsigned int i = 0;
	while (i < REFUSED_MAX && l->refused[i] != id)
		i++;
	if (i == REFUSED_MAX)
		return false;
	l->refused[i] = 0;
	return true;
}

/* A busy service refuses a request, as S3 does it with SlowDown, and the engine sends it again. The
 * service is not busy twice, so no request fails because of this. A put has certainly not been
 * carried out; nobody knows that of a deletion. */
static bool is_busy(struct line *l, struct store_request *req)
{
	const uint64_t id = 1 + (uint64_t)req->op +
			    16 * (uint64_t)checksum_lookup3(req->key, strlen(req->key), 0);
	if (!l->is_busy || !l->repeats || req->cond.retried || was_refused(l, id) ||
	    !rng_once_in(&l->scheduler->random, BUSY_REQUESTS))
		return false;
	scheduler_note(l->scheduler, "engine %u:     %s %s: busy", l->engine,
		       store_op_name(req->op), req->key);
	l->refused[l->next_refused++ % REFUSED_MAX] = id;
	l->repeated += req->op == STORE_DELETE;
	req->answer.refused = req->op == STORE_PUT;
	return true;
}

static bool is_denied(const struct line *l, const struct store_request *req)
{
	const size_t n = strlen(GATE_VAULT);
	return l->denial && strncmp(req->key, GATE_VAULT, n) == 0 && req->key[n] &&
	       (l->denial == GATE_ALL || req->op == STORE_LIST);
}

static void serve(struct store *store, struct store_request *req)
{
	struct line *l = ((struct gate *)store)->line;
	struct scheduler *s = l->scheduler;
	scheduler_step(s);
	if (rng_once_in(&s->random, 4))
		baton_sleep(rng_below(&s->random, TRAVEL_NS));
	if (l->dead) {
		store_fail(store, req, -EIO, "%s: the engine was killed", req->key);
		return;
	}
	if (req->op == STORE_GET && is_cancelled(&req->cancelled)) {
		/* Meanwhile another program may ask for the same. */
		baton_sleep(rng_below(&s->random, TRAVEL_NS));
		store_fail(store, req, -ECANCELED, "%s: cancelled", req->key);
		return;
	}
	if (is_busy(l, req)) {
		store_fail(store, req, -EAGAIN, "%s: busy", req->key);
		return;
	}
	if (is_denied(l, req)) {
		store_fail(store, req, -EACCES, "%s: access denied", req->key);
		return;
	}
	const bool changes = req->op == STORE_PUT || req->op == STORE_DELETE;
	const enum fault fault = fault_of(l, changes, req->key, NULL);
	note_request(l, req, fault);
	if (fault == FAULT_LATE || fault == FAULT_KILL_LATE)
		add_late(s, l->engine, req);
	if (fault == FAULT_SLOW)
		baton_sleep(slow_ns(s));
	l->is_late |= fault == FAULT_LATE || fault == FAULT_KILL_LATE || l->dead;
	/* What is late does most harm when the bucket deletes. */
	if (req->op == STORE_DELETE && s->late && !s->delivers &&
	    rng_once_in(&s->random, ARRIVES_AT_DELETE))
		deliver_one(s);
	if (is_carried_out(fault))
		carry_out(l, req);
	l->repeated += fault == FAULT_REPEATED;
	if (fault >= FAULT_KILL)
		kill_engine(l);
	if (fault && fault != FAULT_SLOW)
		store_fail(store, req, code_of(fault), "%s: %s by the simulation", req->key,
			   fault_name(fault));
	else if (req->answer.state == STORE_UNKNOWN)
		store_fail(store, req, req->answer.err.code, NULL);
	else
		store_complete(store, req);
}

/* Takes any of the requests. NULL: the gate ends. */
static struct store_request *take(struct gate *g)
{
	struct store_request *req = NULL;
	pthread_mutex_lock(&g->lock);
	while (!g->n && !g->ends)
		pthread_cond_wait(&g->changed, &g->lock);
	if (g->n) {
		const unsigned int i = rng_below(&g->line->scheduler->random, g->n);
		req = g->waiting[i];
		g->waiting[i] = g->waiting[--g->n];
	}
	pthread_mutex_unlock(&g->lock);
	return req;
}

static void *carry(void *arg)
{
	struct gate *g = arg;
	struct store_request *req;
	while ((req = take(g)))
		serve(&g->base, req);
	return NULL;
}

static void submit(struct store *store, struct store_request *req)
{
	struct gate *g = (struct gate *)store;
	pthread_mutex_lock(&g->lock);
	if (g->n == ROOM)
		abort();
	g->waiting[g->n++] = req;
	pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/* A move has no answer that could be late, and is not repeated. */
static enum fault fault_of_move(struct line *l, const char *from, const char *to)
{
	const enum fault fault = fault_of(l, true, from, to);
	return fault == FAULT_REPEATED ? FAULT_LOST
	       : fault == FAULT_LOST   ? fault
				       : without_effect(fault);
}

static int move(struct store *store, const char *from, const char *from_version, const char *to,
		const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct line *l = ((struct gate *)store)->line;
	struct scheduler *s = l->scheduler;
	int rc = 0;
	/* The faults are for the requests that the engine sends in place of the move. */
	if (!store_moves(s->bucket))
		return err_set(err, -EOPNOTSUPP, "%s: the service cannot move", from);
	scheduler_step(s);
	if (l->dead)
		return err_set(err, -EIO, "%s: the engine was killed", from);
	const enum fault fault = fault_of_move(l, from, to);
	if (is_carried_out(fault))
		rc = store_move(s->bucket, from, from_version, to, cond, meta, err);
	scheduler_note(s, "engine %u:     move %s %s: %d %s", l->engine, from, to, rc,
		       fault ? fault_name(fault) : "");
	if (fault >= FAULT_KILL)
		kill_engine(l);
	return fault && fault != FAULT_SLOW
		       ? err_set(err, code_of(fault), "%s: %s by the simulation", from,
				 fault_name(fault))
		       : rc;
}

static enum store_marks keeps_marks(struct store *store)
{
	return store_keeps_marks(((struct gate *)store)->line->scheduler->bucket);
}

/* As a service of S3 does, so that listings prove which new names are absent. */
static enum store_absence_check checks_absence(struct store *store)
{
	return STORE_ABSENCE_CHECKED;
}

static void free_gate(struct store *store)
{
	struct gate *g = (struct gate *)store;
	pthread_mutex_lock(&g->lock);
	g->ends = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
	for (unsigned int i = 0; i < CARRIERS; i++)
		pthread_join(g->carriers[i], NULL);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

struct store *gate_new(struct line *line, const struct env *env, struct err *err)
{
	static const struct store_ops ops = {.name = "gate",
					     .submit = submit,
					     .keeps_marks = keeps_marks,
					     .checks_absence = checks_absence,
					     .move = move,
					     .free = free_gate};
	struct gate *g = calloc(1, sizeof(*g));
	if (!g) {
		err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	store_init(&g->base, &ops, env, 0);
	g->line = line;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	for (unsigned int i = 0; i < CARRIERS; i++)
		if (pthread_create(&g->carriers[i], NULL, carry, g))
			abort();
	return &g->base;
}
