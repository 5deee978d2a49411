/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See request.h. libfuse calls the function of an interrupt, once, under the request's own lock,
 * either in the thread that received the kernel's message, which holds a reference to the request,
 * or within fuse_req_interrupt_func(), which does not: a reply given there would free a lock that
 * is held. Hence `begun`.
 *
 * A thread that replies for the serving thread has left the request's storage before
 * request_claim() returns: it holds the request's lock when it touches the storage for the last
 * time, or the lock of the table of interrupted requests, which interrupted_remove() waits for.
 */
#include "request.h"

#include <errno.h>

#include "reopen.h"
#include "signals.h"
#include "watchdog.h"

static void end_early(void *arg)
{
	struct request *r = arg;
	const fuse_req_t req = r->req;
	const struct request_tables *tables = r->tables;
	pthread_mutex_lock(&r->lock);
	const bool ours = !r->given, begun = r->begun;
	r->given = true;
	pthread_mutex_unlock(&r->lock);
	/* From here on `r` may be gone. */
	if (ours)
		reopen_end(tables->reopen, fuse_req_ctx(req)->pid);
	if (ours && begun)
		fuse_reply_err(req, EINTR);
}

static void on_interrupt(fuse_req_t req, void *arg)
{
	struct request *r = arg;
	if (request_is_cancelled(req, r->tables, &r->interrupted))
		end_early(r);
}

bool request_begin(struct request *r, fuse_req_t req, const struct request_tables *tables)
{
	*r = (struct request){
		.tables = tables,
		.req = req,
		.interrupted = {.cancel = end_early, .arg = r},
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	fuse_req_interrupt_func(req, on_interrupt, r);
	pthread_mutex_lock(&r->lock);
	r->begun = true;
	const bool early = r->given;
	pthread_mutex_unlock(&r->lock);
	if (!early)
		return true;
	fuse_req_interrupt_func(req, NULL, NULL);
	interrupted_remove(r->tables->interrupted, &r->interrupted);
	pthread_mutex_destroy(&r->lock);
	fuse_reply_err(req, EINTR);
	return false;
}

bool request_claim(struct request *r)
{
	pthread_mutex_lock(&r->lock);
	const bool ours = !r->given;
	r->given = true;
	pthread_mutex_unlock(&r->lock);
	/* An interrupt that comes now finds the reply given; after this call none runs. */
	if (ours)
		fuse_req_interrupt_func(r->req, NULL, NULL);
	interrupted_remove(r->tables->interrupted, &r->interrupted);
	pthread_mutex_destroy(&r->lock);
	return ours;
}

bool request_is_cancelled(fuse_req_t req, const struct request_tables *tables,
			  struct interrupted_request *i)
{
	i->thread = fuse_req_ctx(req)->pid;
	if (signals_end(i->thread))
		return true;
	/* From here on i may be gone, once its request is replied to. */
	interrupted_add(tables->interrupted, i);
	watchdog_wake(tables->watchdog);
	return false;
}
