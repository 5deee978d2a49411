/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a store request becomes a series of HTTP requests. The thread that starts a request builds
 * and signs it, the I/O thread transfers it, and a worker of the pool checks the answer, so that
 * neither a checksum nor a callback delays other transfers. Only the small answer of a request
 * whose callback is brief (store_request.is_brief) is checked by the I/O thread itself. An
 * operation that runs in a thread of its own waits for its answers instead.
 */
#include "s3_internal.h"

enum { BRIEF_MAX = 16 << 10 /* bytes; an MD5 of as many takes 25 us */ };

static void run_next(void *arg)
{
	struct store_request *req = arg;
	struct s3_operation *op = store_private(store_working(req), req);
	op->next(op);
}

/* Returns true if the answer is that of a get, small, and needs no further request. To check it
 * costs less than to wake a worker. */
static bool is_brief(const struct s3_operation *op)
{
	const struct http_call *http = &op->call.http;
	return op->req->is_brief && op->gets_object && http->end == HTTP_ANSWERED &&
	       (http->status == 200 || http->status == 304) && !op->call.answer.is_xml &&
	       http->answer.len <= BRIEF_MAX;
}

/* Runs in the I/O thread. */
static void after_answer(struct http_call *http)
{
	struct s3_operation *op = http->arg;
	if (is_brief(op)) {
		op->next(op);
		return;
	}
	store_work(&op->s->base, op->req, run_next);
}

static void end_call(struct s3_operation *op)
{
	if (!op->has_call)
		return;
	const bool changes = op->req->op == STORE_PUT || op->req->op == STORE_DELETE;
	op->req->answer.repeated |= changes && op->call.http.resent;
	s3_request_release(&op->call);
	op->has_call = false;
}

static void release(struct s3_operation *op)
{
	end_call(op);
	str_release(&op->token);
	str_release(&op->left_out);
	if (op->upload)
		op->free_upload(op->upload);
	s3_body_free(op->loaded);
	op->upload = NULL;
	op->loaded = NULL;
}

void s3_send(struct s3_operation *op, const struct s3_spec *spec,
	     void (*next)(struct s3_operation *op))
{
	end_call(op);
	op->has_call = true;
	op->gets_object = op->req->op == STORE_GET && spec->key;
	op->next = next;
	const int rc = s3_request_init(&op->call, op->s, spec, &op->req->answer.err);
	op->call.failed = rc;
	if (rc) {
		next(op);
		return;
	}
	op->call.cancelled = op->req->cancelled;
	op->call.http.priority = op->req->priority;
	op->call.http.paced = op->req->priority == STORE_PREFETCH ? op->req->expected : 0;
	if (op->apart) {
		http_run(op->s->io, &op->call.http);
		next(op);
		return;
	}
	op->call.http.done = after_answer;
	op->call.http.arg = op;
	http_submit(op->s->io, &op->call.http);
}

void s3_present(struct s3_operation *op)
{
	release(op);
	store_present(&op->s->base, op->req);
}

void s3_absent(struct s3_operation *op, enum store_evidence evidence)
{
	release(op);
	store_absent(&op->s->base, op->req, evidence);
}

void s3_fail(struct s3_operation *op, int code)
{
	release(op);
	store_fail(&op->s->base, op->req, code, NULL);
}
