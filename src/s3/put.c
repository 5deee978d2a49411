/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts and deletes, with the conditions that the server supports.
 *
 * If-Match of a PUT: AWS requires the ETag in quotes, Ceph without (a quoted one never matches:
 * 412), and older servers ignore it or answer 501. The store finds out once which form the server
 * accepts. After a HEAD has shown that the caller's condition holds, it sends the caller's own PUT
 * with an ETag that no object has. A server that supports conditions answers 412 or 404 and changes
 * nothing; the others answer 200, and the object has its new content.
 *
 *   if_match   put with if_match                            next state
 *   UNKNOWN    HEAD, compare, PUT with an impossible ETag   QUOTED (412, 404) or NONE (200, 501)
 *   QUOTED     PUT; after 412 HEAD, and if the ETag is      BARE if the second PUT succeeds
 *              still the same, PUT without quotes
 *   BARE       the same with the forms exchanged            QUOTED, likewise
 *   NONE       HEAD, compare, PUT                           -
 *
 * If the server does not support If-None-Match (501), the store sends a HEAD, confirms a 404 by a
 * listing, and sends the PUT without a condition.
 *
 * A delete with a condition is always compared by a HEAD first, because Ceph ignores If-Match
 * there. Another writer may change the object between the two requests.
 *
 * cond->retried: an earlier attempt of the same put may have succeeded although its answer was
 * lost. If the condition fails then, and the ETag of the object is the MD5 of the caller's bytes,
 * the earlier attempt succeeded.
 */
#include "internal.h"

#include "etag.h"
#include "note.h"

#include <aws/digest.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void send_put(struct s3_operation *op, const char *name, const char *value,
		     void (*next)(struct s3_operation *op))
{
	const struct store_request *req = op->req;
	char note[S3_NOTE_VALUE];
	struct sigv4_pair header[2];
	size_t n = 0;
	if (name)
		header[n++] = (struct sigv4_pair){name, value};
	n += s3_note_header(req->note, note, &header[n]);
	const struct s3_spec spec = {
		.method = "PUT",
		.key = req->key,
		.header = header,
		.n_header = n,
		.pieces = op->pieces,
		.n_pieces = op->n_pieces,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	s3_send(op, &spec, next);
}

static void send_matching(struct s3_operation *op, const char *etag, bool quoted,
			  void (*next)(struct s3_operation *op))
{
	char value[S3_QUOTED_MAX];
	op->quoted = quoted;
	snprintf(value, sizeof(value), quoted ? "\"%.*s\"" : "%.*s", STORE_ETAG_MAX, etag);
	send_put(op, "if-match", value, next);
}

static struct err *err_of(struct s3_operation *op)
{
	return &op->req->answer.err;
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

/* If the object's ETag is the MD5 of the caller's bytes, an earlier attempt of this put succeeded.
 */
static void after_md5_check(struct s3_operation *op)
{
	char md5[MD5_HEX];
	const struct store_request *req = op->req;
	struct err stale = *err_of(op);
	struct store_meta now;
	const uint64_t size = store_body_size(req);
	const int rc = s3_head_result(op, &now);
	if (rc == 0 && digest_md5(op->pieces, op->n_pieces, md5) == 0 &&
	    strcmp(now.etag, md5) == 0 && now.size == size) {
		op->req->answer.meta = now;
		finish(op, 0);
		return;
	}
	*err_of(op) = stale;
	finish(op, stale.code);
}

/* The condition failed. Checks whether an earlier attempt of this put is the cause. */
static void refuse(struct s3_operation *op, int rc)
{
	err_of(op)->code = rc;
	if (op->req->cond.retried)
		s3_send_head(op, after_md5_check);
	else
		finish(op, rc);
}

/* The result of a PUT: 0 with the meta of the new version, or a negative errno. */
static int put_result(struct s3_operation *op)
{
	const struct store_request *req = op->req;
	const struct s3_answer *a = &op->call.answer;
	struct store_meta *meta = &op->req->answer.meta;
	char md5[MD5_HEX];
	int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (rc)
		return rc == S3_UNPROVEN ? -ENOENT : rc;
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

/* ---- only if the object does not exist ---- */

static void exists(struct s3_operation *op)
{
	err_set(err_of(op), -EEXIST, "PUT %s: the object exists", op->req->key);
	refuse(op, -EEXIST);
}

static void after_absent_listing(struct s3_operation *op)
{
	const int rc = s3_absence_result(op);
	if (rc == -EEXIST)
		exists(op);
	else if (rc)
		finish(op, rc);
	else
		send_put(op, NULL, NULL, after_plain);
}

/* A 404 to a HEAD proves nothing, and an object that is wrongly taken for absent would be
 * replaced. */
static void after_absent_head(struct s3_operation *op)
{
	struct store_meta now;
	const int rc = s3_head_result(op, &now);
	if (rc == 0)
		exists(op);
	else if (rc == -ENOENT)
		s3_send_absence(op, after_absent_listing);
	else
		finish(op, rc);
}

static void after_absent(struct s3_operation *op)
{
	const int rc = put_result(op);
	if (rc == -ESTALE)
		exists(op);
	else if (rc == -ENOSYS)
		s3_send_head(op, after_absent_head);
	else
		finish(op, rc);
}

/* ---- only if the object has a version ---- */

static void set_if_match(struct s3_store *s, enum s3_if_match form)
{
	const int before = atomic_exchange(&s->if_match, (int)form);
	if (form == S3_IF_MATCH_NONE && before != S3_IF_MATCH_NONE)
		log_warning(
			s->base.env->log,
			"%s does not support If-Match: versions are compared before each write, "
			"and a change by another writer between the two is overwritten",
			str_text(&s->endpoint.host));
}

/* After a HEAD: 0 if the object has the caller's version, otherwise -ESTALE or the HEAD's error. */
static int compare(struct s3_operation *op, const char *method)
{
	const struct store_request *req = op->req;
	struct store_meta now;
	const int rc = s3_head_result(op, &now);
	if (rc == -ENOENT)
		return err_set(err_of(op), -ESTALE, "%s %s: the object is gone", method, req->key);
	if (rc)
		return rc;
	if (strcmp(now.etag, req->cond.if_match) == 0)
		return 0;
	return err_set(err_of(op), -ESTALE, "%s %s: version %s, expected %s", method, req->key,
		       now.etag, req->cond.if_match);
}

static void refuse_or_finish(struct s3_operation *op, int rc)
{
	if (rc == -ESTALE)
		refuse(op, rc);
	else
		finish(op, rc);
}

/* NONE: after the HEAD, compares the version and sends the PUT. */
static void after_compared(struct s3_operation *op)
{
	const int rc = compare(op, "PUT");
	if (rc)
		refuse_or_finish(op, rc);
	else
		send_put(op, NULL, NULL, after_plain);
}

/* QUOTED or BARE: after the PUT with the other form. */
static void after_other_form(struct s3_operation *op)
{
	const int rc = put_result(op);
	if (rc == 0)
		set_if_match(op->s, op->quoted ? S3_IF_MATCH_QUOTED : S3_IF_MATCH_BARE);
	refuse_or_finish(op, rc == -ENOENT ? -ESTALE : rc);
}

static void after_mismatch_head(struct s3_operation *op)
{
	const int rc = compare(op, "PUT");
	if (rc)
		refuse_or_finish(op, rc);
	else
		send_matching(op, op->req->cond.if_match, !op->quoted, after_other_form);
}

static void after_matching(struct s3_operation *op)
{
	const int rc = put_result(op);
	if (rc == -ESTALE || rc == -ENOENT)
		s3_send_head(op, after_mismatch_head);
	else
		finish(op, rc);
}

static void put_matching(struct s3_operation *op)
{
	const enum s3_if_match form = (enum s3_if_match)atomic_load(&op->s->if_match);
	if (form == S3_IF_MATCH_NONE)
		s3_send_head(op, after_compared);
	else
		send_matching(op, op->req->cond.if_match, form == S3_IF_MATCH_QUOTED,
			      after_matching);
}

/* UNKNOWN: after the PUT with the impossible ETag. */
static void after_trial(struct s3_operation *op)
{
	const int rc = put_result(op);
	if (rc == -ESTALE || rc == -ENOENT) {
		set_if_match(op->s, S3_IF_MATCH_QUOTED);
		put_matching(op);
	} else if (rc == -ENOSYS) {
		set_if_match(op->s, S3_IF_MATCH_NONE);
		put_matching(op);
	} else {
		if (rc == 0)
			set_if_match(op->s, S3_IF_MATCH_NONE);
		finish(op, rc);
	}
}

static void after_first_head(struct s3_operation *op)
{
	static const char impossible[] = "00000000000000000000000000000000";
	const int rc = compare(op, "PUT");
	if (rc)
		refuse_or_finish(op, rc);
	else
		send_matching(op, impossible, true, after_trial);
}

static void put_whole(struct s3_operation *op)
{
	const struct store_cond *cond = &op->req->cond;
	if (cond->if_none_match)
		send_put(op, "if-none-match", "*", after_absent);
	else if (!cond->if_match)
		send_put(op, NULL, NULL, after_plain);
	else if (atomic_load(&op->s->if_match) == S3_IF_MATCH_UNKNOWN)
		s3_send_head(op, after_first_head);
	else
		put_matching(op);
}

static bool has_parts(const struct store_request *req)
{
	return req->in_parts && store_body_size(req) > S3_PARTS_MIN;
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

/* In a thread of its own. */
static void put_apart(void *arg)
{
	struct store_request *req = arg;
	struct s3_operation *op = store_slot(store_working(req), req);
	op->apart = has_parts(req);
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

void s3_put(struct s3_operation *op)
{
	struct store_request *req = op->req;
	op->pieces = req->pieces;
	op->n_pieces = req->n_pieces;
	if (req->body || has_parts(req))
		store_work_apart(&op->s->base, req, put_apart);
	else
		put_whole(op);
}

/* ---- deletes ---- */

static void after_delete(struct s3_operation *op)
{
	const int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (rc == 0 || rc == -ENOENT)
		s3_absent(op, STORE_BY_SERVICE);
	else
		s3_fail(op, rc);
}

static void send_delete(struct s3_operation *op)
{
	const struct s3_spec spec = {
		.method = "DELETE", .key = op->req->key, .body_max = HTTP_ERROR_BODY_MAX};
	s3_send(op, &spec, after_delete);
}

static void after_delete_head(struct s3_operation *op)
{
	struct store_meta now;
	const char *if_match = op->req->cond.if_match;
	const int rc = s3_head_result(op, &now);
	/* A missing object has no version to compare; the DELETE then proves that it is absent. */
	if (rc == 0 && strcmp(now.etag, if_match) != 0) {
		err_set(err_of(op), -ESTALE, "DELETE %s: version %s, expected %s", op->req->key,
			now.etag, if_match);
		s3_fail(op, -ESTALE);
	} else if (rc && rc != -ENOENT) {
		s3_fail(op, rc);
	} else {
		op->req->answer.was_absent = rc == -ENOENT;
		send_delete(op);
	}
}

void s3_delete(struct s3_operation *op)
{
	if (op->req->cond.if_match)
		s3_send_head(op, after_delete_head);
	else
		send_delete(op);
}
