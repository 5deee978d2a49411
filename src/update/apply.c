/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See update/apply.h. The way of an operation, whose requests the queue sends:
 *
 *   PUT or DELETE --condition failed--> HEAD --the mark of the plan--> done
 *        ^                               |
 *        +--- the version is the one ----+--another mark--> conflict
 *             that the condition wants
 *
 * A summary whose condition has failed is deleted.
 *
 * If the store is not known to keep marks, equal bytes decide instead of the mark: a GET follows
 * the HEAD. They count only if a request of the operation may have succeeded without an answer:
 * the journal has a note PLAN_SENT from an earlier run, or this run had to repeat the request.
 * Otherwise another program may have put the same bytes, and it is a conflict.
 *
 * The queue calls make(), judge() and release() in any thread. release() passes what has succeeded
 * to the caller's thread, which notes it and starts more operations.
 */
#include <update/apply.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <journal/gc_log.h>
#include <overlay/draft_plan.h>

#include <store/put_queue.h>

#include "update_internal.h"

enum { NONE = UINT32_MAX, LOOKS = 4 /* at an object, before its changes count as a conflict */ };

struct item {
	uint32_t before, after; /* the operations with the same key, or NONE */
	bool finished;		/* the operation has succeeded in this run */
	bool sent;		/* an earlier request of it may have succeeded */
	char *etag;		/* that it has put in this run, for `after`; NULL if it is not
				 * known */
};

struct run {
	const struct apply *a;
	struct apply_result *out;
	struct item *items; /* of all operations */
	uint32_t *order;    /* operations that are not done, in the order of their phases */
	uint32_t count;
	struct put_queue *queue;
	bool defers; /* what has been put is durable after store_sync() */
	bool warned; /* a note has failed */

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t over;
	unsigned int pending;  /* operations that have begun and are not settled */
	struct work *finished; /* of them, those that have succeeded or were refused */
	uint32_t conflict;
	struct err why;
};

/* An operation that has begun. */
struct work {
	struct run *run;
	uint32_t i;
	const struct plan_operation *op;
	const char *expect;	    /* PLAN_IF_VERSION: the version */
	char found[STORE_ETAG_MAX]; /* the version of the object */
	char taken[STORE_ETAG_MAX]; /* a version that was found and is expected */
	char mark[PLAN_MARK];
	unsigned int looks;
	bool is_noted; /* PLAN_SENT */
	bool succeeded, is_refused;
	struct work *next;
};

/* ---- the order of the operations ---- */

struct sort_key {
	const char *key;
	uint32_t phase, i;
};

static int by_phase(const void *x, const void *y)
{
	const struct sort_key *a = x, *b = y;
	if (a->phase != b->phase)
		return a->phase < b->phase ? -1 : 1;
	return a->i < b->i ? -1 : a->i > b->i;
}

static int by_key(const void *x, const void *y)
{
	const struct sort_key *a = x, *b = y;
	const int order = strcmp(a->key, b->key);
	return order ? order : by_phase(x, y);
}

static int link_items(struct run *r, const struct sort_key *sorted, uint32_t n, struct err *err)
{
	for (uint32_t k = 0; k < n; k++)
		r->items[k] = (struct item){
			.before = NONE, .after = NONE, .sent = r->a->plan->operations[k].sent};
	for (uint32_t k = 1; k < n; k++) {
		const struct sort_key *a = &sorted[k - 1], *b = &sorted[k];
		if (strcmp(a->key, b->key) != 0)
			continue;
		if (a->phase == b->phase)
			return err_set(err, -EINVAL,
				       "the plan changes the object %s twice in phase %" PRIu32,
				       a->key, a->phase);
		r->items[a->i].after = b->i;
		r->items[b->i].before = a->i;
	}
	return 0;
}

/* Returns whether an operation is a DELETE of a key of which a later operation is done. The object
 * is what that one has put. */
static bool is_overtaken(const struct run *r, uint32_t i)
{
	const struct plan_operation *ops = r->a->plan->operations;
	if (ops[i].action != PLAN_DELETE)
		return false;
	for (i = r->items[i].after; i != NONE; i = r->items[i].after)
		if (ops[i].done)
			return true;
	return false;
}

static int order_operations(struct run *r, struct err *err)
{
	const struct plan *plan = r->a->plan;
	const size_t n = plan->count;
	auto_free struct sort_key *sorted = calloc(n + 1, sizeof(*sorted));
	r->items = calloc(n + 1, sizeof(*r->items));
	r->order = calloc(n + 1, sizeof(*r->order));
	if (!sorted || !r->items || !r->order)
		return err_no_memory(err);
	for (uint32_t i = 0; i < n; i++)
		sorted[i] =
			(struct sort_key){plan->operations[i].key, plan->operations[i].phase, i};
	qsort(sorted, n, sizeof(*sorted), by_key);
	const int rc = link_items(r, sorted, plan->count, err);
	if (rc)
		return rc;
	qsort(sorted, n, sizeof(*sorted), by_phase);
	for (size_t k = 0; k < n; k++)
		if (!plan->operations[sorted[k].i].done && !is_overtaken(r, sorted[k].i))
			r->order[r->count++] = sorted[k].i;
	return 0;
}

/* ---- requests ---- */

static bool keeps_marks(const struct run *r)
{
	return store_keeps_marks(r->a->store) == STORE_MARKS_KEPT;
}

/* Returns whether a request of the operation may have succeeded without an answer. */
static bool is_sent(const struct work *w)
{
	return w->run->items[w->i].sent;
}

static struct store_cond condition_of(const struct work *w)
{
	struct store_cond cond = {.retried = false};
	if (w->op->condition == PLAN_IF_VERSION)
		cond.if_match = w->expect;
	/* A leftover. Perhaps the program that has put it is about to delete it, and its bytes are
	 * the same. */
	cond.is_new_version = cond.if_match && w->op->phase == PHASE_NEW_CHUNKS;
	if (w->op->condition == PLAN_IF_ABSENT)
		cond.if_none_match = "*";
	if (w->op->action == PLAN_PUT && w->op->condition != PLAN_ALWAYS)
		cond.retried = w->run->a->is_repeated && (keeps_marks(w->run) || is_sent(w));
	return cond;
}

static void set_up(const struct work *w, struct store_request *req, enum store_op op)
{
	store_request_reset(req, op);
	store_request_key(req, w->op->key);
}

static int change_again(const struct work *w, struct store_request *req)
{
	set_up(w, req, w->op->action == PLAN_PUT ? STORE_PUT : STORE_DELETE);
	req->cond = condition_of(w);
	req->mark = w->op->action == PLAN_PUT ? w->mark : NULL;
	return PUT_AGAIN;
}

static int conflict(struct work *w, struct err *err)
{
	struct run *r = w->run;
	err_set(err, -ESTALE, "object %s: another program has changed it", w->op->key);
	w->is_refused = w->is_noted && !is_sent(w);
	pthread_mutex_lock(&r->lock);
	if (r->conflict == NONE) {
		r->conflict = w->i;
		r->why = *err;
	}
	pthread_mutex_unlock(&r->lock);
	return -ESTALE;
}

static int look(struct work *w, struct store_request *req, struct err *err)
{
	if (w->looks++ == LOOKS)
		return conflict(w, err);
	set_up(w, req, STORE_HEAD);
	req->wants_mark = true;
	return PUT_AGAIN;
}

static int succeed(struct work *w)
{
	w->succeeded = true;
	return 0;
}

/* ---- what an object is whose condition has failed ---- */

static const struct plan_operation *operation_of(const struct work *w, uint32_t i)
{
	return &w->run->a->plan->operations[i];
}

/* Returns whether an operation may have put its object, as far as the journal tells. */
static bool may_have_put(const struct work *w, uint32_t i)
{
	const struct item *item = &w->run->items[i];
	const struct plan_operation *op = operation_of(w, i);
	return op->action == PLAN_PUT && (op->done || item->finished || item->sent);
}

/* Returns whether a request of this key that may have succeeded has put `size` bytes. A key has few
 * operations. */
static bool may_be_ours(const struct work *w, uint64_t size)
{
	const struct item *items = w->run->items;
	uint32_t i = w->i;
	while (items[i].before != NONE)
		i = items[i].before;
	for (; i != NONE; i = items[i].after)
		if (may_have_put(w, i) && operation_of(w, i)->length == size)
			return true;
	return false;
}

/* Returns whether a later operation of the key, or this one, would have removed the object. */
static bool is_removed_by_us(const struct work *w)
{
	uint32_t i = w->i;
	while (i != NONE && operation_of(w, i)->action != PLAN_DELETE)
		i = w->run->items[i].after;
	return i != NONE;
}

static bool has_put(const struct work *w, uint32_t i, const uint8_t digest[PLAN_DIGEST],
		    uint64_t size)
{
	const struct plan_operation *op = operation_of(w, i);
	return may_have_put(w, i) && op->length == size &&
	       memcmp(op->sha256, digest, PLAN_DIGEST) == 0;
}

/* Takes the version that was found as the expected one, because an earlier operation of the key has
 * put it. */
static int take_found(struct work *w, struct store_request *req)
{
	memcpy(w->taken, w->found, sizeof(w->taken));
	w->expect = w->taken;
	return change_again(w, req);
}

/* Returns whether operation i is `other`, or a later one with the same key. */
static bool is_after(const struct work *w, uint32_t i, uint32_t other)
{
	while (other != NONE && other != i)
		other = w->run->items[other].after;
	return other != NONE;
}

/* Judges the answer to the HEAD. */
static int judge_version(struct work *w, struct store_request *req, struct err *err)
{
	const struct store_answer *answer = &req->answer;
	const struct plan_operation *op = w->op;
	const int rc = store_failure(answer, err);
	if (rc)
		return rc;
	if (store_absence(answer)) {
		if (op->condition == PLAN_IF_ABSENT)
			return change_again(w, req);
		return is_removed_by_us(w) ? succeed(w) : conflict(w, err);
	}
	memcpy(w->found, answer->meta.etag, sizeof(w->found));
	/* The operation of this key that has put the object, or NONE if another request has. */
	uint32_t putter;
	if (!plan_find_mark(w->run->a->plan, answer->has_mark ? answer->mark : "", &putter) ||
	    strcmp(operation_of(w, putter)->key, op->key) != 0)
		putter = NONE;
	if (putter != NONE && is_after(w, putter, w->i))
		return succeed(w);
	if (putter != NONE && op->condition == PLAN_IF_VERSION && w->found[0] &&
	    strcmp(w->found, w->expect) != 0)
		return take_found(w, req);
	if (op->condition == PLAN_IF_VERSION && strcmp(w->found, w->expect) == 0)
		return change_again(w, req);
	/* The store keeps marks, whatever it has said before. */
	const bool has_other = answer->has_mark && answer->mark[0];
	const uint64_t size = answer->meta.size;
	if (has_other || keeps_marks(w->run) || !may_be_ours(w, size))
		return conflict(w, err);
	set_up(w, req, STORE_GET);
	req->max = size ? size : 1;
	req->cond.if_match = w->found[0] ? w->found : NULL;
	return PUT_AGAIN;
}

/* Judges the answer to the GET. */
static int judge_bytes(struct work *w, struct store_request *req, struct err *err)
{
	const struct store_answer *answer = &req->answer;
	const struct item *items = w->run->items;
	uint8_t digest[PLAN_DIGEST];
	const int rc = store_failure(answer, err);
	if (rc == -ESTALE || rc == -EFBIG || (rc == 0 && store_absence(answer)))
		return look(w, req, err);
	if (rc)
		return rc;
	plan_digest(answer->body.data, answer->body.len, digest);
	for (uint32_t i = w->i; i != NONE; i = items[i].after)
		if (has_put(w, i, digest, answer->body.len))
			return succeed(w);
	for (uint32_t i = items[w->i].before; i != NONE; i = items[i].before)
		if (w->op->condition == PLAN_IF_VERSION && w->found[0] &&
		    has_put(w, i, digest, answer->body.len))
			return take_found(w, req);
	return conflict(w, err);
}

/* Somebody else has put a summary, which may lack what this plan has changed. */
static int drop_summary(const struct work *w, struct store_request *req)
{
	set_up(w, req, STORE_DELETE);
	return PUT_AGAIN;
}

/* Judges the answer to the PUT or the DELETE. */
static int judge_change(struct work *w, struct store_request *req, struct err *err)
{
	const int rc = store_failure(&req->answer, err);
	if (req->answer.repeated)
		w->run->items[w->i].sent = true;
	if (rc == 0) {
		memcpy(w->found, req->answer.meta.etag, sizeof(w->found));
		return succeed(w);
	}
	/* A request that is forbidden has put nothing, so the commit has not been seen by it. */
	if (rc == -EACCES)
		w->is_refused = w->is_noted && !is_sent(w);
	if (rc != -ESTALE && rc != -EEXIST)
		return rc;
	if (w->op->phase == PHASE_SUMMARY && req->op == STORE_PUT)
		return drop_summary(w, req);
	if (w->op->condition == PLAN_ALWAYS) {
		err->code = -EIO;
		return err_wrap(err, -EIO, "a condition failed, but the request has none");
	}
	return look(w, req, err);
}

static int judge(void *arg, struct store_request *req, struct err *err)
{
	switch (req->op) {
	case STORE_HEAD:
		return judge_version(arg, req, err);
	case STORE_GET:
		return judge_bytes(arg, req, err);
	default:
		return judge_change(arg, req, err);
	}
}

/* ---- operations in the queue ---- */

static int make(void *arg, struct bytes *body, struct err *err)
{
	struct work *w = arg;
	const struct apply *a = w->run->a;
	const size_t n = (size_t)w->op->length;
	if (n && bytes_reserve(body, n))
		return err_no_memory(err);
	const int rc = draft_read_planned(a->draft, a->snapshot, w->op, body->data, err);
	if (rc)
		return rc == -ESTALE ? conflict(w, err) : rc;
	body->len = n;
	return 0;
}

static void release(void *arg)
{
	struct work *w = arg;
	struct run *r = w->run;
	const bool is_known = w->succeeded || w->is_refused;
	if (!is_known)
		free(w);
	pthread_mutex_lock(&r->lock);
	assert(r->pending > 0);
	if (is_known) {
		w->next = r->finished;
		r->finished = w;
	} else {
		r->pending--;
	}
	pthread_cond_signal(&r->over);
	pthread_mutex_unlock(&r->lock);
}

static void note(struct run *r, uint32_t i, enum plan_note what)
{
	struct err err = ERR_INIT;
	if (draft_note_operation(r->a->draft, i, what, &err) == 0 || r->warned)
		return;
	r->warned = true;
	log_warning(
		r->a->env->log,
		"draft %s: %s; if the commit is interrupted, it is repeated from an earlier point",
		draft_id(r->a->draft), err.msg);
}

static int start(struct run *r, uint32_t i, struct err *err)
{
	const struct plan_operation *op = &r->a->plan->operations[i];
	const uint32_t before = r->items[i].before;
	struct work *w = calloc(1, sizeof(*w));
	if (!w)
		return err_no_memory(err);
	w->run = r;
	w->i = i;
	w->op = op;
	plan_mark(r->a->plan->number, i, w->mark);
	w->expect = before != NONE && r->items[before].etag ? r->items[before].etag : op->version;
	w->is_noted = op->action == PLAN_PUT && op->condition != PLAN_ALWAYS &&
		      (r->a->notes_sent || !keeps_marks(r));
	/* What may be withdrawn depends on this note. Otherwise it only helps a later run. */
	int noted = w->is_noted && r->a->notes_sent
			    ? draft_note_operation(r->a->draft, i, PLAN_SENT, err)
			    : 0;
	if (!noted && w->is_noted && op->shows)
		noted = draft_sync_notes(r->a->draft, err);
	if (noted) {
		free(w);
		return noted;
	}
	if (w->is_noted && !r->a->notes_sent)
		note(r, i, PLAN_SENT);
	pthread_mutex_lock(&r->lock);
	r->pending++;
	pthread_mutex_unlock(&r->lock);
	const struct put put = {.key = op->key,
				.cond = condition_of(w),
				.mark = w->mark,
				.make = op->action == PLAN_PUT ? make : NULL,
				.answered = judge,
				.release = release,
				.arg = w,
				.memory = op->length};
	return put_queue_add(r->queue, &put, err);
}

/* ---- the caller's thread ---- */

/* Settles an operation that has succeeded, or was refused. Frees w. */
static void settle(struct run *r, struct work *w)
{
	if (!w->succeeded) {
		note(r, w->i, PLAN_VOID);
		free(w);
		return;
	}

	struct item *item = &r->items[w->i];
	const bool is_put = w->op->action == PLAN_PUT;
	if (is_put)
		r->out->puts++;
	else
		r->out->deletes++;
	r->out->bytes += w->op->length;
	item->finished = true;
	if (is_put && item->after != NONE && w->found[0])
		item->etag = strdup(w->found); /* without memory for it, the object is examined */
	if (!r->defers)
		note(r, w->i, PLAN_DONE);
	if (r->a->done)
		r->a->done(r->a->ctx, w->i, is_put ? w->found : "");
	free(w);
}

/* Settles what has ended. If `all` is set, waits until nothing is pending. */
static void settle_finished(struct run *r, bool all)
{
	pthread_mutex_lock(&r->lock);
	while (r->finished || (all && r->pending)) {
		struct work *w = r->finished;
		if (!w) {
			pthread_cond_wait(&r->over, &r->lock);
			continue;
		}
		r->finished = w->next;
		pthread_mutex_unlock(&r->lock);
		settle(r, w);
		pthread_mutex_lock(&r->lock);
		r->pending--;
	}
	pthread_mutex_unlock(&r->lock);
}

/* Runs the operations of one phase: those of r->order[from] to before r->order[to]. */
static int run_phase(struct run *r, uint32_t from, uint32_t to, struct err *err)
{
	int rc = 0;
	for (uint32_t k = from; rc == 0 && k < to; k++) {
		rc = start(r, r->order[k], err);
		settle_finished(r, false);
	}
	settle_finished(r, true);
	const int flushed = put_queue_flush(r->queue, rc ? NULL : err);
	rc = rc ? rc : flushed;
	const int synced = store_sync(r->a->store, rc ? NULL : err);
	for (uint32_t k = from; r->defers && synced == 0 && k < to; k++)
		if (r->items[r->order[k]].finished)
			note(r, r->order[k], PLAN_DONE);
	return rc ? rc : synced;
}

static int run_phases(struct run *r, struct err *err)
{
	const struct plan_operation *ops = r->a->plan->operations;
	int rc = 0;
	for (uint32_t from = 0, to; rc == 0 && from < r->count; from = to) {
		to = from + 1;
		while (to < r->count && ops[r->order[to]].phase == ops[r->order[from]].phase)
			to++;
		rc = run_phase(r, from, to, err);
		if (!rc && r->a->phase_done)
			rc = r->a->phase_done(r->a->ctx, ops[r->order[from]].phase, err);
	}
	return rc;
}

static int run_all(struct run *r, struct err *err)
{
	const struct apply *a = r->a;
	int rc = order_operations(r, err);
	if (rc || r->count == 0)
		return rc;
	r->queue = put_queue_new(a->env, a->store, a->puts, a->cancelled);
	rc = r->queue ? run_phases(r, err) : err_no_memory(err);
	put_queue_free(r->queue);
	/* The conflict counts more than another error of the same phase: it remains. */
	if (r->conflict != NONE) {
		r->out->conflict = r->conflict;
		err_copy(err, &r->why);
		rc = -ESTALE;
	}
	return rc;
}

int apply_run(const struct apply *a, struct apply_result *out, struct err *err)
{
	*out = (struct apply_result){.conflict = APPLY_NO_CONFLICT};
	struct run r = {.a = a, .out = out, .conflict = NONE};
	r.defers = store_life(a->store)[0] != '\0';
	pthread_mutex_init(&r.lock, NULL);
	pthread_cond_init(&r.over, NULL);
	const int rc = run_all(&r, err);
	for (uint32_t i = 0; r.items && i < a->plan->count; i++)
		free(r.items[i].etag);
	free(r.items);
	free(r.order);
	pthread_cond_destroy(&r.over);
	pthread_mutex_destroy(&r.lock);
	return rc;
}

int apply_note_removed(const struct apply *a, struct gc_log *log, const char *path,
		       uint32_t *number, struct err *err)
{
	const struct plan_subject *s = &a->plan->subject;
	const struct gc_event event = {.type = GC_OBJECTS,
				       .path = path,
				       .storage = s->root,
				       .next = "",
				       .count = s->nremoved,
				       .objects = s->removed};
	*number = GC_NONE;
	return s->nremoved ? gc_log_put(log, number, &event, err) : 0;
}
