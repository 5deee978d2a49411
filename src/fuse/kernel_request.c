/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list under one lock. Reads are cancelled under that lock, because a read may end as soon as the
 * lock is free. Replies are sent without holding it.
 *
 * Lock order: libfuse's lock of a request (libfuse holds it while it calls on_interrupt()), the
 * table's, a cancel's, a cache's.
 */
#include "kernel_request.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utlist.h>

#include <base/cancel.h>
#include <base/mem.h>

#include "fuse_api.h"
#include "reopen.h"

struct requests {
	uint64_t (*clock)(void);
	struct reopen *reopen;
	int fd; /* eventfd */
	pthread_mutex_t lock;
	struct request *list;
	/* The subject of the last request that was cancelled or answered early, or 0 if there is
	 * none, or the kernel has repeated it. */
	uint64_t ended_early;
	/* When the watchdog looks at the connection, or UINT64_MAX if nothing has been served for
	 * some time. */
	uint64_t look;
	uint64_t wakes; /* when the watchdog wakes up: at a deadline, or at `look` */
	bool stopped;
};

struct requests *requests_new(uint64_t (*clock)(void), struct reopen *reopen)
{
	struct requests *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->clock = clock;
	t->reopen = reopen;
	t->look = t->wakes = UINT64_MAX;
	t->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (t->fd < 0) {
		free(t);
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void requests_free(struct requests *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	close(t->fd);
	free(t);
}

int requests_fd(const struct requests *t)
{
	return t->fd;
}

void requests_wake(struct requests *t)
{
	const uint64_t one = 1;
	/* This fails only if the counter is at its maximum. Then the file is readable anyway. */
	ssize_t n = write(t->fd, &one, sizeof(one));
	(void)n;
}

/* Returns true if the caller must wake the watchdog, because it would wake up too late. */
static bool schedule_locked(struct requests *t, uint64_t time)
{
	if (time >= t->wakes)
		return false;
	t->wakes = time;
	return true;
}

static uint64_t patience_of(const struct request *r)
{
	if (r->repeated)
		return 0;
	return r->cancel ? REQUEST_READ_PATIENCE_NS : REQUEST_PATIENCE_NS;
}

/* libfuse calls this once: in the thread that receives the interrupt, or within
 * fuse_req_interrupt_func() if the interrupt arrived earlier. */
static void on_interrupt(fuse_req_t req, void *arg)
{
	struct request *r = arg;
	struct requests *t = r->table;
	const uint64_t deadline = t->clock() + patience_of(r);
	pthread_mutex_lock(&t->lock);
	r->deadline = min_u64(r->deadline, deadline);
	const bool wake = schedule_locked(t, r->deadline);
	pthread_mutex_unlock(&t->lock);
	/* From here on r may be invalid, because its request may have ended. */
	if (wake)
		requests_wake(t);
}

void request_begin_read(struct requests *t, struct request *r, fuse_req_t req, uint64_t subject,
			struct cancel *cancel, bool read_ahead)
{
	*r = (struct request){
		.table = t,
		.req = req,
		.cancel = cancel,
		.subject = subject,
		.deadline = UINT64_MAX,
	};
	repeat_begin(&r->call);
	pthread_mutex_lock(&t->lock);
	r->repeated = subject && t->ended_early == subject;
	if (r->repeated)
		t->ended_early = 0;
	pthread_mutex_unlock(&t->lock);
	if (read_ahead)
		r->deadline = t->clock() + patience_of(r);
	/* libfuse locks the request during this call. As soon as the request is listed, the
	 * watchdog can reply, which frees the request. So this call comes first. */
	fuse_req_interrupt_func(req, on_interrupt, r);
	pthread_mutex_lock(&t->lock);
	DL_APPEND(t->list, r);
	r->listed = true;
	if (t->look == UINT64_MAX)
		t->look = t->clock() + REQUEST_LOOK_NS;
	const bool wake = schedule_locked(t, min_u64(r->deadline, t->look));
	pthread_mutex_unlock(&t->lock);
	if (wake)
		requests_wake(t);
}

void request_begin(struct requests *t, struct request *r, fuse_req_t req, uint64_t subject)
{
	request_begin_read(t, r, req, subject, NULL, false);
}

static void remove_locked(struct request *r)
{
	if (r->listed)
		DL_DELETE(r->table->list, r);
	r->listed = false;
}

bool request_end(struct request *r)
{
	struct requests *t = r->table;
	repeat_end(&r->call);
	pthread_mutex_lock(&t->lock);
	const bool replies = r->listed || r->cancel;
	remove_locked(r);
	pthread_mutex_unlock(&t->lock);
	/* After this call on_interrupt() does not run. If the watchdog has replied, on_interrupt()
	 * has run already, and libfuse does not call it again. */
	if (replies)
		fuse_req_interrupt_func(r->req, NULL, NULL);
	return replies;
}

/* Cancels the reads that are due until it finds another request that is due. The caller replies to
 * that request. If there is none, returns NULL, and t->wakes is the next time to wake up. */
static fuse_req_t expire_locked(struct requests *t, uint64_t now)
{
	struct request *r, *next;
	if (now >= t->look)
		t->look = t->list ? now + REQUEST_LOOK_NS : UINT64_MAX;
	t->wakes = t->look;
	DL_FOREACH_SAFE(t->list, r, next)
	{
		if (now < r->deadline && !(t->stopped && r->cancel)) {
			t->wakes = min_u64(t->wakes, r->deadline);
			continue;
		}
		remove_locked(r);
		t->ended_early = r->subject;
		if (!r->cancel)
			return r->req;
		cancel_fire(r->cancel);
	}
	return NULL;
}

int requests_expire(struct requests *t)
{
	enum { NS_PER_MS = 1000000 };
	uint64_t now, wakes;
	fuse_req_t due;
	do {
		now = t->clock();
		pthread_mutex_lock(&t->lock);
		due = expire_locked(t, now);
		wakes = t->wakes;
		pthread_mutex_unlock(&t->lock);
		if (due) {
			reopen_expire(t->reopen, fuse_req_ctx(due)->pid);
			fuse_reply_err(due, EINTR);
		}
	} while (due);
	return wakes == UINT64_MAX ? -1 : (int)((wakes - now) / NS_PER_MS + 1);
}

void requests_stop(struct requests *t)
{
	pthread_mutex_lock(&t->lock);
	t->stopped = true;
	pthread_mutex_unlock(&t->lock);
}
