/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats a request after a temporary failure (-EAGAIN), with exponential back-off and jitter.
 *
 * The pause before attempt n+1 is a random time between p/2 and p, where p = min(cap, base *
 * 2^(n-1)). If the server says how long to wait (err->retry_after_ms), that time is added. The last
 * attempt is number `attempts`, or the one after which the next pause would end later than
 * `budget`. If it fails, too, the request fails with -EIO. The same budget limits the time that all
 * requests of a call lose together (base/repeat_time.h). But a request for which none of it is left
 * has LEAST attempts, as long as they take LEAST_MS: that one object cannot be read must not be the
 * end of all others, and a short failure must not end a call that has waited.
 *
 * A conditional put without a mark gets a random one, which is the same in all attempts. So the
 * store below can tell whether an attempt whose answer was lost has put the object.
 *
 * A DELETE is not repeated if the machine has slept for five minutes in the meantime.
 *
 * A request that is cancelled during a pause fails with -ECANCELED half a second later.
 *
 * Waiting requests are in a list, and one thread counts their pauses down. They do not sleep in
 * workers of the pool, because the workers are needed to decode. The first request that has to wait
 * starts the thread.
 *
 * Threads: `lock` guards the list and the state of the thread. No request is submitted under it.
 * The thread sleeps in slices with env->sleep and subtracts each slice from the pauses. It does not
 * read a clock, so with a fake sleep no time passes.
 */
#include <store/implement.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <base/hex.h>
#include <base/repeat_time.h>
#include <base/thread.h>

static const uint64_t ms = 1000000, slice_ns = UINT64_C(20) * 1000000,
		      cancel_ns = UINT64_C(500) *
				  1000000; /* s3/ allows a request in progress the same time */

enum { RANDOM_BYTES = 16, LEAST = 3, LEAST_MS = 2000 };

/* The private memory of a request: its attempts so far. */
struct attempts {
	unsigned int n;
	struct repeat_time *call; /* to which it belongs, or NULL */
	uint64_t sent_ns;	  /* when the last attempt began, if it is not the first */
	uint64_t started_ns, waited_ns;
	uint64_t booted_ns; /* when it started, with the time that the machine has slept */
	uint32_t damage;    /* of the latest answer */
	bool unsure;	    /* one of them may have been carried out */
	char mark[2 * RANDOM_BYTES + 1]; /* "" if the request has its own, or needs none */
	/* While it is in the list: */
	struct store_request *req, *next;
	uint64_t left_ns;
	uint64_t cancelled_ns; /* how long it has been cancelled */
};

struct retry_store {
	struct store base;
	struct store_retry_options opt;
	atomic_uint_fast64_t repeated;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct store_request *list; /* ascending by left_ns */
	bool running, stopping;
	pthread_t thread; /* valid while running */
};

static struct retry_store *retry_of(struct store *s)
{
	return (struct retry_store *)s;
}

static struct attempts *attempts_of(const struct retry_store *r, struct store_request *req)
{
	return store_private(&r->base, req);
}

static uint64_t now_ns(const struct retry_store *r)
{
	return r->base.env->now(r->base.env);
}

/* ---- policy ---- */

static uint64_t jittered(const struct retry_store *r, unsigned int n)
{
	uint64_t pause = r->opt.cap_ms * ms, random = 0;
	if (n <= 20)
		pause = min_u64(pause, (r->opt.base_ms * ms) << (n - 1));
	r->base.env->random(r->base.env, &random, sizeof(random));
	return pause / 2 + random % (pause / 2 + 1);
}

static uint64_t spent_ns(const struct retry_store *r, const struct attempts *a)
{
	return max_u64(now_ns(r) - a->started_ns, a->waited_ns);
}

/* Returns whether the machine has slept since the request was sent. What another program has put
 * meanwhile must not be deleted by an attempt that follows (storage/storage_deletion.h). */
static bool has_slept(const struct retry_store *r, const struct attempts *a)
{
	const uint64_t slept_max_ns = UINT64_C(300000000000);
	const uint64_t passed = env_boot(r->base.env) - a->booted_ns;
	return passed > slept_max_ns && passed - slept_max_ns > now_ns(r) - a->started_ns;
}

/* Returns whether the call of a request allows another attempt, which begins `own_ns` after the
 * first one. */
static bool call_allows(const struct retry_store *r, struct attempts *a, uint64_t own_ns,
			uint64_t pause_ns)
{
	a->sent_ns = now_ns(r) + pause_ns;
	return (a->n < LEAST && own_ns <= LEAST_MS * ms) ||
	       repeat_lost(a->call, a->started_ns, a->sent_ns) <= r->opt.budget_ms * ms;
}

/* Called after an attempt that failed with -EAGAIN; for `damage` see struct store_answer. Returns
 * false if it was the last attempt. */
static bool plan_attempt(struct retry_store *r, struct attempts *a, const struct err *err,
			 uint32_t damage, uint64_t *pause_ns)
{
	const bool is_same = damage && damage == a->damage;
	a->damage = damage;
	a->n++;
	if (a->n >= r->opt.attempts || is_same)
		return false;
	*pause_ns = jittered(r, a->n) + err->retry_after_ms * ms;
	const uint64_t own = spent_ns(r, a) + *pause_ns;
	if (own > r->opt.budget_ms * ms || (a->call && !call_allows(r, a, own, *pause_ns)))
		return false;
	a->waited_ns += *pause_ns;
	atomic_fetch_add_explicit(&r->repeated, 1, memory_order_relaxed);
	return true;
}

static void leave_call(const struct retry_store *r, struct attempts *a, bool is_given_up)
{
	if (!a->call)
		return;
	const uint64_t now = now_ns(r), sent = a->n ? a->sent_ns : a->started_ns;
	repeat_ended(a->call, a->started_ns, is_given_up ? now : sent, now);
	repeat_unref(a->call);
	a->call = NULL;
}

static void log_attempt(const struct retry_store *r, const struct attempts *a, uint64_t pause_ns,
			const struct err *err)
{
	log_info(r->base.env->log, "attempt %u failed, the next follows in %u ms: %s", a->n,
		 (unsigned int)(pause_ns / ms), err->msg);
}

/* ---- waiting ---- */

static void insert_locked(struct retry_store *r, struct attempts *a)
{
	struct store_request **at = &r->list;
	while (*at && attempts_of(r, *at)->left_ns <= a->left_ns)
		at = &attempts_of(r, *at)->next;
	a->next = *at;
	*at = a->req;
}

static bool gives_up(const struct attempts *a)
{
	return a->cancelled_ns >= cancel_ns;
}

/* Removes a request that is due or cancelled from the list. Returns NULL if there is none. */
static struct attempts *take_locked(struct retry_store *r)
{
	for (struct store_request **at = &r->list; *at; at = &attempts_of(r, *at)->next) {
		struct attempts *a = attempts_of(r, *at);
		if (a->left_ns && !gives_up(a))
			continue;
		*at = a->next;
		return a;
	}
	return NULL;
}

static void count_down_locked(struct retry_store *r, uint64_t slept)
{
	for (struct store_request *req = r->list; req; req = attempts_of(r, req)->next) {
		struct attempts *a = attempts_of(r, req);
		const bool cancelled = is_cancelled(&req->cancelled);
		a->left_ns -= min_u64(a->left_ns, slept);
		a->cancelled_ns = cancelled ? a->cancelled_ns + slept : 0;
	}
}

/* Runs in a worker, because the caller's `done` must not run in the thread of the list. */
static void cancel(void *arg)
{
	struct store_request *req = arg;
	req->cond.retried = false;
	store_fail(store_working(req), req, -ECANCELED, "%s of %s: cancelled",
		   store_op_name(req->op), req->key);
}

static void end_wait(struct retry_store *r, struct attempts *a)
{
	struct store_request *req = a->req;
	store_answer_clear(req);
	if (gives_up(a))
		store_work(&r->base, req, cancel);
	else
		store_pass(&r->base, req);
}

static void *run(void *arg)
{
	struct retry_store *r = arg;
	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct attempts *a = take_locked(r);
		if (a) {
			pthread_mutex_unlock(&r->lock);
			end_wait(r, a);
			pthread_mutex_lock(&r->lock);
		} else if (r->list) {
			const uint64_t slice = min_u64(attempts_of(r, r->list)->left_ns, slice_ns);
			pthread_mutex_unlock(&r->lock);
			r->base.env->sleep(r->base.env, slice);
			pthread_mutex_lock(&r->lock);
			count_down_locked(r, slice);
		} else if (r->stopping) {
			break;
		} else {
			pthread_cond_wait(&r->wake, &r->lock);
		}
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* Returns false if the thread cannot be started. Then the request fails. */
static bool wait_in_list(struct retry_store *r, struct attempts *a, struct store_request *req,
			 uint64_t pause_ns)
{
	a->req = req;
	a->left_ns = pause_ns;
	a->cancelled_ns = 0;
	pthread_mutex_lock(&r->lock);
	if (!r->running)
		r->running = thread_start(&r->thread, run, r);
	const bool started = r->running;
	if (started) {
		insert_locked(r, a);
		pthread_cond_signal(&r->wake);
	}
	pthread_mutex_unlock(&r->lock);
	return started;
}

/* ---- the store ---- */

static void add_mark(const struct retry_store *r, struct attempts *a, struct store_request *req)
{
	const struct env *env = r->base.env;
	uint8_t random[RANDOM_BYTES];
	if (req->op != STORE_PUT || req->mark || !(req->cond.if_match || req->cond.if_none_match))
		return;
	env->random(env, random, sizeof(random));
	hex_encode(random, sizeof(random), a->mark);
	req->mark = a->mark;
}

static void submit(struct store *s, struct store_request *req)
{
	struct retry_store *r = retry_of(s);
	struct attempts *a = attempts_of(r, req);
	a->started_ns = now_ns(r);
	a->booted_ns = env_boot(r->base.env);
	a->call = repeat_current();
	add_mark(r, a, req);
	store_pass(s, req);
}

static void completed(struct store *s, struct store_request *req)
{
	struct retry_store *r = retry_of(s);
	struct attempts *a = attempts_of(r, req);
	struct store_answer *answer = &req->answer;
	uint64_t pause_ns = 0;
	const bool has_failed = answer->state == STORE_UNKNOWN && answer->err.code == -EAGAIN;
	if (has_failed) {
		a->unsure |= !answer->refused || answer->repeated;
		const bool may_repeat = req->op != STORE_DELETE || !has_slept(r, a);
		if (may_repeat && plan_attempt(r, a, &answer->err, answer->damage, &pause_ns)) {
			log_attempt(r, a, pause_ns, &answer->err);
			req->cond.retried |= a->unsure;
			if (wait_in_list(r, a, req, pause_ns))
				return;
		}
		answer->err.code = -EIO;
		err_wrap(&answer->err, -EIO, "%u attempts in %.1f s", a->n,
			 (double)spent_ns(r, a) / 1e9);
	} else if (answer->state == STORE_UNKNOWN && a->n) {
		/* The reason names the attempt, unless it was the first. */
		err_wrap(&answer->err, answer->err.code, "attempt %u", a->n + 1);
	}
	answer->repeated |= (req->op == STORE_PUT || req->op == STORE_DELETE) && a->unsure;
	if (a->mark[0])
		req->mark = NULL;
	leave_call(r, a, has_failed);
	/* The next page of a whole listing starts at attempt 1. */
	*a = (struct attempts){0};
	req->cond.retried = false;
	store_complete(s, req);
}

/* A call that blocks. */
struct call {
	int (*fn)(struct store *inner, const void *arg, struct err *err);
	const void *arg;
};

/* Repeats a call that failed with -EAGAIN. */
static int repeat(struct store *s, const struct call *call, struct err *err)
{
	struct retry_store *r = retry_of(s);
	struct attempts a = {.started_ns = now_ns(r), .call = repeat_current()};
	struct err why = ERR_INIT;
	uint64_t pause_ns = 0;
	int rc = call->fn(s->inner, call->arg, &why);
	while (rc == -EAGAIN && plan_attempt(r, &a, &why, 0, &pause_ns)) {
		log_attempt(r, &a, pause_ns, &why);
		s->env->sleep(s->env, pause_ns);
		err_clear(&why);
		rc = call->fn(s->inner, call->arg, &why);
	}
	leave_call(r, &a, rc == -EAGAIN);
	if (rc == -EAGAIN) {
		why.code = rc = -EIO;
		err_wrap(&why, rc, "%u attempts in %.1f s", a.n, (double)spent_ns(r, &a) / 1e9);
	}
	if (rc)
		err_copy(err, &why);
	return rc;
}

struct move {
	const char *from, *from_version, *to;
	const struct store_cond *cond;
	struct store_meta *meta;
};

static int move_once(struct store *inner, const void *arg, struct err *err)
{
	const struct move *m = arg;
	return store_move(inner, m->from, m->from_version, m->to, m->cond, m->meta, err);
}

/* A move that failed with -EAGAIN has changed nothing, see store_move(). */
static int move(struct store *s, const char *from, const char *from_version, const char *to,
		const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	const struct move m = {from, from_version, to, cond, meta};
	return repeat(s, &(struct call){move_once, &m}, err);
}

struct uploads {
	const char *prefix;
	struct store_upload_page *page;
};

static int list_once(struct store *inner, const void *arg, struct err *err)
{
	const struct uploads *u = arg;
	return store_list_uploads(inner, u->prefix, u->page, err);
}

static int list_uploads(struct store *s, const char *prefix, struct store_upload_page *page,
			struct err *err)
{
	const struct uploads u = {prefix, page};
	return repeat(s, &(struct call){list_once, &u}, err);
}

static int abort_once(struct store *inner, const void *arg, struct err *err)
{
	const struct store_upload *u = arg;
	return store_abort_upload(inner, u->key, u->id, err);
}

static int abort_upload(struct store *s, const char *key, const char *id, struct err *err)
{
	const struct store_upload u = {.key = key, .id = id};
	return repeat(s, &(struct call){abort_once, &u}, err);
}

/* No request is in progress, so none can start the thread meanwhile. */
static void stop(struct retry_store *r)
{
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	const bool running = r->running;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	if (running)
		pthread_join(r->thread, NULL);
	r->running = false;
	r->stopping = false;
}

static void free_store(struct store *s)
{
	struct retry_store *r = retry_of(s);
	stop(r);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	store_wrapper_free(s);
}

static const struct store_ops retry_ops = {
	.name = "retry",
	.submit = submit,
	.completed = completed,
	.move = move,
	.list_uploads = list_uploads,
	.abort_upload = abort_upload,
	.free = free_store,
};

uint64_t store_retry_count(struct store *retrying)
{
	assert(retrying->ops == &retry_ops);
	return atomic_load_explicit(&retry_of(retrying)->repeated, memory_order_relaxed);
}

void store_retry_stop_thread(struct store *retrying)
{
	assert(retrying->ops == &retry_ops);
	stop(retry_of(retrying));
}

struct store *store_retry_new(struct store *inner, const struct store_retry_options *opt,
			      struct err *err)
{
	static const struct store_retry_options defaults = {
		.attempts = 20, .base_ms = 100, .cap_ms = 5000, .budget_ms = 60000};
	struct store *s = store_wrap_new(sizeof(struct retry_store), &retry_ops, inner,
					 sizeof(struct attempts), err);
	if (!s)
		return NULL;
	struct retry_store *r = retry_of(s);
	r->opt = opt ? *opt : (struct store_retry_options){0};
	if (!r->opt.attempts)
		r->opt.attempts = defaults.attempts;
	if (!r->opt.base_ms)
		r->opt.base_ms = defaults.base_ms;
	if (!r->opt.cap_ms)
		r->opt.cap_ms = defaults.cap_ms;
	if (!r->opt.budget_ms)
		r->opt.budget_ms = defaults.budget_ms;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	return &r->base;
}
