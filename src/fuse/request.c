/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See request.h. libfuse calls the function of an interrupt, once, under the request's own lock,
 * either in the thread that received the kernel's word, which holds a reference to the request, or
 * within fuse_req_interrupt_func(), which does not: an answer given there would free the lock under
 * its holder's feet. Hence `begun`.
 *
 * Whoever gives the answer elsewhere than in the serving thread has not left the answer's storage
 * before its claim returns: it holds the answer's lock when it touches it for the last time, or
 * that of the table of doubts, which doubts_remove() waits for.
 */
#include "request.h"

#include <errno.h>

#include "signals.h"

static void end_early(void *arg)
{
	struct answer *a = arg;
	const fuse_req_t req = a->req;
	pthread_mutex_lock(&a->lock);
	const bool ours = !a->given, begun = a->begun;
	a->given = true;
	pthread_mutex_unlock(&a->lock);
	/* From here on `a` may be gone. */
	if (ours)
		parked_end(front_of(req)->parked, fuse_req_ctx(req)->pid);
	if (ours && begun)
		fuse_reply_err(req, EINTR);
}

static void interrupted(fuse_req_t req, void *arg)
{
	struct answer *a = arg;
	if (answer_is_unwanted(req, &a->doubt))
		end_early(a);
}

bool answer_begin(struct answer *a, fuse_req_t req)
{
	*a = (struct answer){
		.front = front_of(req),
		.req = req,
		.doubt = {.unwanted = end_early, .arg = a},
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	fuse_req_interrupt_func(req, interrupted, a);
	pthread_mutex_lock(&a->lock);
	a->begun = true;
	const bool early = a->given;
	pthread_mutex_unlock(&a->lock);
	if (!early)
		return true;
	fuse_req_interrupt_func(req, NULL, NULL);
	doubts_remove(a->front->doubts, &a->doubt);
	pthread_mutex_destroy(&a->lock);
	fuse_reply_err(req, EINTR);
	return false;
}

bool answer_claim(struct answer *a)
{
	pthread_mutex_lock(&a->lock);
	const bool ours = !a->given;
	a->given = true;
	pthread_mutex_unlock(&a->lock);
	/* An interrupt that comes now finds the answer given; behind this call none runs. */
	if (ours)
		fuse_req_interrupt_func(a->req, NULL, NULL);
	doubts_remove(a->front->doubts, &a->doubt);
	pthread_mutex_destroy(&a->lock);
	return ours;
}

bool answer_is_unwanted(fuse_req_t req, struct doubt *d)
{
	struct front *f = front_of(req);
	d->thread = fuse_req_ctx(req)->pid;
	if (signals_end(d->thread))
		return true;
	/* From here on d may be gone, once its request is answered. */
	doubts_add(f->doubts, d);
	watch_look(f->watch);
	return false;
}
