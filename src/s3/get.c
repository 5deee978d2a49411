/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets and heads. Not every server, and not every cache on the way, does what it was asked for: the
 * range, the version and the length of what came are compared with the request.
 */
#include "internal.h"

#include "etag.h"

#include <aws/digest.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void finish(struct s3_flight *f);

static bool is_ranged(const struct store_request *req)
{
	return req->range.from_end || req->range.first != 0 || req->range.length != STORE_TO_END;
}

/* ---- the request ---- */

static void write_range(const struct store_range *range, char *text, size_t n)
{
	/* Servers keep positions in 63 bits. */
	if (range->from_end)
		snprintf(text, n, "bytes=-%" PRIu64, min_u64(range->length, INT64_MAX));
	else if (range->length > (uint64_t)INT64_MAX - range->first)
		snprintf(text, n, "bytes=%" PRIu64 "-", range->first);
	else
		snprintf(text, n, "bytes=%" PRIu64 "-%" PRIu64, range->first,
			 range->first + range->length - 1);
}

static size_t quote(const char *etag, const char *name, char text[S3_QUOTED_MAX],
		    struct sigv4_pair *header)
{
	if (!etag)
		return 0;
	snprintf(text, S3_QUOTED_MAX, "\"%.*s\"", STORE_ETAG_MAX, etag);
	*header = (struct sigv4_pair){name, text};
	return 1;
}

static void ask(struct s3_flight *f)
{
	const struct store_request *req = f->req;
	const bool ranged = !f->head && is_ranged(req);
	char range[64], match[S3_QUOTED_MAX], none_match[S3_QUOTED_MAX];
	struct sigv4_pair header[3];
	size_t n = 0;
	if (ranged) {
		write_range(&req->range, range, sizeof(range));
		header[n++] = (struct sigv4_pair){"range", range};
	}
	n += quote(req->cond.if_match, "if-match", match, &header[n]);
	n += quote(req->cond.if_none_match, "if-none-match", none_match, &header[n]);
	const struct s3_spec spec = {
		.method = f->head ? "HEAD" : "GET",
		.key = req->key,
		.header = header,
		.n_header = n,
		.body_max = min_u64(req->range.length, req->max ? req->max : UINT64_MAX),
		.ranged = ranged,
		/* A range that counts from the end cannot be cut out of a whole object. */
		.skip = req->range.first,
		.keep = req->range.from_end ? UINT64_MAX : req->range.length,
	};
	s3_send(f, &spec, finish);
}

void s3_get(struct s3_flight *f)
{
	const struct store_request *req = f->req;
	f->head = req->op == STORE_HEAD || req->range.length == 0 || req->range.first > INT64_MAX;
	ask(f);
}

/* ---- the answer ---- */

/* The size of the whole object, and how long the body has to be. */
static int expect(const struct s3_flight *f, uint64_t *size, uint64_t *body, struct err *err)
{
	const struct s3_answer *a = &f->call.answer;
	const struct http_call *http = &f->call.http;
	const struct store_range *range = &f->req->range;
	const char *key = f->req->key, *method = f->call.method;
	if (http->status != 200 && (http->status != 206 || !http->ranged))
		return err_set(err, -EAGAIN, "%s %s: %ld, which is no answer to it", method, key,
			       http->status);
	if (http->status == 206) {
		const uint64_t first = range->from_end ? a->total - min_u64(range->length, a->total)
						       : range->first;
		if (!a->has_range || a->total == UINT64_MAX || a->range_first != first ||
		    a->total <= first)
			return err_set(err, -EAGAIN, "GET %s: the server sent another range", key);
		*size = a->total;
		*body = min_u64(range->length, a->total - first);
		return 0;
	}
	if (http->content_length < 0 && (f->head || http->ranged))
		return err_set(err, -EIO, "%s %s: no Content-Length", method, key);
	*size = http->content_length < 0 ? http->answer.len : (uint64_t)http->content_length;
	*body = f->head ? 0 : *size;
	if (http->ranged && !range->from_end)
		*body = range->first >= *size ? 0 : min_u64(range->length, *size - range->first);
	return 0;
}

/* Where there is no MD5 there is nothing to compare. */
static int check_digest(const struct s3_flight *f, struct err *err)
{
	const char *etag = f->call.answer.meta.etag;
	const struct bytes *body = &f->call.http.answer;
	char md5[MD5_HEX] = "";
	if (!s3_request_has_md5(&f->call))
		return 0;
	if (!f->digest.body)
		digest_md5(&(struct piece){body->data, body->len}, 1, md5);
	else
		memcpy(md5, f->digest.md5, sizeof(md5));
	if (!md5[0] || strcmp(md5, etag) == 0)
		return 0;
	return err_set(err, -EAGAIN, "GET %s: the body is damaged (MD5 %s, ETag %s)", f->req->key,
		       md5, etag);
}

static bool is_version(const struct s3_answer *a, const char *etag)
{
	return strcmp(etag, a->meta.etag) == 0;
}

/* Whether the answer is one to the question. rc: what it says. */
static int check_version(const struct s3_flight *f, int rc, struct err *err)
{
	const struct s3_answer *a = &f->call.answer;
	const struct store_cond *cond = &f->req->cond;
	const char *key = f->req->key, *method = f->call.method;
	if (rc == -EALREADY && !cond->if_none_match)
		return err_set(err, -EIO, "%s %s: 304, which was not asked for", method, key);
	if (rc == -EALREADY && a->has_etag && !is_version(a, cond->if_none_match))
		return err_set(err, -EIO, "%s %s: 304 for another version", method, key);
	if (rc == 0 && cond->if_match && a->has_etag && !is_version(a, cond->if_match))
		return err_set(err, -ESTALE, "%s %s: another version (ETag %s, not \"%s\")", method,
			       key, a->meta.etag, cond->if_match);
	return rc;
}

static int check_body(struct s3_flight *f, struct err *err)
{
	uint64_t size = 0, body = 0;
	const char *key = f->req->key;
	/* Also where a range was asked for and what came was cut to it: an object has an ETag. */
	if (f->call.http.status == 200 && f->call.answer.is_xml && !f->call.answer.has_etag)
		return err_set(err, -EAGAIN, "%s %s: an XML document that is no object",
			       f->call.method, key);
	int rc = expect(f, &size, &body, err);
	if (rc)
		return rc;
	if (f->call.http.answer.len != body)
		return err_set(err, -EAGAIN, "GET %s: %zu bytes came, not %" PRIu64, key,
			       f->call.http.answer.len, body);
	f->call.answer.meta.size = size;
	return check_digest(f, err);
}

/* After a 416 the object must be as short as that says. */
static int check_end(const struct s3_flight *f, struct err *err)
{
	const struct store_range *range = &f->req->range;
	const uint64_t size = f->call.answer.meta.size;
	if (!f->past_end || size <= (range->from_end ? 0 : range->first))
		return 0;
	return err_set(err, -EAGAIN, "GET %s: 416 for a range of an object of %" PRIu64 " bytes",
		       f->req->key, size);
}

static void finish(struct s3_flight *f)
{
	struct store_answer *a = &f->req->answer;
	int rc = check_version(f, s3_request_judge(&f->call, NULL, &a->err), &a->err);
	if (rc == -ERANGE && !f->head) {
		/* The range begins at or past the end: an empty body, and the facts of the object.
		 */
		f->head = f->past_end = true;
		ask(f);
		return;
	}
	if (rc == 0)
		rc = check_body(f, &a->err);
	if (rc == 0)
		rc = check_end(f, &a->err);
	if (rc == 0 || rc == -EALREADY) {
		a->meta = f->call.answer.meta;
		a->unchanged = rc == -EALREADY;
	}
	if (rc == 0) {
		a->body = f->call.http.answer;
		f->call.http.answer = (struct bytes){0};
	}
	if (rc == 0 || rc == -EALREADY)
		s3_present(f);
	else if (rc == -ENOENT)
		s3_absent(f, STORE_SAID);
	else if (rc == S3_DOUBTFUL)
		s3_doubt(f);
	else
		s3_fail(f, rc);
}

/* ---- heads for others ---- */

void s3_ask_head(struct s3_flight *f, void (*next)(struct s3_flight *f))
{
	const struct s3_spec spec = {.method = "HEAD", .key = f->req->key};
	s3_send(f, &spec, next);
}

int s3_head_taken(struct s3_flight *f, struct store_meta *meta)
{
	struct err *err = &f->req->answer.err;
	const int rc = s3_request_judge(&f->call, NULL, err);
	if (rc == S3_DOUBTFUL)
		return -ENOENT;
	if (rc)
		return rc;
	if (f->call.http.content_length < 0)
		return err_set(err, -EIO, "HEAD %s: no Content-Length", f->req->key);
	*meta = f->call.answer.meta;
	meta->size = (uint64_t)f->call.http.content_length;
	return 0;
}
