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

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { QUOTED_MAX = STORE_ETAG_MAX + 3 };

struct put {
	struct s3_store *s;
	const char *key;
	const void *body;
	size_t n;
	const struct store_cond *cond;
	struct store_meta *meta; /* of the new version */
};

static int put_once(const struct put *p, const char *name, const char *value, struct err *err)
{
	auto_s3_request struct s3_request call = {0};
	char md5[MD5_HEX];
	const struct sigv4_pair header = {name, value};
	const struct s3_spec req = {
		.method = "PUT",
		.key = p->key,
		.header = &header,
		.n_header = name ? 1 : 0,
		.body = p->body,
		.body_len = p->n,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	int rc = s3_request_run(&call, p->s, &req, NULL, err);
	if (rc)
		return rc;
	*p->meta = call.answer.meta;
	p->meta->size = p->n;
	if (!p->s->unchecked && !call.answer.etag_is_opaque && s3_etag_is_md5(p->meta->etag) &&
	    digest_md5(p->body ? p->body : "", p->n, md5) == 0 && strcmp(md5, p->meta->etag) != 0)
		return err_set(err, -EAGAIN, "PUT %s: the server has other bytes (ETag %s)", p->key,
			       p->meta->etag);
	return 0;
}

static int put_if_match(const struct put *p, const char *etag, bool quoted, struct err *err)
{
	char value[QUOTED_MAX];
	snprintf(value, sizeof(value), quoted ? "\"%.*s\"" : "%.*s", STORE_ETAG_MAX, etag);
	return put_once(p, "if-match", value, err);
}

static void remember(struct s3_store *s, enum s3_if_match habit)
{
	const int before = atomic_exchange(&s->if_match, (int)habit);
	if (habit == S3_IF_MATCH_NONE && before != S3_IF_MATCH_NONE)
		log_warning(s->base.env->log,
			    "%s does not check If-Match: versions are compared before a write, and "
			    "another writer may come between",
			    str_text(&s->place.host));
}

/* -ESTALE unless the object is the version that cond->if_match names. */
static int compare(const struct put *p, struct err *err)
{
	struct store_meta now;
	int rc = s3_head(p->s, p->key, &now, err);
	if (rc == -ENOENT)
		return err_set(err, -ESTALE, "PUT %s: the object is gone", p->key);
	if (rc)
		return rc;
	if (strcmp(now.etag, p->cond->if_match) == 0)
		return 0;
	return err_set(err, -ESTALE, "PUT %s: version %s, expected %s", p->key, now.etag,
		       p->cond->if_match);
}

static int put_unknown(const struct put *p, struct err *err)
{
	static const char impossible[] = "00000000000000000000000000000000";
	int rc = compare(p, err);
	if (rc)
		return rc;
	rc = put_if_match(p, impossible, true, err);
	if (rc == -ESTALE || rc == -ENOENT) {
		remember(p->s, S3_IF_MATCH_QUOTED);
		return -ESTALE;
	}
	if (rc == 0 || rc == -ENOSYS)
		remember(p->s, S3_IF_MATCH_NONE);
	return rc;
}

static int put_compared(const struct put *p, struct err *err)
{
	int rc = compare(p, err);
	return rc ? rc : put_once(p, NULL, NULL, err);
}

static int put_matching(const struct put *p, struct err *err)
{
	enum s3_if_match habit = (enum s3_if_match)atomic_load(&p->s->if_match);
	if (habit == S3_IF_MATCH_UNKNOWN) {
		int rc = put_unknown(p, err);
		habit = (enum s3_if_match)atomic_load(&p->s->if_match);
		/* The trial was refused, as it should: now in earnest. */
		if (rc != -ESTALE || habit == S3_IF_MATCH_UNKNOWN)
			return rc == -ENOSYS ? put_compared(p, err) : rc;
	}
	if (habit == S3_IF_MATCH_NONE)
		return put_compared(p, err);
	const bool quoted = habit == S3_IF_MATCH_QUOTED;
	int rc = put_if_match(p, p->cond->if_match, quoted, err);
	if (rc != -ESTALE && rc != -ENOENT)
		return rc;
	struct err stale = ERR_INIT;
	rc = compare(p, &stale);
	if (rc == 0) {
		rc = put_if_match(p, p->cond->if_match, !quoted, &stale);
		if (rc == 0)
			remember(p->s, quoted ? S3_IF_MATCH_BARE : S3_IF_MATCH_QUOTED);
		if (rc == -ENOENT)
			rc = -ESTALE;
	}
	if (rc)
		err_copy(err, &stale);
	return rc;
}

static int put_absent(const struct put *p, struct err *err)
{
	struct store_meta now;
	int rc = put_once(p, "if-none-match", "*", err);
	if (rc == -ESTALE)
		return err_set(err, -EEXIST, "PUT %s: the object exists", p->key);
	if (rc != -ENOSYS)
		return rc;
	rc = s3_head(p->s, p->key, &now, err);
	if (rc == 0)
		return err_set(err, -EEXIST, "PUT %s: the object exists", p->key);
	return rc == -ENOENT ? put_once(p, NULL, NULL, err) : rc;
}

/* The condition failed: because an earlier attempt of ours was done after all? */
static bool done_before(const struct put *p)
{
	char md5[MD5_HEX];
	struct store_meta now;
	if (!p->cond->again || digest_md5(p->n ? p->body : "", p->n, md5) ||
	    s3_head(p->s, p->key, &now, NULL) || strcmp(now.etag, md5) != 0 || now.size != p->n)
		return false;
	*p->meta = now;
	return true;
}

int s3_put(struct store *store, const char *key, const void *body, size_t n,
	   const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct store_meta own;
	const struct put p = {.s = s3_store_of(store),
			      .key = key,
			      .body = body,
			      .n = n,
			      .cond = cond,
			      .meta = meta ? meta : &own};
	int rc = cond->if_match	       ? put_matching(&p, err)
		 : cond->if_none_match ? put_absent(&p, err)
				       : put_once(&p, NULL, NULL, err);
	if ((rc == -ESTALE || rc == -EEXIST) && done_before(&p))
		return 0;
	/* 404 to a PUT is about the bucket. */
	return rc == -ENOENT || rc == -ENOSYS ? err_wrap(err, -EIO, "put") : rc;
}

int s3_del(struct store *store, const char *key, const struct store_cond *cond, struct err *err)
{
	struct s3_store *s = s3_store_of(store);
	auto_s3_request struct s3_request call = {0};
	const struct s3_spec req = {
		.method = "DELETE", .key = key, .body_max = HTTP_ERROR_BODY_MAX};
	struct store_meta now;
	if (cond->if_match) {
		int rc = s3_head(s, key, &now, err);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		if (strcmp(now.etag, cond->if_match) != 0)
			return err_set(err, -ESTALE, "DELETE %s: version %s, expected %s", key,
				       now.etag, cond->if_match);
	}
	int rc = s3_request_run(&call, s, &req, NULL, err);
	return rc == -ENOENT ? 0 : rc;
}
