/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The S3 store: its construction, and which file answers which operation.
 */
#include "s3_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static void submit(struct store *store, struct store_request *req)
{
	static void (*const starts[STORE_OPS])(struct s3_operation * op) = {
		[STORE_GET] = s3_get, [STORE_HEAD] = s3_get,	  [STORE_LIST] = s3_list,
		[STORE_PUT] = s3_put, [STORE_DELETE] = s3_delete,
	};
	struct s3_operation *op = store_private(store, req);
	s3_connect_few(s3_store_of(store));
	*op = (struct s3_operation){.s = s3_store_of(store), .req = req};
	starts[req->op](op);
}

/* ---- construction ---- */

static void free_store(struct store *store)
{
	struct s3_store *s = s3_store_of(store);
	atomic_store(&s->closing, true);
	s3_reach_stop_thread(&s->own_reach);
	if (s->io)
		http_io_free(s->io);
	credentials_free(s->creds);
	sigv4_signer_free(s->signer);
	s3_endpoint_release(&s->endpoint);
	free(s->owner);
	s3_bodies_release(&s->bodies);
	s3_conditions_release(&s->conditions);
	s3_reach_release(&s->own_reach);
	free(s->prefix);
	free(s);
}

static enum store_marks keeps_marks(struct store *store)
{
	switch (s3_support(s3_store_of(store), S3_MARKS)) {
	case S3_WORKS:
		return STORE_MARKS_KEPT;
	case S3_IGNORED:
		return STORE_MARKS_DROPPED;
	default:
		return STORE_MARKS_UNKNOWN;
	}
}

static enum store_absence_check checks_absence(struct store *store)
{
	switch (s3_support(s3_store_of(store), S3_PUT_ABSENT)) {
	case S3_WORKS:
		return STORE_ABSENCE_CHECKED;
	case S3_UNKNOWN:
		return STORE_ABSENCE_UNKNOWN;
	default:
		return STORE_ABSENCE_IGNORED;
	}
}

static uint64_t part_min(struct store *store)
{
	return s3_part_min(s3_store_of(store));
}

static int check(struct store *store, struct err *err)
{
	return s3_reach_check(s3_store_of(store), err);
}

static const struct store_ops s3_ops = {
	.name = "s3",
	.submit = submit,
	.keeps_marks = keeps_marks,
	.checks_absence = checks_absence,
	.part_min = part_min,
	.list_uploads = s3_list_uploads,
	.abort_upload = s3_abort_upload,
	.check = check,
	.free = free_store,
};

static unsigned int or_default(unsigned int value, unsigned int otherwise)
{
	return value ? value : otherwise;
}

/* See s3_own_probe_fn. */
static enum s3_hearing send_own(struct s3_store *s, uint64_t *sent_ns, char *why)
{
	const struct s3_spec spec = {.method = "HEAD", .is_own_probe = true};
	auto_s3_request struct s3_request call = {0};
	if (s3_request_init(&call, s, &spec, NULL))
		return S3_SHOWS_NOTHING;
	call.cancelled = cancelled_by(&s->own_reach.stopping);
	http_run(s->io, &call.http);
	*sent_ns = call.http.timeouts.since_ns;
	strcpy(why, call.http.reason);
	return s3_reach_hearing(&call);
}

static unsigned int at_most(unsigned int value, unsigned int most)
{
	return value < most ? value : most;
}

static unsigned int retry_ms_of(const struct store_s3_options *opt)
{
	return or_default(opt->retry_ms, 60000);
}

static unsigned int first_byte_ms_of(const struct store_s3_options *opt)
{
	return at_most(or_default(opt->first_byte_ms, 20000), retry_ms_of(opt));
}

static int set_up(struct s3_store *s, const struct store_s3_options *opt, struct err *err)
{
	struct aws_environment environment = aws_environment_real(s->base.env);
	environment.profile = opt->profile;
	environment.region = opt->region;
	int rc = s3_endpoint_init(&s->endpoint, &environment, opt, err);
	if (rc)
		return rc;
	const unsigned int retry_ms = retry_ms_of(opt);
	const struct http_options http = {
		.connections = or_default(opt->connections, STORE_S3_CONNECTIONS),
		.connect_ms = at_most(or_default(opt->connect_ms, 5000), retry_ms),
		.limits = {.first_byte_ms = s->own_reach.first_byte_ms,
			   .low_speed_s =
				   at_most(or_default(opt->low_speed_s, 10), retry_ms / 1000 + 1),
			   .low_speed_bytes = or_default(opt->low_speed_bytes, 1024)},
		.ca_bundle = s->endpoint.ca_bundle.b.len ? str_text(&s->endpoint.ca_bundle) : NULL,
		.meter = opt->meter,
	};
	s->prefix = strdup(opt->prefix ? opt->prefix : "");
	if (!s->prefix)
		return err_no_memory(err);
	if (opt->expected_bucket_owner) {
		s->owner = strdup(opt->expected_bucket_owner);
		if (!s->owner)
			return err_no_memory(err);
	}
	s->requester_pays = opt->requester_pays;
	s->verify = opt->verify;
	s->io = http_io_new(s->base.env, &http, err);
	if (!s->io)
		return -EINVAL;
	if (opt->no_sign_request)
		return 0;
	auto_free char *directory = getcwd(NULL, 0);
	environment.ca_bundle = http.ca_bundle;
	environment.directory = directory;
	s->signer = sigv4_signer_new();
	if (!s->signer)
		return err_set(err, -ENOMEM,
			       "signatures: out of memory, or OpenSSL has no SHA-256");
	s->creds = credentials_new(&environment, err);
	return s->creds ? 0 : -EACCES;
}

void store_s3_stop_thread(struct store *s)
{
	assert(s->ops == &s3_ops);
	s3_reach_stop_thread(&s3_store_of(s)->own_reach);
	http_io_stop_thread(s3_store_of(s)->io);
}

/* Uses the state of the service that another store has, if it is the same service. */
static void share_reach(struct s3_store *s, struct store *beside)
{
	const struct s3_endpoint *a = &s->endpoint, *b;
	while (beside && beside->inner)
		beside = beside->inner;
	if (!beside || beside->ops != &s3_ops)
		return;
	b = &s3_store_of(beside)->endpoint;
	if (a->tls == b->tls && strcmp(s3_endpoint_service(a), s3_endpoint_service(b)) == 0)
		s->reach = s3_store_of(beside)->reach;
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
	store_init(&s->base, &s3_ops, env, sizeof(struct s3_operation));
	s3_crc_tables_init(&s->crc_tables);
	s3_bodies_init(&s->bodies);
	s3_conditions_init(&s->conditions);
	s3_reach_init(&s->own_reach, s, send_own, retry_ms_of(opt), first_byte_ms_of(opt));
	s->reach = &s->own_reach;
	int rc = set_up(s, opt, &why);
	if (rc == 0) {
		rc = s3_discover(s, opt->prefix ? opt->prefix : "", opt->evidence, &why);
		store_s3_stop_thread(&s->base);
	}
	if (rc == 0) {
		share_reach(s, opt->beside);
		return &s->base;
	}
	/* Missing credentials do not mean that the bucket does not exist. */
	if (why.code == -ENOENT && rc == -EACCES)
		why.code = -EACCES;
	err_copy(err, &why);
	err_wrap(err, rc, "s3://%s", opt->bucket ? opt->bucket : "");
	free_store(&s->base);
	return NULL;
}
