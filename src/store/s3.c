/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The S3 store: construction, gets and heads. A get is built and signed in the caller's thread,
 * travels in the I/O thread, and is checked and completed in a worker of the pool, so that neither
 * a checksum nor a callback keeps other transfers waiting.
 */
#include "s3.h"

#include "job.h"
#include "s3_etag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One get between its submission and its completion. It owns its copy of the key. */
struct s3_get {
	struct s3_call call;
	struct store_get req; /* but for its strings, of which the copies follow; ETags in quotes */
	struct str key, if_match, if_none_match;
	bool head;		 /* as it is asked now: also a get of nothing */
	struct s3_digest digest; /* of the body, where wants_digest() */
};

static void finish_get(void *arg);

static void free_get(struct s3_get *g)
{
	s3_call_release(&g->call);
	str_release(&g->key);
	str_release(&g->if_match);
	str_release(&g->if_none_match);
	free(g);
}

/* The get is gone when this returns. */
static void complete(struct s3_get *g, int code, const struct err *err)
{
	const struct store_get req = g->req;
	struct store_get_result res = {.code = code, .meta = g->call.answer.meta};
	if (code) {
		res.meta = (struct store_meta){0};
		err_copy(&res.err, err);
	} else {
		res.body = g->call.http.answer;
		g->call.http.answer = (struct bytes){0};
	}
	free_get(g);
	req.done(req.arg, &res);
}

/* Whether the ETag is the body's MD5. */
static bool wants_digest(const struct s3_get *g)
{
	const struct s3_answer *a = &g->call.answer;
	return !g->head && !g->call.http.ranged && !g->call.s->unchecked && !a->etag_is_opaque &&
	       g->call.http.status == 200 && s3_etag_is_md5(a->meta.etag);
}

/* In the I/O thread. */
static void answered(struct http_call *http)
{
	struct s3_get *g = http->arg;
	if (wants_digest(g)) {
		g->digest = (struct s3_digest){
			.body = &g->call.http.answer, .done = finish_get, .arg = g};
		s3_digests_add(&g->call.s->digests, &g->digest);
		return;
	}
	if (pool_submit(g->call.s->base.env->pool, finish_get, g))
		finish_get(g);
}

/* ---- submission ---- */

static bool is_ranged(const struct store_get *req)
{
	return req->offset != 0 || req->length != UINT64_MAX;
}

static void quote(struct str *out, const char *etag)
{
	if (etag)
		str_addf(out, "\"%s\"", etag);
}

static int submit(struct s3_store *s, struct s3_get *g, struct err *err)
{
	struct sigv4_pair header[3];
	char range[64];
	size_t n = 0;
	const uint64_t first = g->req.offset, length = g->req.length;
	/* Servers keep positions in 63 bits. */
	const bool open_end = length > (uint64_t)INT64_MAX - first;
	if (!g->head && is_ranged(&g->req)) {
		if (open_end)
			snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", first);
		else
			snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, first,
				 first + length - 1);
		header[n++] = (struct sigv4_pair){"range", range};
	}
	if (g->if_match.b.len)
		header[n++] = (struct sigv4_pair){"if-match", str_text(&g->if_match)};
	if (g->if_none_match.b.len)
		header[n++] = (struct sigv4_pair){"if-none-match", str_text(&g->if_none_match)};
	const struct s3_request req = {
		.method = g->head ? "HEAD" : "GET",
		.key = str_text(&g->key),
		.header = header,
		.n_header = n,
		.body_max = min_u64(length, g->req.max ? g->req.max : UINT64_MAX),
	};
	int rc = s3_call_init(&g->call, s, &req, err);
	if (rc)
		return rc;
	if (!g->head && is_ranged(&g->req)) {
		g->call.http.ranged = true;
		g->call.http.skip = first;
		g->call.http.keep = length;
	}
	g->call.http.unwanted = g->req.unwanted;
	g->call.http.done = answered;
	g->call.http.arg = g;
	http_submit(s->io, &g->call.http);
	return 0;
}

static void get(struct store *store, const struct store_get *req)
{
	struct err err = ERR_INIT;
	struct s3_get *g = calloc(1, sizeof(*g));
	if (!g) {
		job_fail(req, -ENOMEM, "object %s: no memory", req->key);
		return;
	}
	g->req = *req;
	g->head = req->op == STORE_HEAD || req->length == 0 || req->offset > INT64_MAX;
	str_add(&g->key, req->key);
	quote(&g->if_match, req->cond.if_match);
	quote(&g->if_none_match, req->cond.if_none_match);
	if (!str_ok(&g->key) || !str_ok(&g->if_match) || !str_ok(&g->if_none_match)) {
		complete(g, -ENOMEM, &err);
		return;
	}
	int rc = submit(s3_store_of(store), g, &err);
	if (rc)
		complete(g, rc, &err);
}

/* ---- completion ---- */

/* The size of the whole object, and how long the body has to be. */
static int expect(const struct s3_get *g, uint64_t *size, uint64_t *body, struct err *err)
{
	const struct s3_answer *a = &g->call.answer;
	const struct http_call *http = &g->call.http;
	const char *key = str_text(&g->key);
	if (http->status != 200 && (http->status != 206 || !http->ranged))
		return err_set(err, -EAGAIN, "%s %s: %ld, which is no answer to it", g->call.method,
			       key, http->status);
	if (http->status == 206) {
		if (!a->has_range || a->range_first != g->req.offset || a->total == UINT64_MAX ||
		    a->total <= g->req.offset)
			return err_set(err, -EAGAIN, "GET %s: the server sent another range", key);
		*size = a->total;
		*body = min_u64(g->req.length, a->total - g->req.offset);
		return 0;
	}
	if (http->content_length < 0 && (g->head || http->ranged))
		return err_set(err, -EIO, "%s %s: no Content-Length", g->call.method, key);
	*size = http->content_length < 0 ? http->answer.len : (uint64_t)http->content_length;
	*body = g->head ? 0 : *size;
	if (http->ranged)
		*body = g->req.offset >= *size ? 0 : min_u64(g->req.length, *size - g->req.offset);
	return 0;
}

static int check_digest(const struct s3_get *g, struct err *err)
{
	const char *etag = g->call.answer.meta.etag;
	/* Where there is no MD5 there is nothing to compare. */
	if (!wants_digest(g) || !g->digest.md5[0] || strcmp(g->digest.md5, etag) == 0)
		return 0;
	return err_set(err, -EAGAIN, "GET %s: the body is damaged (MD5 %s, ETag %s)",
		       str_text(&g->key), g->digest.md5, etag);
}

/* quoted: the ETag that was asked for. */
static bool is_version(const struct s3_answer *a, const struct str *quoted)
{
	const size_t n = strlen(a->meta.etag);
	return quoted->b.len == n + 2 && memcmp(str_text(quoted) + 1, a->meta.etag, n) == 0;
}

/* Whether the answer is one to the question. Not every server, and not every cache on the way,
 * knows conditions: what they say is compared with what was asked. rc: what they say. */
static int check_version(const struct s3_get *g, int rc, struct err *err)
{
	const struct s3_answer *a = &g->call.answer;
	const char *key = str_text(&g->key);
	if (rc == -EALREADY && !g->if_none_match.b.len)
		return err_set(err, -EIO, "%s %s: 304, which was not asked for", g->call.method,
			       key);
	if (rc == -EALREADY && a->has_etag && !is_version(a, &g->if_none_match))
		return err_set(err, -EIO, "%s %s: 304 for another version", g->call.method, key);
	if (rc == 0 && g->if_match.b.len && a->has_etag && !is_version(a, &g->if_match))
		return err_set(err, -ESTALE, "%s %s: another version (ETag %s, not %s)",
			       g->call.method, key, a->meta.etag, str_text(&g->if_match));
	return rc;
}

static int check(struct s3_get *g, struct err *err)
{
	uint64_t size = 0, body = 0;
	int rc = check_version(g, s3_call_judge(&g->call, NULL, err), err);
	if (rc)
		return rc;
	/* Also where a range was asked for and what came was cut to it: an object has an ETag. */
	if (g->call.http.status == 200 && g->call.answer.is_xml && !g->call.answer.has_etag)
		return err_set(err, -EAGAIN, "%s %s: an XML document that is no object",
			       g->call.method, str_text(&g->key));
	rc = expect(g, &size, &body, err);
	if (rc)
		return rc;
	if (g->call.http.answer.len != body)
		return err_set(err, -EAGAIN, "GET %s: %zu bytes came, not %" PRIu64,
			       str_text(&g->key), g->call.http.answer.len, body);
	g->call.answer.meta.size = size;
	return check_digest(g, err);
}

/* The range begins at or past the end: an empty body, and the facts of the object by a HEAD. */
static int ask_again(struct s3_get *g, struct err *err)
{
	struct s3_store *s = g->call.s;
	s3_call_release(&g->call);
	g->head = true;
	return submit(s, g, err);
}

static void finish_get(void *arg)
{
	struct s3_get *g = arg;
	struct err err = ERR_INIT;
	int rc = check(g, &err);
	if (rc == -ERANGE && !g->head) {
		rc = ask_again(g, &err);
		if (rc == 0)
			return;
	}
	complete(g, rc, &err);
}

/* ---- life ---- */

static void free_store(struct store *store)
{
	struct s3_store *s = s3_store_of(store);
	if (s->io)
		http_io_free(s->io);
	s3_digests_release(&s->digests);
	credentials_free(s->creds);
	s3_place_release(&s->place);
	free(s->owner);
	free(s);
}

static const struct store_ops s3_ops = {
	.name = "s3",
	.get = get,
	.list = s3_list,
	.put = s3_put,
	.del = s3_del,
	.free = free_store,
};

static unsigned int or_default(unsigned int value, unsigned int otherwise)
{
	return value ? value : otherwise;
}

static int set_up(struct s3_store *s, const struct store_s3_options *opt, struct err *err)
{
	struct cred_world world = cred_world_real(s->base.env);
	world.profile = opt->profile;
	world.region = opt->region;
	int rc = s3_place_init(&s->place, &world, opt, err);
	if (rc)
		return rc;
	const struct http_options http = {
		.connections = or_default(opt->connections, STORE_S3_CONNECTIONS),
		.connect_ms = or_default(opt->connect_ms, 5000),
		.limits = {.first_byte_ms = or_default(opt->first_byte_ms, 20000),
			   .low_speed_s = or_default(opt->low_speed_s, 10),
			   .low_speed_bytes = or_default(opt->low_speed_bytes, 1024)},
		.ca_bundle = s->place.ca_bundle.b.len ? str_text(&s->place.ca_bundle) : NULL,
		.meter = opt->meter,
	};
	if (opt->expected_bucket_owner) {
		s->owner = strdup(opt->expected_bucket_owner);
		if (!s->owner)
			return err_set(err, -ENOMEM, "no memory");
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
	http_io_rest(s3_store_of(s)->io);
}

struct store *store_s3_new(const struct env *env, const struct store_s3_options *opt,
			   struct err *err)
{
	struct err why = ERR_INIT;
	struct s3_store *s = calloc(1, sizeof(*s));
	if (!s) {
		err_set(err, -ENOMEM, "S3: no memory");
		return NULL;
	}
	s->base.ops = &s3_ops;
	s->base.env = env;
	if (s3_digests_init(&s->digests, env)) {
		free(s);
		err_set(err, -ENOMEM, "S3: no memory");
		return NULL;
	}
	int rc = set_up(s, opt, &why);
	if (rc == 0) {
		rc = s3_probe(s, opt->prefix ? opt->prefix : "", &why);
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
