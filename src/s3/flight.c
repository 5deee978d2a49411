/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a store request becomes a row of HTTP requests. Each is built and signed in the thread that
 * begins it, travels in the I/O thread, and is checked in a worker of the pool, so that neither a
 * checksum nor a callback keeps other transfers waiting. No thread waits for any of them.
 */
#include "internal.h"

#include <stddef.h>

static void go_on(void *arg)
{
	struct store_request *req = arg;
	struct s3_flight *f = store_slot(store_working(req), req);
	if (!f->digest.body || s3_digests_get(&f->s->digests, &f->digest))
		f->next(f);
}

/* Another worker has computed the MD5 for which this flight was waiting. */
static void resume(struct s3_digest *d)
{
	struct s3_flight *f = (struct s3_flight *)((char *)d - offsetof(struct s3_flight, digest));
	store_work(&f->s->base, f->req, go_on);
}

/* In the I/O thread. */
static void answered(struct http_call *http)
{
	struct s3_flight *f = http->arg;
	if (http->answer.len >= S3_TOGETHER_FROM && s3_request_has_md5(&f->call)) {
		f->digest = (struct s3_digest){.body = &http->answer, .resume = resume};
		s3_digests_add(&f->s->digests, &f->digest);
	}
	store_work(&f->s->base, f->req, go_on);
}

static void land(struct s3_flight *f)
{
	if (f->has_call)
		s3_request_release(&f->call);
	f->has_call = false;
	str_release(&f->token);
}

void s3_send(struct s3_flight *f, const struct s3_spec *spec, void (*next)(struct s3_flight *f))
{
	if (f->has_call)
		s3_request_release(&f->call);
	f->has_call = true;
	f->digest = (struct s3_digest){0};
	f->next = next;
	const int rc = s3_request_init(&f->call, f->s, spec, &f->req->answer.err);
	f->call.failed = rc;
	if (rc) {
		next(f);
		return;
	}
	f->call.http.cancelled = f->req->cancelled;
	f->call.http.priority = f->req->priority;
	f->call.http.done = answered;
	f->call.http.arg = f;
	http_submit(f->s->io, &f->call.http);
}

void s3_present(struct s3_flight *f)
{
	land(f);
	store_present(&f->s->base, f->req);
}

void s3_absent(struct s3_flight *f, enum store_evidence evidence)
{
	land(f);
	store_absent(&f->s->base, f->req, evidence);
}

void s3_fail(struct s3_flight *f, int code)
{
	land(f);
	store_fail(&f->s->base, f->req, code, NULL);
}
