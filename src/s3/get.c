/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets and heads. Some servers and caches ignore ranges or conditions, so the range, the version
 * and the length of each answer are compared with the request.
 */
#include "s3_internal.h"

#include <aws/digest.h>
#include <base/checksum.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void finish(struct s3_operation *op);

static bool is_ranged(const struct store_request *req)
{
	return req->range.from_end || req->range.first != 0 || req->range.length != STORE_TO_END;
}

/* ---- the request ---- */

static void write_range(const struct store_range *range, char *text, size_t n)
{
	/* Servers store positions in 63 bits. */
	if (range->from_end)
		snprintf(text, n, "bytes=-%" PRIu64, min_u64(range->length, INT64_MAX));
	else if (range->length > (uint64_t)INT64_MAX - range->first)
		snprintf(text, n, "bytes=%" PRIu64 "-", range->first);
	else
		snprintf(text, n, "bytes=%" PRIu64 "-%" PRIu64, range->first,
			 range->first + range->length - 1);
}

/* Returns the number of headers that were added. */
static size_t add_etag(const char *etag, const char *name, char text[S3_QUOTED_MAX],
		       struct sigv4_pair *header)
{
	if (!etag)
		return 0;
	snprintf(text, S3_QUOTED_MAX, "\"%.*s\"", STORE_ETAG_MAX, etag);
	*header = (struct sigv4_pair){name, text};
	return 1;
}

static void send_get(struct s3_operation *op)
{
	const struct store_request *req = op->req;
	const bool ranged = !op->head && is_ranged(req);
	char range[64], match[S3_QUOTED_MAX], none_match[S3_QUOTED_MAX];
	struct sigv4_pair header[3];
	size_t n = 0;
	/* Checksums are those of whole objects. */
	if (ranged) {
		write_range(&req->range, range, sizeof(range));
		header[n++] = (struct sigv4_pair){"range", range};
	} else if (!op->head && s3_verifies(op->s)) {
		header[n++] = (struct sigv4_pair){"x-amz-checksum-mode", "ENABLED"};
	}
	n += add_etag(req->cond.if_match, "if-match", match, &header[n]);
	n += add_etag(req->cond.if_none_match, "if-none-match", none_match, &header[n]);
	const struct s3_spec spec = {
		.method = op->head ? "HEAD" : "GET",
		.key = req->key,
		.header = header,
		.n_header = n,
		.body_max = min_u64(req->range.length, req->max ? req->max : UINT64_MAX),
		.ranged = ranged,
		/* A range that counts from the end cannot be cut out while the object arrives. */
		.skip = req->range.first,
		.keep = req->range.from_end ? UINT64_MAX : req->range.length,
	};
	s3_send(op, &spec, finish);
}

void s3_get(struct s3_operation *op)
{
	const struct store_request *req = op->req;
	op->head = req->op == STORE_HEAD || req->range.length == 0 || req->range.first > INT64_MAX;
	send_get(op);
}

/* ---- the answer ---- */

/* Determines the size of the whole object and the length that the body must have. */
static int expect(const struct s3_operation *op, uint64_t *size, uint64_t *body, struct err *err)
{
	const struct s3_answer *a = &op->call.answer;
	const struct http_call *http = &op->call.http;
	const struct store_range *range = &op->req->range;
	const char *key = op->req->key, *method = op->call.method;
	if (http->status != 200 && (http->status != 206 || !http->ranged))
		return err_set(err, -EAGAIN, "%s %s: unexpected status %ld", method, key,
			       http->status);
	if (http->status == 206) {
		uint64_t first;
		*size = a->total;
		*body = store_range_clip(range, a->total, &first);
		if (!a->has_range || a->total == UINT64_MAX || a->range_first != first ||
		    a->total <= first)
			return err_set(err, -EAGAIN, "GET %s: the server sent another range", key);
		return 0;
	}
	if (http->content_length < 0 && (op->head || http->ranged))
		return err_set(err, -EIO, "%s %s: no Content-Length", method, key);
	*size = http->content_length < 0 ? http->answer.len : (uint64_t)http->content_length;
	*body = op->head ? 0 : *size;
	if (http->ranged && !range->from_end)
		*body = range->first >= *size ? 0 : min_u64(range->length, *size - range->first);
	return 0;
}

static int check_crc(struct s3_operation *op, struct err *err)
{
	const struct s3_crc *expected = &op->call.answer.crc;
	const struct bytes *body = &op->call.http.answer;
	const uint64_t crc = s3_crc_of(&op->s->crc_tables, expected->kind, body->data, body->len);
	if (crc == expected->value)
		return 0;
	op->req->answer.damage = (uint32_t)(crc ^ crc >> 32) | 1;
	return err_set(err, -EAGAIN,
		       "GET %s: the body is damaged (CRC %" PRIx64 ", expected %" PRIx64 ")",
		       op->req->key, crc, expected->value);
}

/* Checks nothing if OpenSSL has no MD5 (FIPS). */
static int check_md5(struct s3_operation *op, struct err *err)
{
	const char *etag = op->call.answer.meta.etag;
	const struct bytes *body = &op->call.http.answer;
	char md5[MD5_HEX];
	if (digest_md5(&(struct piece){body->data, body->len}, 1, md5) || strcmp(md5, etag) == 0)
		return 0;
	op->req->answer.damage = checksum_crc32c(md5, strlen(md5), 0) | 1;
	return err_set(err, -EAGAIN, "GET %s: the body is damaged (MD5 %s, ETag %s)", op->req->key,
		       md5, etag);
}

static bool is_version(const struct s3_answer *a, const char *etag)
{
	return strcmp(etag, a->meta.etag) == 0;
}

/* Checks that the answer is about the requested version. rc is the result of s3_request_judge(). */
static int check_version(const struct s3_operation *op, int rc, struct err *err)
{
	const struct s3_answer *a = &op->call.answer;
	const struct store_cond *cond = &op->req->cond;
	const char *key = op->req->key, *method = op->call.method;
	if (rc == -EALREADY && !cond->if_none_match)
		return err_set(err, -EIO, "%s %s: 304 to a request without a condition", method,
			       key);
	if (rc == -EALREADY && a->has_etag && !is_version(a, cond->if_none_match))
		return err_set(err, -EIO, "%s %s: 304 for another version", method, key);
	if (rc == 0 && cond->if_match && a->has_etag && !is_version(a, cond->if_match))
		return err_set(err, -ESTALE, "%s %s: another version (ETag %s, not \"%s\")", method,
			       key, a->meta.etag, cond->if_match);
	return rc;
}

static int check_body(struct s3_operation *op, struct err *err)
{
	uint64_t size = 0, body = 0;
	const char *key = op->req->key;
	/* Some services send errors with status 200. The ETag distinguishes an object, also if the
	 * body was cut to a range. */
	if (op->call.http.status == 200 && op->call.answer.is_xml && !op->call.answer.has_etag)
		return err_set(err, -EAGAIN, "%s %s: the answer is an XML document without an ETag",
			       op->call.method, key);
	int rc = expect(op, &size, &body, err);
	if (rc)
		return rc;
	if (op->call.http.answer.len != body)
		return err_set(err, -EAGAIN, "GET %s: %zu bytes instead of %" PRIu64, key,
			       op->call.http.answer.len, body);
	op->call.answer.meta.size = size;
	if (op->head || op->call.http.ranged || !s3_verifies(op->s))
		return 0;
	/* A CRC costs less than an MD5. */
	if (op->call.answer.crc.kind != S3_CRC_NONE)
		return check_crc(op, err);
	return s3_request_has_md5(&op->call) ? check_md5(op, err) : 0;
}

/* After a 416, the object must end before the range. */
static int check_end(const struct s3_operation *op, struct err *err)
{
	const struct store_range *range = &op->req->range;
	const uint64_t size = op->call.answer.meta.size;
	if (!op->past_end || size <= (range->from_end ? 0 : range->first))
		return 0;
	return err_set(err, -EAGAIN, "GET %s: 416 for a range of an object of %" PRIu64 " bytes",
		       op->req->key, size);
}

static void finish(struct s3_operation *op)
{
	struct store_answer *a = &op->req->answer;
	int rc = check_version(op, s3_request_judge(&op->call, NULL, &a->err), &a->err);
	if (rc == -ERANGE && !op->head) {
		/* The range begins at or past the end. The result is an empty body, with the meta
		 * of the object. */
		op->head = op->past_end = true;
		send_get(op);
		return;
	}
	if (rc == -EFBIG && op->req->range.from_end && op->call.http.status == 200)
		rc = err_set(&a->err, -EIO,
			     "GET %s: the server sent the whole object instead of its last %" PRIu64
			     " bytes",
			     op->req->key, op->req->range.length);
	if (rc == 0)
		rc = check_body(op, &a->err);
	if (rc == 0)
		rc = check_end(op, &a->err);
	if (rc == 0 || rc == -EALREADY) {
		a->meta = op->call.answer.meta;
		a->unchanged = rc == -EALREADY;
	}
	if (rc == 0) {
		store_answer_note(op->req, op->call.answer.note, strlen(op->call.answer.note));
		store_answer_mark(op->req, op->call.answer.mark, strlen(op->call.answer.mark));
		a->body = op->call.http.answer;
		op->call.http.answer = (struct bytes){0};
	}
	if (rc == 0 || rc == -EALREADY)
		s3_present(op);
	else if (rc == -ENOENT)
		s3_absent(op, STORE_BY_SERVICE);
	else if (rc == S3_UNPROVEN)
		s3_confirm_absence(op);
	else
		s3_fail(op, rc);
}

/* ---- heads for other operations ---- */

void s3_send_head(struct s3_operation *op, void (*next)(struct s3_operation *op))
{
	const struct s3_spec spec = {.method = "HEAD", .key = op->req->key};
	s3_send(op, &spec, next);
}

int s3_head_result(struct s3_operation *op, struct store_meta *meta)
{
	struct err *err = &op->req->answer.err;
	const int rc = s3_request_judge(&op->call, NULL, err);
	if (rc == S3_UNPROVEN)
		return -ENOENT;
	if (rc)
		return rc;
	if (op->call.http.content_length < 0)
		return err_set(err, -EIO, "HEAD %s: no Content-Length", op->req->key);
	*meta = op->call.answer.meta;
	meta->size = (uint64_t)op->call.http.content_length;
	return 0;
}
