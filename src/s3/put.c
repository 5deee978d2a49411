/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts. If the service checks the condition (conditions.c), it is a header of the PUT. Otherwise
 * the store compares before and after:
 *
 *   HEAD, compare | PUT | HEAD: the object is the one that was put, or -ESTALE
 *
 * A 404 to the first HEAD is confirmed by a listing. Another writer may come between two requests.
 *
 * Over TLS, a large body is sent with its CRC-32C and without its SHA-256, if the service compares
 * the CRC (probe_conditions.c). Its answer must repeat the CRC. TLS protects the body on its way.
 * Over plain HTTP, nothing but the signature protects it, and the signature does not contain the
 * body without the SHA-256. A body that is a part of a source comes with its CRC, so it is sent
 * without being read before.
 *
 * If the condition fails, a HEAD shows whose object it is. If it has the mark of this put, an
 * earlier attempt has put it, and the condition counts as met. If the service drops marks, and an
 * earlier attempt may have succeeded (cond->retried), an ETag that is the MD5 of the caller's bytes
 * shows the same.
 *
 * A service may store a body without comparing its CRC, although it has compared that of the probe.
 * Its answer does not repeat the CRC then, and the put is repeated. The mark does not show that the
 * bytes of the earlier attempt are right, so its object is replaced.
 */
#include "s3_internal.h"

#include "etag.h"
#include "object_note.h"
#include "status.h"

#include <aws/digest.h>

#include <errno.h>
#include <string.h>

enum { CRC_MIN = 64 << 10 /* bytes of a body whose SHA-256 takes time */ };

static enum s3_feature feature_of(const struct store_cond *cond)
{
	return cond->if_none_match ? S3_PUT_ABSENT : S3_PUT_MATCH;
}

static bool takes_crc(const struct s3_operation *op)
{
	return op->s->creds && op->s->endpoint.tls && store_body_size(op->req) >= CRC_MIN;
}

/* condition: its header, or NULL. */
static void send_put(struct s3_operation *op, const struct sigv4_pair *condition,
		     void (*next)(struct s3_operation *op))
{
	const struct store_request *req = op->req;
	char note[S3_NOTE_VALUE];
	struct sigv4_pair header[3];
	size_t n = 0;
	if (condition)
		header[n++] = *condition;
	n += s3_note_header(req->note, note, &header[n]);
	n += s3_mark_header(req->mark, &header[n]);
	op->has_crc = takes_crc(op) && s3_support(op->s, S3_PUT_CRC) == S3_WORKS;
	if (op->part)
		op->crc = op->part->crc;
	else if (op->has_crc)
		op->crc = s3_crc32c_of(op->pieces, op->n_pieces);
	const struct s3_spec spec = {
		.method = "PUT",
		.key = req->key,
		.header = header,
		.n_header = n,
		.pieces = op->pieces,
		.n_pieces = op->n_pieces,
		.part = op->part,
		.crc = op->has_crc ? &op->crc : NULL,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	s3_send(op, &spec, next);
}

/* ---- completion ---- */

static void finish(struct s3_operation *op, int rc)
{
	if (rc == 0) {
		s3_present(op);
		return;
	}
	/* A 404 to a PUT means that the bucket does not exist. */
	s3_fail(op, rc == -ENOENT || rc == -ENOSYS ? -EIO : rc);
}

/* Called after a HEAD. */
static bool is_own(const struct s3_operation *op, const struct store_meta *now)
{
	char md5[MD5_HEX];
	const struct store_request *req = op->req;
	if (!s3_drops_marks(op->s))
		return s3_has_own_mark(op);
	return req->cond.retried && now->size == store_body_size(req) &&
	       digest_md5(op->pieces, op->n_pieces, md5) == 0 && strcmp(now->etag, md5) == 0;
}

static void present(struct s3_operation *op, const struct store_meta *now)
{
	op->req->answer.meta = *now;
	finish(op, 0);
}

/* Checks that the service has compared the CRC. If it has not, it gets the SHA-256 from now on. */
static int check_crc(struct s3_operation *op)
{
	const struct s3_crc *seen = &op->call.answer.crc;
	if (seen->kind == S3_CRC32C && seen->value == op->crc)
		return 0;
	s3_set_missing(op->s, S3_PUT_CRC);
	atomic_store(&op->s->crc_unconfirmed, true);
	return err_set(err_of(op), -EAGAIN, "PUT %s: the server has not confirmed the CRC",
		       op->req->key);
}

/* The service has got other bytes than those of the CRC. Returns rc if the source has the right
 * ones, so that another attempt may succeed. */
static int check_part(struct s3_operation *op, int rc)
{
	struct err why = ERR_INIT;
	const int found = s3_part_check(op->part, &why);
	return found ? err_set(err_of(op), found, "PUT %s: %s", op->req->key, why.msg) : rc;
}

/* Returns the result of a PUT, which is 0 with the meta of the new version, or a negative errno. */
static int put_result(struct s3_operation *op)
{
	const struct store_request *req = op->req;
	const struct s3_answer *a = &op->call.answer;
	struct store_meta *meta = &op->req->answer.meta;
	char md5[MD5_HEX];
	struct s3_error why = {.code = ""};
	int rc = s3_request_judge(&op->call, &why, err_of(op));
	op->req->answer.refused =
		rc == -EAGAIN && s3_status_refuses(op->call.http.status, why.code);
	if (op->part && strcmp(why.code, "BadDigest") == 0)
		return check_part(op, rc);
	if (rc)
		return rc == S3_UNPROVEN ? -ENOENT : rc;
	if (op->has_crc && check_crc(op))
		return -EAGAIN;
	*meta = a->meta;
	meta->size = store_body_size(req);
	if (s3_put_verifies(op->s) && s3_request_has_md5(&op->call) &&
	    digest_md5(op->pieces, op->n_pieces, md5) == 0 && strcmp(md5, meta->etag) != 0)
		return err_set(err_of(op), -EAGAIN,
			       "PUT %s: the server has stored other bytes (MD5 %s, ETag %s)",
			       req->key, md5, meta->etag);
	return 0;
}

static void after_plain(struct s3_operation *op)
{
	finish(op, put_result(op));
}

static int lost(struct s3_operation *op)
{
	op->req->answer.repeated = true; /* somebody may have seen the object */
	return err_set(err_of(op), -ESTALE,
		       "PUT %s: another writer has replaced the object at the same time",
		       op->req->key);
}

/* ---- objects that this put has put ---- */

/* Called after the PUT, whose version is in the answer. */
static void after_second_look(struct s3_operation *op)
{
	const struct store_meta put = op->req->answer.meta;
	const bool by_mark = op->req->mark && s3_support(op->s, S3_MARKS) == S3_WORKS;
	struct store_meta now;
	const int rc = s3_head_result(op, &now);
	if (!rc && (by_mark ? s3_has_own_mark(op) : strcmp(now.etag, put.etag) == 0)) {
		present(op, &now);
		return;
	}
	op->req->answer.repeated = true; /* the PUT was carried out */
	finish(op, rc && rc != -ENOENT ? rc : lost(op));
}

static void after_blind_put(struct s3_operation *op)
{
	const int rc = put_result(op);
	if (rc)
		finish(op, rc);
	else
		s3_send_head(op, after_second_look);
}

/* Returns whether an earlier attempt may have put bytes whose CRC the service has not compared. */
static bool may_be_damaged(const struct s3_operation *op)
{
	return op->req->cond.retried && takes_crc(op) && atomic_load(&op->s->crc_unconfirmed) &&
	       !s3_drops_marks(op->s); /* otherwise is_own() has compared the MD5 */
}

static void after_replacement(struct s3_operation *op)
{
	const int rc = put_result(op);
	finish(op, rc == -ESTALE || rc == -ENOENT ? lost(op) : rc);
}

/* Called after a HEAD that shows an object of this put. */
static void accept_own(struct s3_operation *op, const struct store_meta *now)
{
	struct sigv4_pair header;
	char value[S3_QUOTED_MAX];
	if (!may_be_damaged(op))
		present(op, now);
	else if (now->etag[0] && s3_cond_header(op->s, S3_PUT_MATCH, now->etag, value, &header))
		send_put(op, &header, after_replacement);
	else
		send_put(op, NULL, after_blind_put);
}

static void after_refusal(struct s3_operation *op)
{
	struct err refusal = *err_of(op);
	struct store_meta now;
	const int rc = s3_head_result(op, &now);
	if (rc == 0 && is_own(op, &now)) {
		accept_own(op, &now);
		return;
	}
	/* Nobody knows yet whose object it is. */
	if (rc == -EAGAIN) {
		finish(op, rc);
		return;
	}
	*err_of(op) = refusal;
	finish(op, refusal.code);
}

/* The service says that the condition fails. */
static void refuse(struct s3_operation *op, int rc)
{
	err_of(op)->code = rc;
	if (op->req->mark || op->req->cond.retried)
		s3_send_head(op, after_refusal);
	else
		finish(op, rc);
}

/* ---- conditions that the service does not check ---- */

static int exists(struct s3_operation *op)
{
	return err_set(err_of(op), -EEXIST, "PUT %s: the object exists", op->req->key);
}

static void after_absent_listing(struct s3_operation *op)
{
	const int rc = s3_absence_result(op);
	if (rc)
		finish(op, rc == -EEXIST ? exists(op) : rc);
	else
		send_put(op, NULL, after_blind_put);
}

static int compare_version(struct s3_operation *op, int rc, const struct store_meta *now)
{
	const struct store_request *req = op->req;
	if (rc == -ENOENT)
		return err_set(err_of(op), -ESTALE, "PUT %s: the object is gone", req->key);
	if (rc || strcmp(now->etag, req->cond.if_match) == 0)
		return rc;
	return err_set(err_of(op), -ESTALE, "PUT %s: version %s, expected %s", req->key, now->etag,
		       req->cond.if_match);
}

/* A 404 to a HEAD proves nothing, and an object that is wrongly taken for absent would be
 * replaced. */
static void after_first_look(struct s3_operation *op)
{
	const bool if_absent = op->req->cond.if_none_match;
	struct store_meta now;
	const int seen = s3_head_result(op, &now);
	int rc = seen;
	if (!if_absent)
		rc = compare_version(op, seen, &now);
	else if (seen == 0)
		rc = exists(op);
	if (seen == 0 && rc && is_own(op, &now))
		accept_own(op, &now);
	else if (rc == -ENOENT)
		s3_send_absence(op, after_absent_listing);
	else if (rc)
		finish(op, rc);
	else
		send_put(op, NULL, after_blind_put);
}

/* ---- conditions that it checks ---- */

static void after_checked_put(struct s3_operation *op)
{
	const bool if_absent = op->req->cond.if_none_match;
	const int rc = put_result(op);
	if (rc == -ENOSYS) {
		s3_set_missing(op->s, feature_of(&op->req->cond));
		s3_send_head(op, after_first_look);
	} else if (rc == -ESTALE && if_absent) {
		refuse(op, exists(op));
	} else if (rc == -ENOENT && !if_absent) {
		refuse(op, compare_version(op, rc, NULL));
	} else if (rc == -ESTALE) {
		refuse(op, rc);
	} else {
		finish(op, rc);
	}
}

static void put_whole(struct s3_operation *op)
{
	const struct store_request *req = op->req;
	struct sigv4_pair header;
	char value[S3_QUOTED_MAX];
	if (!has_cond(req))
		send_put(op, NULL, after_plain);
	else if (s3_cond_header(op->s, feature_of(&req->cond), req->cond.if_match, value, &header))
		send_put(op, &header, after_checked_put);
	else
		s3_send_head(op, after_first_look);
}

/* Returns whether the ETag of a whole object might not show that it is another one. A service that
 * refuses uploads in parts, or their conditions, gets a whole object nevertheless. */
static bool may_keep_etag(const struct s3_operation *op)
{
	const struct store_cond *cond = &op->req->cond;
	return cond->is_new_version && cond->if_match && s3_etag_is_md5(cond->if_match) &&
	       s3_support(op->s, S3_PARTS_MATCH) != S3_MISSING;
}

static bool has_parts(const struct s3_operation *op)
{
	const uint64_t size = store_body_size(op->req);
	return (op->req->in_parts && size > S3_PARTS_MIN) || (size && may_keep_etag(op));
}

/* Reads the body into memory, because its SHA-256 is sent before it. */
static int load(struct s3_operation *op)
{
	const uint64_t size = store_body_size(op->req);
	if (size == 0)
		return 0;
	op->loaded = size <= SIZE_MAX ? s3_body_new(op->s, (size_t)size, true) : NULL;
	if (!op->loaded)
		return err_set(err_of(op), -ENOMEM, "PUT %s: out of memory", op->req->key);
	op->pieces = &op->loaded->piece;
	op->n_pieces = 1;
	return s3_body_read(op->loaded, op->req, 0, (size_t)size);
}

/* Runs in a thread of its own. */
static void put_apart(void *arg)
{
	struct store_request *req = arg;
	struct s3_operation *op = store_private(store_working(req), req);
	op->apart = has_parts(op);
	if (op->apart) {
		s3_put_parts(op);
		return;
	}
	const int rc = load(op);
	if (rc)
		s3_fail(op, rc);
	else
		put_whole(op);
}

uint64_t s3_part_min(const struct s3_store *s)
{
	return s->creds && s->endpoint.tls && !s3_put_verifies(s) &&
			       s3_support(s, S3_PUT_CRC) == S3_WORKS
		       ? CRC_MIN
		       : UINT64_MAX;
}

/* Returns whether the body is sent from its source. The checks of a conditional put may need its
 * MD5. */
static bool sends_part(const struct s3_operation *op)
{
	const struct store_request *req = op->req;
	return req->part && !has_cond(req) && req->part->n >= s3_part_min(op->s);
}

static void start(struct s3_operation *op)
{
	struct store_request *req = op->req;
	op->pieces = req->pieces;
	op->n_pieces = req->n_pieces;
	op->part = sends_part(op) ? req->part : NULL;
	if ((store_has_source(req) && !op->part) || has_parts(op))
		store_work_apart(&op->s->base, req, put_apart);
	else
		put_whole(op);
}

static void start_single(struct s3_operation *op)
{
	if (takes_crc(op))
		s3_await_probe(op, S3_PROBE_CRC, start);
	else
		start(op);
}

static void after_probe(struct s3_operation *op)
{
	if (has_parts(op))
		s3_await_probe(op, S3_PROBE_PARTS, start);
	else
		start_single(op);
}

void s3_put(struct s3_operation *op)
{
	if (has_cond(op->req))
		s3_await_probe(op, S3_PROBE_SINGLE, after_probe);
	else if (has_parts(op))
		start(op);
	else
		start_single(op);
}
