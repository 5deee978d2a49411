/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the service of a store can be reached: the state of outage.h with its lock, its two lines
 * in the log, and a thread that sends a probe when it is due, a HEAD of the bucket. So the state
 * also ends if no program sends requests, and one request that has got no answer long ago proves
 * nothing.
 *
 * Threads: the lock guards `outage` and the state of the thread. The first request without an
 * answer starts the thread, which sleeps while the service answers. An answer needs no lock while
 * `is_silent` is false. Both sides first write and then read, one of them `heard_ns` and then
 * `is_silent`, the other one in the other order. So at least one of them sees the other's.
 */
#include "s3_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <base/thread.h>

enum { NS_PER_S = 1000000000, SINCE_SIZE = 32 };

void s3_reach_init(struct s3_reach *r, unsigned int retry_ms,
		   void (*send_probe)(struct s3_store *s))
{
	pthread_condattr_t clock;
	r->send_probe = send_probe;
	r->outage.limit_ns = (uint64_t)retry_ms * 1000000;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &clock);
	pthread_condattr_destroy(&clock);
}

void s3_reach_release(struct s3_reach *r)
{
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
}

static uint64_t now_ns(const struct s3_store *s)
{
	return env_now(s->base.env);
}

/* Writes the time of the first request without an answer. */
static const char *since_locked(const struct s3_store *s, char text[SINCE_SIZE])
{
	const uint64_t ago_ns = now_ns(s) - s->reach.outage.since_ns;
	const time_t at = (time_t)((env_wall(s->base.env) - (int64_t)ago_ns) / NS_PER_S);
	struct tm tm;
	if (!gmtime_r(&at, &tm) || !strftime(text, SINCE_SIZE, "%Y-%m-%d %H:%M:%S UTC", &tm))
		text[0] = '\0';
	return text;
}

/* ---- the thread ---- */

static void sleep_until_locked(struct s3_reach *r, uint64_t ns)
{
	const struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S),
				       .tv_nsec = (long)(ns % NS_PER_S)};
	pthread_cond_timedwait(&r->changed, &r->lock, &until);
}

static void *run(void *arg)
{
	struct s3_store *s = arg;
	struct s3_reach *r = &s->reach;
	pthread_mutex_lock(&r->lock);
	while (!r->stopping) {
		const uint64_t due = s3_outage_due(&r->outage), now = now_ns(s);
		if (due == UINT64_MAX || r->outage.probing) {
			pthread_cond_wait(&r->changed, &r->lock);
		} else if (now < due) {
			sleep_until_locked(r, due);
		} else {
			pthread_mutex_unlock(&r->lock);
			r->send_probe(s);
			pthread_mutex_lock(&r->lock);
			/* It may not have been sent, perhaps because a program's is on its way. */
			if (!r->outage.probing)
				s3_outage_probed(&r->outage, now_ns(s));
		}
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

void s3_reach_stop_thread(struct s3_store *s)
{
	struct s3_reach *r = &s->reach;
	pthread_mutex_lock(&r->lock);
	const bool running = r->running;
	r->stopping = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (running)
		pthread_join(r->thread, NULL);
	r->running = r->stopping = false;
}

/* ---- requests ---- */

int s3_reach_admit(struct s3_request *call, bool may_probe, struct err *err)
{
	struct s3_store *s = call->s;
	struct s3_reach *r = &s->reach;
	char since[SINCE_SIZE] = "";
	if (!atomic_load(&r->is_silent))
		return 0;
	const unsigned int ms =
		call->http.first_byte_ms ? call->http.first_byte_ms : r->first_byte_ms;
	pthread_mutex_lock(&r->lock);
	const enum s3_admission admission = s3_outage_admit(&r->outage, may_probe, now_ns(s));
	call->is_probe = admission == S3_ADMIT_AS_PROBE;
	call->http.first_byte_ms = s3_outage_cut(&r->outage, ms, now_ns(s));
	if (admission == S3_ADMIT_NOT)
		since_locked(s, since);
	pthread_mutex_unlock(&r->lock);
	if (admission != S3_ADMIT_NOT)
		return 0;
	err_set(err, -EIO, "%s %s: %s has been unreachable since %s", call->method, call->what,
		str_text(&s->endpoint.host), since);
	if (err)
		err->is_logged = true;
	return -EIO;
}

bool s3_reach_ends(const void *arg)
{
	const struct s3_request *call = arg;
	const bool is_sent = call->http.started_ns != 0;
	if (is_cancelled(&call->cancelled))
		return true;
	return atomic_load(&call->s->reach.is_unreachable) && !call->is_probe &&
	       !call->answer.is_heard && !(is_sent && call->http.body_len);
}

void s3_reach_answered(struct s3_store *s)
{
	struct s3_reach *r = &s->reach;
	const uint64_t now = now_ns(s);
	atomic_store(&r->heard_ns, now);
	if (!atomic_load(&r->is_silent))
		return;
	pthread_mutex_lock(&r->lock);
	const uint64_t since = r->outage.since_ns;
	const bool was_unreachable = s3_outage_answered(&r->outage);
	atomic_store(&r->is_silent, false);
	atomic_store(&r->is_unreachable, false);
	pthread_mutex_unlock(&r->lock);
	if (was_unreachable)
		log_warning(s->base.env->log, "%s answers again after %" PRIu64 " s",
			    str_text(&s->endpoint.host), (now - since) / NS_PER_S);
}

static void note_silence(struct s3_request *call)
{
	struct s3_store *s = call->s;
	struct s3_reach *r = &s->reach;
	/* Before this, the service has received a part of the body. */
	const uint64_t sent = call->http.timeouts.since_ns;
	char since[SINCE_SIZE] = "";
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->is_silent, true);
	const bool is_unreachable =
		s3_outage_silent(&r->outage, sent, atomic_load(&r->heard_ns), now_ns(s));
	const bool answers = r->outage.state == S3_ANSWERS;
	atomic_store(&r->is_silent, !answers);
	atomic_store(&r->is_unreachable, r->outage.state == S3_UNREACHABLE);
	if (is_unreachable)
		since_locked(s, since);
	if (!answers && !r->running && !atomic_load(&s->closing))
		r->running = thread_start(&r->thread, run, s);
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (is_unreachable)
		log_warning(s->base.env->log,
			    "%s has been unreachable since %s (%s). Requests fail at once until it "
			    "answers",
			    str_text(&s->endpoint.host), since, call->http.reason);
}

void s3_reach_note(struct s3_request *call)
{
	const struct http_call *http = &call->http;
	if (!call->failed && http->status && !call->answer.is_heard)
		s3_reach_answered(call->s);
	else if (!call->failed && !http->status &&
		 (http->end == HTTP_TIMED_OUT || http->end == HTTP_BROKEN ||
		  http->end == HTTP_UNKNOWN))
		note_silence(call);
	s3_reach_leave(call);
}

void s3_reach_leave(struct s3_request *call)
{
	if (!call->is_probe)
		return;
	struct s3_reach *r = &call->s->reach;
	call->is_probe = false;
	pthread_mutex_lock(&r->lock);
	s3_outage_probed(&r->outage, now_ns(call->s));
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}
