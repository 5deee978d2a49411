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
	if (s->io)
		http_io_free(s->io);
	credentials_free(s->creds);
	sigv4_signer_free(s->signer);
	s3_endpoint_release(&s->endpoint);
	free(s->owner);
	s3_bodies_release(&s->bodies);
	s3_conditions_release(&s->conditions);
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

static const struct store_ops s3_ops = {
	.name = "s3",
	.submit = submit,
	.keeps_marks = keeps_marks,
	.checks_absence = checks_absence,
	.part_min = part_min,
	.list_uploads = s3_list_uploads,
	.abort_upload = s3_abort_upload,
	.free = free_store,
};

static unsigned int or_default(unsigned int value, unsigned int otherwise)
{
	return value ? value : otherwise;
}

static int set_up(struct s3_store *s, const struct store_s3_options *opt, struct err *err)
{
	struct aws_environment environment = aws_environment_real(s->base.env);
	environment.profile = opt->profile;
	environment.region = opt->region;
	int rc = s3_endpoint_init(&s->endpoint, &environment, opt, err);
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
	http_io_stop_thread(s3_store_of(s)->io);
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
	int rc = set_up(s, opt, &why);
	if (rc == 0) {
		rc = s3_discover(s, opt->prefix ? opt->prefix : "", opt->evidence, &why);
		http_io_stop_thread(s->io);
	}
	if (rc == 0)
		return &s->base;
	/* Missing credentials do not mean that the bucket does not exist. */
	if (why.code == -ENOENT && rc == -EACCES)
		why.code = -EACCES;
	err_copy(err, &why);
	err_wrap(err, rc, "s3://%s", opt->bucket ? opt->bucket : "");
	free_store(&s->base);
	return NULL;
}
