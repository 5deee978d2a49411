/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a PUT, and the threads in which a body is read from a source. A read may take long,
 * and it may wait for another request, whose answer needs a worker of the pool. So a worker does
 * not read: each PUT with a source has a thread of its own until it is completed or passed on to
 * another thread. No state, so no locks.
 */
#include <store/implement.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include <base/source.h>
#include <base/thread.h>

uint64_t store_body_size(const struct store_request *req)
{
	if (req->part)
		return req->part->n;
	return req->body ? req->body->size : pieces_size(req->pieces, req->n_pieces);
}

int store_body_read(struct store_request *req, uint64_t offset, void *buf, size_t n)
{
	struct err *err = &req->answer.err;
	err_clear(err);
	const struct source_part *part = req->part;
	const int rc = part ? source_read(part->source, part->offset + offset, buf, n, err)
			    : source_read(req->body, offset, buf, n, err);
	if (rc == 0)
		return 0;
	if (!err->code)
		err_errno(err, rc, "%zu bytes at offset %" PRIu64, n, offset);
	err->code = rc == -EAGAIN || rc == -ENOENT ? -EIO : rc;
	return err_wrap(err, rc, "object %s: cannot read the bytes to store", req->key);
}

/* ---- threads ---- */

static void *run(void *arg)
{
	struct store_request *req = arg;
	req->job.fn(req);
	return NULL;
}

void store_work_apart(struct store *s, struct store_request *req, pool_fn fn)
{
	pthread_t thread;
	req->at = s;
	req->job = (struct pool_job){.fn = fn, .arg = req};
	if (thread_start(&thread, run, req))
		pthread_detach(thread);
	else
		store_work(s, req, fn);
}
