/* SPDX-License-Identifier: Apache-2.0 */
/* See reach.h. */
#include "s3_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <base/thread.h>

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000, SINCE_SIZE = 32 };

void s3_reach_init(struct s3_reach *r, struct s3_store *prober, s3_own_probe_fn *send_own,
		   unsigned int retry_ms, unsigned int first_byte_ms)
{
	pthread_condattr_t clock;
	r->prober = prober;
	r->send_own = send_own;
	r->first_byte_ms = first_byte_ms;
	r->outage = (struct s3_outage){.limit_ns = (uint64_t)retry_ms * NS_PER_MS,
				       .timeout_ns = (uint64_t)first_byte_ms * NS_PER_MS};
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

static const struct env *env_of(const struct s3_reach *r)
{
	return r->prober->base.env;
}

static uint64_t now_ns(const struct s3_reach *r)
{
	return env_now(env_of(r));
}

static const char *host_of(const struct s3_reach *r)
{
	return s3_endpoint_service(&r->prober->endpoint);
}

/* Writes the time of the first request without an answer. */
static const char *since_text(int64_t since, char text[SINCE_SIZE])
{
	const time_t at = (time_t)(since / NS_PER_S);
	struct tm tm;
	if (!gmtime_r(&at, &tm) || !strftime(text, SINCE_SIZE, "%Y-%m-%d %H:%M:%S UTC", &tm))
		text[0] = '\0';
	return text;
}

/* ---- what requests show ---- */

enum s3_hearing s3_reach_hearing(const struct s3_request *call)
{
	const struct http_call *http = &call->http;
	if (call->failed)
		return S3_SHOWS_NOTHING;
	if (http->status)
		return S3_ANSWERED;
	switch (http->end) {
	case HTTP_TIMED_OUT:
	case HTTP_REFUSED:
	case HTTP_BROKEN:
	case HTTP_UNKNOWN:
		return S3_NO_ANSWER;
	case HTTP_ANSWERED:
	case HTTP_TRUNCATED:
	case HTTP_TOO_LONG:
	case HTTP_CANCELLED:
	case HTTP_NO_MEMORY:
	case HTTP_UNREAD:
		break;
	}
	return S3_SHOWS_NOTHING;
}

/* Before this time, the service has received a part of the body. */
static uint64_t sent_ns(const struct s3_request *call)
{
	return call->http.timeouts.since_ns;
}

static void publish_locked(struct s3_reach *r)
{
	atomic_store(&r->is_silent, r->outage.state != S3_ANSWERS);
	atomic_store(&r->is_unreachable, r->outage.state == S3_UNREACHABLE);
}

void s3_reach_answered(struct s3_store *s)
{
	struct s3_reach *r = s->reach;
	atomic_store(&r->heard_ns, now_ns(r));
	if (!atomic_load(&r->is_silent))
		return;
	pthread_mutex_lock(&r->lock);
	const int64_t since = r->since;
	const bool was_unreachable = s3_outage_answered(&r->outage);
	publish_locked(r);
	pthread_mutex_unlock(&r->lock);
	/* The clock of the epoch goes on while the machine sleeps, but may be set. */
	const int64_t span = env_wall(env_of(r)) - since;
	if (was_unreachable)
		log_warning(env_of(r)->log, "%s answers again after %" PRId64 " s", host_of(r),
			    span > 0 ? span / NS_PER_S : 0);
}

/* ---- the thread, and its probe ---- */

static void sleep_until_locked(struct s3_reach *r, uint64_t ns)
{
	const struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S),
				       .tv_nsec = (long)(ns % NS_PER_S)};
	pthread_cond_timedwait(&r->changed, &r->lock, &until);
}

static void probe_locked(struct s3_reach *r)
{
	char since[SINCE_SIZE], why[HTTP_REASON_MAX] = "";
	uint64_t sent = 0;
	s3_outage_own_sent(&r->outage);
	pthread_mutex_unlock(&r->lock);
	const enum s3_hearing hearing = r->send_own(r->prober, &sent, why);
	pthread_mutex_lock(&r->lock);
	const bool is_news = s3_outage_own_ended(&r->outage, hearing, sent,
						 atomic_load(&r->heard_ns), now_ns(r));
	publish_locked(r);
	since_text(r->since, since);
	pthread_mutex_unlock(&r->lock);
	if (is_news)
		log_warning(env_of(r)->log,
			    "%s has been unreachable since %s (%s). Requests fail at once until it "
			    "answers",
			    host_of(r), since, why);
	pthread_mutex_lock(&r->lock);
}

static void *run(void *arg)
{
	struct s3_reach *r = arg;
	pthread_mutex_lock(&r->lock);
	while (!atomic_load(&r->stopping)) {
		const uint64_t due = s3_outage_due(&r->outage);
		if (due == UINT64_MAX)
			pthread_cond_wait(&r->changed, &r->lock);
		else if (now_ns(r) < due)
			sleep_until_locked(r, due);
		else
			probe_locked(r);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

void s3_reach_stop_thread(struct s3_reach *r)
{
	pthread_mutex_lock(&r->lock);
	const bool running = r->running;
	atomic_store(&r->stopping, true);
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (running)
		pthread_join(r->thread, NULL);
	r->running = false;
	atomic_store(&r->stopping, false);
}

/* ---- requests ---- */

static int explain(struct s3_store *s, const char *method, const char *what, int code,
		   struct err *err)
{
	struct s3_reach *r = s->reach;
	char since[SINCE_SIZE];
	pthread_mutex_lock(&r->lock);
	since_text(r->since, since);
	pthread_mutex_unlock(&r->lock);
	err_set(err, code, "%s%s%s%s%s has been unreachable since %s", method, method[0] ? " " : "",
		what, what[0] ? ": " : "", host_of(r), since);
	return code;
}

int s3_reach_check(struct s3_store *s, struct err *err)
{
	return atomic_load(&s->reach->is_unreachable) ? explain(s, "", "", -EIO, err) : 0;
}

int s3_reach_admit(struct s3_request *call, bool may_probe, struct err *err)
{
	struct s3_reach *r = call->s->reach;
	if (call->is_own_probe || !atomic_load(&r->is_unreachable))
		return 0;
	pthread_mutex_lock(&r->lock);
	const enum s3_admission admission = s3_outage_admit(&r->outage, may_probe, now_ns(r));
	pthread_mutex_unlock(&r->lock);
	if (admission == S3_ADMIT_NOT)
		return explain(call->s, call->method, call->what, -EIO, err);
	call->is_guest = admission == S3_ADMIT_AS_GUEST;
	if (call->is_guest) {
		const unsigned int ms =
			call->http.first_byte_ms ? call->http.first_byte_ms : r->first_byte_ms;
		call->http.is_urgent = true;
		call->http.first_byte_ms = ms < S3_GUEST_MS ? ms : S3_GUEST_MS;
	}
	return 0;
}

bool s3_reach_ends(const void *arg)
{
	const struct s3_request *call = arg;
	const bool is_sent = call->http.started_ns != 0;
	if (is_cancelled(&call->cancelled))
		return true;
	return atomic_load(&call->s->reach->is_unreachable) && !call->is_guest &&
	       !call->is_own_probe && !call->answer.is_heard && !(is_sent && call->http.body_len);
}

bool s3_reach_explains(const struct s3_request *call, struct err *err)
{
	const bool is_ended = call->http.end == HTTP_CANCELLED && !is_cancelled(&call->cancelled);
	if (!is_ended && s3_reach_hearing(call) != S3_NO_ANSWER)
		return false;
	if (atomic_load(&call->s->reach->is_unreachable))
		explain(call->s, call->method, call->what, -EAGAIN, err);
	else if (is_ended) /* it answers again */
		err_set(err, -EAGAIN, "%s %s: the service was unreachable", call->method,
			call->what);
	else
		return false;
	return true;
}

static void note_silence(struct s3_request *call)
{
	struct s3_reach *r = call->s->reach;
	const uint64_t sent = sent_ns(call), now = now_ns(r);
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->is_silent, true);
	if (s3_outage_silent(&r->outage, sent, atomic_load(&r->heard_ns), now)) {
		r->since = env_wall(env_of(r)) - (int64_t)(now - sent);
		if (!r->running && !atomic_load(&r->prober->closing))
			r->running = thread_start(&r->thread, run, r);
	}
	pthread_cond_signal(&r->changed);
	publish_locked(r);
	pthread_mutex_unlock(&r->lock);
}

void s3_reach_ended(struct s3_request *call)
{
	const enum s3_hearing hearing = s3_reach_hearing(call);
	if (hearing == S3_ANSWERED && !call->answer.is_heard)
		s3_reach_answered(call->s);
	else if (hearing == S3_NO_ANSWER)
		note_silence(call);
	s3_reach_leave(call);
}

void s3_reach_leave(struct s3_request *call)
{
	if (!call->is_guest)
		return;
	struct s3_reach *r = call->s->reach;
	call->is_guest = false;
	pthread_mutex_lock(&r->lock);
	s3_outage_guest_ended(&r->outage, now_ns(r));
	pthread_mutex_unlock(&r->lock);
}
