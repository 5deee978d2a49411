/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes. If the service is known to check If-Match (conditions.c), it is a header of the DELETE.
 * Otherwise a HEAD comes first, and another writer may change the object between the two. A DELETE
 * does not start a probe.
 */
#include "s3_internal.h"

#include <errno.h>
#include <string.h>

static void send_delete(struct s3_operation *op, bool conditional,
			void (*next)(struct s3_operation *op))
{
	struct sigv4_pair header;
	char value[S3_QUOTED_MAX];
	const struct s3_spec spec = {
		.method = "DELETE",
		.key = op->req->key,
		.header = &header,
		.n_header = conditional ? s3_cond_header(op->s, S3_DELETE_MATCH,
							 op->req->cond.if_match, value, &header)
					: 0,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	s3_send(op, &spec, next);
}

static void after_delete(struct s3_operation *op)
{
	const int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (rc == 0 || rc == -ENOENT)
		s3_absent(op, STORE_BY_SERVICE);
	else
		s3_fail(op, rc);
}

/* A 404 to a HEAD proves nothing. A DELETE without a condition could remove what another writer
 * puts meanwhile, so a listing proves that there is nothing to delete. */
static void after_absence(struct s3_operation *op)
{
	const int rc = s3_absence_result(op);
	if (rc == 0) {
		op->req->answer.was_absent = true;
		s3_absent(op, STORE_BY_LISTING);
	} else if (rc == -EEXIST) {
		err_set(err_of(op), -ESTALE, "DELETE %s: another writer has just put it",
			op->req->key);
		s3_fail(op, -ESTALE);
	} else {
		s3_fail(op, rc);
	}
}

static void after_head(struct s3_operation *op)
{
	struct store_meta now;
	const char *if_match = op->req->cond.if_match;
	const int rc = s3_head_result(op, &now);
	if (rc == 0 && strcmp(now.etag, if_match) != 0) {
		err_set(err_of(op), -ESTALE, "DELETE %s: version %s, expected %s", op->req->key,
			now.etag, if_match);
		s3_fail(op, -ESTALE);
	} else if (rc == -ENOENT) {
		s3_send_absence(op, after_absence);
	} else if (rc) {
		s3_fail(op, rc);
	} else {
		send_delete(op, false, after_delete);
	}
}

/* Services differ in what they answer if there is no object. */
static void after_refusal(struct s3_operation *op)
{
	struct err refusal = *err_of(op);
	struct store_meta now;
	const int rc = s3_head_result(op, &now);
	if (rc == -ENOENT) {
		s3_send_absence(op, after_absence);
	} else if (rc) {
		s3_fail(op, rc);
	} else {
		*err_of(op) = refusal;
		s3_fail(op, refusal.code);
	}
}

static void after_checked_delete(struct s3_operation *op)
{
	const int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (rc == -ESTALE) {
		s3_send_head(op, after_refusal);
	} else if (rc == 0 || rc == -ENOENT) {
		op->req->answer.was_absent = rc == -ENOENT;
		s3_absent(op, STORE_BY_SERVICE);
	} else {
		s3_fail(op, rc);
	}
}

void s3_delete(struct s3_operation *op)
{
	if (!op->req->cond.if_match)
		send_delete(op, false, after_delete);
	else if (s3_support(op->s, S3_DELETE_MATCH) == S3_WORKS)
		send_delete(op, true, after_checked_delete);
	else
		s3_send_head(op, after_head);
}
