/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks again after a passing fault (-EAGAIN), with jittered exponential back-off.
 *
 *   pause before attempt n+1: between half of and the whole min(cap, base * 2^(n-1)); that much
 *              later than the server has asked for, where it has (err->again_ms)
 *   given up: after `attempts`, or when the next pause would end after `budget`; then -EIO
 *
 * A get that nobody wants any more, for half a second of a pause, ends with -ECANCELED.
 *
 * Gets wait in a list that one thread counts down: a worker of the pool that slept would be missing
 * where bytes are decoded. It is started by the first get that waits. Lists, puts and deletes sleep
 * in their caller.
 *
 * Threads: lock guards the list and the thread's state; no request is submitted under it. The
 * thread sleeps by env->sleep in slices, and pauses are counted down by what was slept rather than
 * read off a clock, so that with a fake clock no time passes.
 */
#include <store/store.h>

#include "job.h"
#include "wrapper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <base/str.h>

static const uint64_t ms = 1000000, slice_ns = UINT64_C(20) * 1000000,
		      unwanted_ns = UINT64_C(500) * 1000000; /* as of a request under way */

/* Attempts at one request so far. */
struct attempts {
	unsigned int n;
	uint64_t started_ns, waited_ns;
};

struct retry_store {
	struct wrapper wrapper;
	struct store_retry_options opt;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct waiting *list; /* ascending by left_ns */
	bool running, stopping;
	pthread_t thread; /* valid while running */
};

/* One get from its submission to its completion. */
struct waiting {
	struct retry_store *r;
	struct waiting *next;
	uint64_t left_ns;     /* while it is in the list */
	uint64_t unwanted_ns; /* for how long nobody has wanted it, there */
	struct attempts attempts;
	struct store_get req; /* points to the texts; done and arg are ours */
	struct str key, if_match, if_none_match, known_etag;
	store_get_done done;
	void *arg;
};

static struct retry_store *retry_of(struct store *s)
{
	return (struct retry_store *)s;
}

static uint64_t now_ns(const struct retry_store *r)
{
	return r->wrapper.base.env->now(r->wrapper.base.env);
}

/* ---- the policy ---- */

static uint64_t jittered(const struct retry_store *r, unsigned int n)
{
	uint64_t pause = r->opt.cap_ms * ms, random = 0;
	if (n <= 20)
		pause = min_u64(pause, (r->opt.base_ms * ms) << (n - 1));
	r->wrapper.base.env->random(r->wrapper.base.env, &random, sizeof(random));
	return pause / 2 + random % (pause / 2 + 1);
}

/* After an attempt that failed with -EAGAIN. False: give up. */
static bool try_again(const struct retry_store *r, struct attempts *a, const struct err *err,
		      uint64_t *pause_ns)
{
	a->n++;
	if (a->n >= r->opt.attempts)
		return false;
	*pause_ns = jittered(r, a->n) + err->again_ms * ms;
	const uint64_t spent = max_u64(now_ns(r) - a->started_ns, a->waited_ns);
	if (spent + *pause_ns > r->opt.budget_ms * ms)
		return false;
	a->waited_ns += *pause_ns;
	meter_retry(r->opt.meter);
	return true;
}

static int give_up(const struct retry_store *r, const struct attempts *a, struct err *err)
{
	const uint64_t spent = max_u64(now_ns(r) - a->started_ns, a->waited_ns);
	err->code = -EIO;
	return err_wrap(err, -EIO, "%u attempts in %.1f s", a->n, (double)spent / 1e9);
}

/* After an attempt that ended otherwise than with -EAGAIN: a failure names it, unless it is the
 * only one. */
static void name_attempt(const struct attempts *a, int code, struct err *err)
{
	if (code && a->n)
		err_wrap(err, code, "attempt %u", a->n + 1);
}

static void tell(const struct retry_store *r, const struct attempts *a, uint64_t pause_ns,
		 const struct err *err)
{
	log_info(r->wrapper.base.env->log, "attempt %u, again in %u ms: %s", a->n,
		 (unsigned int)(pause_ns / ms), err->msg);
}

/* ---- gets ---- */

static void insert_locked(struct retry_store *r, struct waiting *w)
{
	struct waiting **at = &r->list;
	while (*at && (*at)->left_ns <= w->left_ns)
		at = &(*at)->next;
	w->next = *at;
	*at = w;
}

static bool is_called_off(const struct waiting *w)
{
	return w->unwanted_ns >= unwanted_ns;
}

/* Takes one that is due, or called off. */
static struct waiting *take_locked(struct retry_store *r)
{
	struct waiting **at = &r->list;
	while (*at && (*at)->left_ns && !is_called_off(*at))
		at = &(*at)->next;
	struct waiting *w = *at;
	if (w)
		*at = w->next;
	return w;
}

static void count_down_locked(struct retry_store *r, uint64_t slept)
{
	for (struct waiting *w = r->list; w; w = w->next) {
		const bool unwanted = w->req.unwanted && atomic_load(w->req.unwanted);
		w->left_ns -= min_u64(w->left_ns, slept);
		w->unwanted_ns = unwanted ? w->unwanted_ns + slept : 0;
	}
}

static void passed(void *arg, struct store_get_result *res);

static void ask_or_call_off(struct waiting *w)
{
	struct store_get_result res = {0};
	if (!is_called_off(w)) {
		store_get_async(w->r->wrapper.inner, &w->req);
		return;
	}
	res.code = err_set(&res.err, -ECANCELED, "object %s: nobody wants it any more", w->req.key);
	passed(w, &res);
}

static void *run(void *arg)
{
	struct retry_store *r = arg;
	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct waiting *w = take_locked(r);
		if (w) {
			pthread_mutex_unlock(&r->lock);
			ask_or_call_off(w);
			pthread_mutex_lock(&r->lock);
		} else if (r->list) {
			const uint64_t slice = min_u64(r->list->left_ns, slice_ns);
			pthread_mutex_unlock(&r->lock);
			r->wrapper.base.env->sleep(r->wrapper.base.env, slice);
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

static bool start_locked(struct retry_store *r)
{
	sigset_t all, old;
	if (r->running)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r->running = pthread_create(&r->thread, NULL, run, r) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r->running;
}

/* False without a thread: then the get fails as it is. */
static bool wait_in_list(struct waiting *w, uint64_t pause_ns)
{
	struct retry_store *r = w->r;
	w->left_ns = pause_ns;
	w->unwanted_ns = 0;
	pthread_mutex_lock(&r->lock);
	const bool started = start_locked(r);
	if (started) {
		insert_locked(r, w);
		pthread_cond_signal(&r->wake);
	}
	pthread_mutex_unlock(&r->lock);
	return started;
}

static void free_waiting(struct waiting *w)
{
	str_release(&w->key);
	str_release(&w->if_match);
	str_release(&w->if_none_match);
	str_release(&w->known_etag);
	free(w);
}

static void passed(void *arg, struct store_get_result *res)
{
	struct waiting *w = arg;
	uint64_t pause_ns = 0;
	if (res->code == -EAGAIN) {
		if (try_again(w->r, &w->attempts, &res->err, &pause_ns)) {
			tell(w->r, &w->attempts, pause_ns, &res->err);
			if (wait_in_list(w, pause_ns))
				return;
		}
		res->code = give_up(w->r, &w->attempts, &res->err);
	} else {
		name_attempt(&w->attempts, res->code, &res->err);
	}
	const store_get_done done = w->done;
	void *const done_arg = w->arg;
	free_waiting(w);
	done(done_arg, res);
}

static bool keep(struct str *copy, const char **text)
{
	if (!*text)
		return true;
	str_add(copy, *text);
	*text = str_text(copy);
	return str_ok(copy);
}

static void get(struct store *s, const struct store_get *req)
{
	struct retry_store *r = retry_of(s);
	struct waiting *w = calloc(1, sizeof(*w));
	if (w) {
		*w = (struct waiting){.r = r, .req = *req, .done = req->done, .arg = req->arg};
		if (!keep(&w->key, &w->req.key) || !keep(&w->if_match, &w->req.cond.if_match) ||
		    !keep(&w->if_none_match, &w->req.cond.if_none_match) ||
		    !keep(&w->known_etag, &w->req.known_etag)) {
			free_waiting(w);
			w = NULL;
		}
	}
	if (!w) {
		job_fail(req, -ENOMEM, "object %s: no memory", req->key);
		return;
	}
	w->attempts.started_ns = now_ns(r);
	w->req.done = passed;
	w->req.arg = w;
	store_get_async(r->wrapper.inner, &w->req);
}

/* ---- the others ---- */

/* After a call returned rc: true when it is to be made once more. Else rc is the result. */
static bool once_more(struct retry_store *r, struct attempts *a, int *rc, struct err *err)
{
	uint64_t pause_ns = 0;
	if (*rc == 0 && a->n)
		*err = (struct err)ERR_INIT; /* the failures before are nobody's */
	if (*rc != -EAGAIN) {
		name_attempt(a, *rc, err);
		return false;
	}
	if (!try_again(r, a, err, &pause_ns)) {
		*rc = give_up(r, a, err);
		return false;
	}
	tell(r, a, pause_ns, err);
	r->wrapper.base.env->sleep(r->wrapper.base.env, pause_ns);
	return true;
}

static int list(struct store *s, const struct store_list *req, struct store_page *page,
		struct err *err)
{
	struct retry_store *r = retry_of(s);
	struct attempts a = {.started_ns = now_ns(r)};
	struct err own = ERR_INIT;
	int rc;
	err = err ? err : &own;
	do
		rc = store_list_page(r->wrapper.inner, req, page, err);
	while (once_more(r, &a, &rc, err));
	return rc;
}

static int put(struct store *s, const char *key, const void *body, size_t n,
	       const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct retry_store *r = retry_of(s);
	struct attempts a = {.started_ns = now_ns(r)};
	struct store_cond mine = *cond;
	struct err own = ERR_INIT;
	int rc;
	err = err ? err : &own;
	do {
		rc = store_put(r->wrapper.inner, key, body, n, &mine, meta, err);
		mine.again = true;
	} while (once_more(r, &a, &rc, err));
	return rc;
}

static int del(struct store *s, const char *key, const struct store_cond *cond, struct err *err)
{
	struct retry_store *r = retry_of(s);
	struct attempts a = {.started_ns = now_ns(r)};
	struct err own = ERR_INIT;
	int rc;
	err = err ? err : &own;
	do
		rc = store_delete(r->wrapper.inner, key, cond, err);
	while (once_more(r, &a, &rc, err));
	return rc;
}

static void free_store(struct store *s)
{
	struct retry_store *r = retry_of(s);
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	const bool running = r->running;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	if (running)
		pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	wrapper_free(s);
}

static const struct store_ops retry_ops = {
	.name = "retry",
	.get = get,
	.list = list,
	.put = put,
	.del = del,
	.space = wrapper_space,
	.free = free_store,
};

struct store *store_retry_new(struct store *inner, const struct store_retry_options *opt,
			      struct err *err)
{
	static const struct store_retry_options usual = {
		.attempts = 20, .base_ms = 100, .cap_ms = 5000, .budget_ms = 60000};
	struct retry_store *r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(err, -ENOMEM, "retrying store: no memory");
		return NULL;
	}
	wrapper_init(&r->wrapper, &retry_ops, inner);
	r->opt = opt ? *opt : (struct store_retry_options){0};
	if (!r->opt.attempts)
		r->opt.attempts = usual.attempts;
	if (!r->opt.base_ms)
		r->opt.base_ms = usual.base_ms;
	if (!r->opt.cap_ms)
		r->opt.cap_ms = usual.cap_ms;
	if (!r->opt.budget_ms)
		r->opt.budget_ms = usual.budget_ms;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	return &r->wrapper.base;
}
