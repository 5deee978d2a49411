/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The S3 store: construction, and how a store request becomes a row of HTTP requests. Each is built
 * and signed in the thread that begins it, travels in the I/O thread, and is checked in a worker of
 * the pool, so that neither a checksum nor a callback keeps other transfers waiting. No thread
 * waits for any of them.
 */
#include "internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- flights ---- */

static void go_on(void *arg)
{
	struct store_request *req = arg;
	struct s3_flight *f = store_slot(store_working(req), req);
	f->next(f);
}

/* In the I/O thread. */
static void answered(struct http_call *http)
{
	struct s3_flight *f = http->arg;
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

static void submit(struct store *store, struct store_request *req)
{
	static void (*const starts[STORE_OPS])(struct s3_flight * f) = {
		[STORE_GET] = s3_get, [STORE_HEAD] = s3_get,	  [STORE_LIST] = s3_list,
		[STORE_PUT] = s3_put, [STORE_DELETE] = s3_delete,
	};
	struct s3_flight *f = store_slot(store, req);
	*f = (struct s3_flight){.s = s3_store_of(store), .req = req};
	starts[req->op](f);
}

/* ---- life ---- */

static void free_store(struct store *store)
{
	struct s3_store *s = s3_store_of(store);
	if (s->io)
		http_io_free(s->io);
	s3_doubts_free(s->doubts);
	credentials_free(s->creds);
	s3_endpoint_release(&s->endpoint);
	free(s->owner);
	free(s);
}

static const struct store_ops s3_ops = {
	.name = "s3",
	.submit = submit,
	.free = free_store,
};

static unsigned int or_default(unsigned int value, unsigned int otherwise)
{
	return value ? value : otherwise;
}

static int set_up(struct s3_store *s, const struct store_s3_options *opt, struct err *err)
{
	struct aws_environment world = aws_environment_real(s->base.env);
	world.profile = opt->profile;
	world.region = opt->region;
	int rc = s3_endpoint_init(&s->endpoint, &world, opt, err);
	if (rc)
		return rc;
	const struct http_options http = {
		.connections = or_default(opt->connections, STORE_S3_CONNECTIONS),
		.connect_ms = or_default(opt->connect_ms, 5000),
		.limits = {.first_byte_ms = or_default(opt->first_byte_ms, 20000),
			   .low_speed_s = or_default(opt->low_speed_s, 10),
			   .low_speed_bytes = or_default(opt->low_speed_bytes, 1024)},
		.ca_bundle = s->endpoint.ca_bundle.b.len ? str_text(&s->endpoint.ca_bundle) : NULL,
		.meter = opt->meter,
	};
	if (opt->expected_bucket_owner) {
		s->owner = strdup(opt->expected_bucket_owner);
		if (!s->owner)
			return err_set(err, -ENOMEM, "out of memory");
	}
	s->requester_pays = opt->requester_pays;
	s->unchecked = opt->no_etag_check;
	s->io = http_io_new(s->base.env, &http, err);
	if (!s->io)
		return -EINVAL;
	if (opt->no_sign_request)
		return 0;
	auto_free char *here = getcwd(NULL, 0);
	world.ca_bundle = http.ca_bundle;
	world.directory = here;
	s->creds = credentials_new(&world, err);
	return s->creds ? 0 : -EACCES;
}

void store_s3_rest(struct store *s)
{
	assert(s->ops == &s3_ops);
	http_io_rest(s3_store_of(s)->io);
}

struct store *store_s3_new(const struct env *env, const struct store_s3_options *opt,
			   struct err *err)
{
	struct err why = ERR_INIT;
	struct s3_store *s = calloc(1, sizeof(*s));
	if (!s) {
		err_set(err, -ENOMEM, "S3: out of memory");
		return NULL;
	}
	store_init(&s->base, &s3_ops, env, sizeof(struct s3_flight));
	s->doubts = s3_doubts_new(env);
	int rc = s->doubts ? set_up(s, opt, &why) : err_set(&why, -ENOMEM, "out of memory");
	if (rc == 0) {
		rc = s3_discover(s, opt->prefix ? opt->prefix : "", &why);
		http_io_rest(s->io);
	}
	if (rc == 0)
		return &s->base;
	/* "No credentials" is not "no bucket". */
	if (why.code == -ENOENT && rc == -EACCES)
		why.code = -EACCES;
	err_copy(err, &why);
	err_wrap(err, rc, "s3://%s", opt->bucket ? opt->bucket : "");
	free_store(&s->base);
	return NULL;
}
