/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts and deletes, with conditions as the server at hand has them.
 *
 * If-Match of a PUT: AWS wants the ETag in quotes, Ceph wants it bare (a quoted one never matches:
 * 412), older servers ignore it or answer 501. Which it is, is found out once, by a PUT of the
 * caller's own bytes with an ETag that nothing has, after a HEAD has shown that the caller's
 * condition holds: 412 or 404, and nothing has changed, from a server that looks at conditions; 200
 * from one that does not, and the object is what it was to become.
 *
 *   if_match   put with if_match                              next state
 *   UNKNOWN    HEAD, compare, PUT with an impossible ETag     QUOTED (412, 404) or NONE (200, 501)
 *   QUOTED     PUT; at 412 HEAD: still that ETag? then bare   BARE, when the bare one was taken
 *   BARE       the same, the other way round                  QUOTED, likewise
 *   NONE       HEAD, compare, PUT                             -
 *
 * A delete is always compared by a HEAD first: Ceph ignores If-Match there. Another writer may come
 * between the two, as between any two requests.
 *
 * cond->again: an earlier attempt of the same put may have been done, its answer lost. Then a
 * condition that fails is looked at again: when the object's ETag is the MD5 of our bytes, it is
 * our own doing.
 */
#include "internal.h"

#include "etag.h"

#include <aws/digest.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void send_put(struct s3_flight *f, const char *name, const char *value,
		     void (*next)(struct s3_flight *f))
{
	const struct store_request *req = f->req;
	const struct sigv4_pair header = {name, value};
	const struct s3_spec spec = {
		.method = "PUT",
		.key = req->key,
		.header = &header,
		.n_header = name ? 1 : 0,
		.pieces = req->pieces,
		.n_pieces = req->n_pieces,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	s3_send(f, &spec, next);
}

static void send_matching(struct s3_flight *f, const char *etag, bool quoted,
			  void (*next)(struct s3_flight *f))
{
	char value[S3_QUOTED_MAX];
	f->quoted = quoted;
	snprintf(value, sizeof(value), quoted ? "\"%.*s\"" : "%.*s", STORE_ETAG_MAX, etag);
	send_put(f, "if-match", value, next);
}

static struct err *err_of(struct s3_flight *f)
{
	return &f->req->answer.err;
}

/* ---- the end ---- */

static void finish(struct s3_flight *f, int rc)
{
	if (rc == 0) {
		s3_present(f);
		return;
	}
	/* 404 to a PUT is about the bucket. */
	s3_fail(f, rc == -ENOENT || rc == -ENOSYS ? -EIO : rc);
}

/* When the object's ETag is the MD5 of our bytes, an earlier attempt of this very put succeeded. */
static void after_look_back(struct s3_flight *f)
{
	char md5[MD5_HEX];
	const struct store_request *req = f->req;
	struct err stale = *err_of(f);
	struct store_meta now;
	const uint64_t size = pieces_size(req->pieces, req->n_pieces);
	const int rc = s3_head_taken(f, &now);
	if (rc == 0 && digest_md5(req->pieces, req->n_pieces, md5) == 0 &&
	    strcmp(now.etag, md5) == 0 && now.size == size) {
		f->req->answer.meta = now;
		finish(f, 0);
		return;
	}
	*err_of(f) = stale;
	finish(f, stale.code);
}

/* The condition failed: because an earlier attempt of ours was done after all? */
static void refuse(struct s3_flight *f, int rc)
{
	err_of(f)->code = rc;
	if (f->req->cond.again)
		s3_ask_head(f, after_look_back);
	else
		finish(f, rc);
}

/* What came of a PUT: 0 with the meta of the new version, or a negative errno. */
static int put_taken(struct s3_flight *f)
{
	const struct store_request *req = f->req;
	const struct s3_answer *a = &f->call.answer;
	struct store_meta *meta = &f->req->answer.meta;
	char md5[MD5_HEX];
	int rc = s3_request_judge(&f->call, NULL, err_of(f));
	if (rc)
		return rc == S3_DOUBTFUL ? -ENOENT : rc;
	*meta = a->meta;
	meta->size = pieces_size(req->pieces, req->n_pieces);
	if (!f->s->unchecked && !a->etag_is_opaque && s3_etag_is_md5(meta->etag) &&
	    digest_md5(req->pieces, req->n_pieces, md5) == 0 && strcmp(md5, meta->etag) != 0)
		return err_set(err_of(f), -EAGAIN, "PUT %s: the server has other bytes (ETag %s)",
			       req->key, meta->etag);
	return 0;
}

static void after_plain(struct s3_flight *f)
{
	finish(f, put_taken(f));
}

/* ---- only where nothing is ---- */

static void exists(struct s3_flight *f)
{
	err_set(err_of(f), -EEXIST, "PUT %s: the object exists", f->req->key);
	refuse(f, -EEXIST);
}

static void after_absent_head(struct s3_flight *f)
{
	struct store_meta now;
	const int rc = s3_head_taken(f, &now);
	if (rc == 0)
		exists(f);
	else if (rc == -ENOENT)
		send_put(f, NULL, NULL, after_plain);
	else
		finish(f, rc);
}

static void after_absent(struct s3_flight *f)
{
	const int rc = put_taken(f);
	if (rc == -ESTALE)
		exists(f);
	else if (rc == -ENOSYS)
		s3_ask_head(f, after_absent_head);
	else
		finish(f, rc);
}

/* ---- only over one version ---- */

static void remember(struct s3_store *s, enum s3_if_match habit)
{
	const int before = atomic_exchange(&s->if_match, (int)habit);
	if (habit == S3_IF_MATCH_NONE && before != S3_IF_MATCH_NONE)
		log_warning(s->base.env->log,
			    "%s does not check If-Match: versions are compared before a write, and "
			    "another writer may come between",
			    str_text(&s->endpoint.host));
}

/* After a head: 0 when the object is the version that the caller named, else -ESTALE or why it
 * could not be told. */
static int compare(struct s3_flight *f, const char *method)
{
	const struct store_request *req = f->req;
	struct store_meta now;
	const int rc = s3_head_taken(f, &now);
	if (rc == -ENOENT)
		return err_set(err_of(f), -ESTALE, "%s %s: the object is gone", method, req->key);
	if (rc)
		return rc;
	if (strcmp(now.etag, req->cond.if_match) == 0)
		return 0;
	return err_set(err_of(f), -ESTALE, "%s %s: version %s, expected %s", method, req->key,
		       now.etag, req->cond.if_match);
}

static void refuse_or_finish(struct s3_flight *f, int rc)
{
	if (rc == -ESTALE)
		refuse(f, rc);
	else
		finish(f, rc);
}

/* NONE: the version was compared, now the put. */
static void after_compared(struct s3_flight *f)
{
	const int rc = compare(f, "PUT");
	if (rc)
		refuse_or_finish(f, rc);
	else
		send_put(f, NULL, NULL, after_plain);
}

/* QUOTED or BARE: the other way was tried, too. */
static void after_other_way(struct s3_flight *f)
{
	const int rc = put_taken(f);
	if (rc == 0)
		remember(f->s, f->quoted ? S3_IF_MATCH_QUOTED : S3_IF_MATCH_BARE);
	refuse_or_finish(f, rc == -ENOENT ? -ESTALE : rc);
}

static void after_mismatch_head(struct s3_flight *f)
{
	const int rc = compare(f, "PUT");
	if (rc)
		refuse_or_finish(f, rc);
	else
		send_matching(f, f->req->cond.if_match, !f->quoted, after_other_way);
}

static void after_matching(struct s3_flight *f)
{
	const int rc = put_taken(f);
	if (rc == -ESTALE || rc == -ENOENT)
		s3_ask_head(f, after_mismatch_head);
	else
		finish(f, rc);
}

static void put_matching(struct s3_flight *f)
{
	const enum s3_if_match habit = (enum s3_if_match)atomic_load(&f->s->if_match);
	if (habit == S3_IF_MATCH_NONE)
		s3_ask_head(f, after_compared);
	else
		send_matching(f, f->req->cond.if_match, habit == S3_IF_MATCH_QUOTED,
			      after_matching);
}

/* UNKNOWN: the put with an ETag that nothing has was refused, as it should be, or was done. */
static void after_trial(struct s3_flight *f)
{
	const int rc = put_taken(f);
	if (rc == -ESTALE || rc == -ENOENT) {
		remember(f->s, S3_IF_MATCH_QUOTED);
		put_matching(f);
	} else if (rc == -ENOSYS) {
		remember(f->s, S3_IF_MATCH_NONE);
		put_matching(f);
	} else {
		if (rc == 0)
			remember(f->s, S3_IF_MATCH_NONE);
		finish(f, rc);
	}
}

static void after_first_head(struct s3_flight *f)
{
	static const char impossible[] = "00000000000000000000000000000000";
	const int rc = compare(f, "PUT");
	if (rc)
		refuse_or_finish(f, rc);
	else
		send_matching(f, impossible, true, after_trial);
}

void s3_put(struct s3_flight *f)
{
	const struct store_cond *cond = &f->req->cond;
	if (cond->if_none_match)
		send_put(f, "if-none-match", "*", after_absent);
	else if (!cond->if_match)
		send_put(f, NULL, NULL, after_plain);
	else if (atomic_load(&f->s->if_match) == S3_IF_MATCH_UNKNOWN)
		s3_ask_head(f, after_first_head);
	else
		put_matching(f);
}

/* ---- deletes ---- */

static void after_delete(struct s3_flight *f)
{
	const int rc = s3_request_judge(&f->call, NULL, err_of(f));
	if (rc == 0 || rc == -ENOENT)
		s3_absent(f, STORE_SAID);
	else
		s3_fail(f, rc);
}

static void send_delete(struct s3_flight *f)
{
	const struct s3_spec spec = {
		.method = "DELETE", .key = f->req->key, .body_max = HTTP_ERROR_BODY_MAX};
	s3_send(f, &spec, after_delete);
}

static void after_delete_head(struct s3_flight *f)
{
	struct store_meta now;
	const char *if_match = f->req->cond.if_match;
	const int rc = s3_head_taken(f, &now);
	/* What is not there has no version; the delete itself proves that it is not. */
	if (rc == 0 && strcmp(now.etag, if_match) != 0) {
		err_set(err_of(f), -ESTALE, "DELETE %s: version %s, expected %s", f->req->key,
			now.etag, if_match);
		s3_fail(f, -ESTALE);
	} else if (rc && rc != -ENOENT) {
		s3_fail(f, rc);
	} else {
		send_delete(f);
	}
}

void s3_delete(struct s3_flight *f)
{
	if (f->req->cond.if_match)
		s3_ask_head(f, after_delete_head);
	else
		send_delete(f);
}
