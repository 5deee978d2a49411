/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which conditions the service supports, see conditions.c. All requests are for objects
 * of the program's own, with random names below ".hsmount/" in the store's prefix, so no other
 * object is ever changed.
 *
 * Single requests, in this order. "impossible" is an ETag that no object has.
 *
 *   PUT                                 refused: nothing can be tested
 *   PUT, If-None-Match: *               412: works; 200: ignored; others: missing
 *   HEAD                                the mark is there, or it is dropped
 *   PUT, If-Match: "impossible"         412, 404: go on; 200: ignored; others: missing
 *   PUT, If-Match: "own"                200: works; else without quotes:
 *   PUT, If-Match: impossible           200: ignored
 *   PUT, If-Match: own                  200: bare; else broken
 *   DELETE, If-Match: "impossible"      412: go on; else ignored
 *   DELETE, If-Match: "own"             2xx: works; else broken
 *   DELETE                              unless one of the others has deleted it
 *
 * Uploads in parts: PUT of an object, then uploads of one part each, which end with a condition, in
 * the same way.
 *
 * CRCs of bodies, with signatures that do not contain the SHA-256:
 *
 *   PUT, wrong CRC                      400: go on; 200: ignored; others: missing
 *   PUT, right CRC                      200, and the answer repeats the CRC: works; else broken
 *   DELETE
 *
 * A request that fails temporarily is repeated a few times, unless the answer to the next attempt
 * could differ because the first one has succeeded. Then nothing is known, and a later probe begins
 * again with another name. What is left to be deleted is then deleted by one attempt, or stays: a
 * program waits.
 *
 * These functions block. Pure but for the requests.
 */
#include "s3_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/hex.h>

#include "upload_xml.h"

enum {
	ATTEMPTS = 4,
	PAUSE_MS = 100,
	AGAIN_MS = 5000, /* no attempt begins later */
	RANDOM_BYTES = 16,
	ANSWER_MAX = 64 << 10,
	ID_MAX = 2048,
};

static const char impossible[] = "00000000000000000000000000000000";
static const char content[] = "A test of what this service can do. It can be deleted.\n";

/* How the service has answered: the request succeeded, its condition failed, the service refuses
 * it, or the result is not known. */
enum outcome { DONE, FAILED, REFUSED, LATER };

struct probe {
	struct s3_store *s;
	struct err *err; /* of the last request */
	bool is_over;	 /* a request has failed for the moment */
	struct str key;
	char mark[2 * RANDOM_BYTES + 1];
	char etag[STORE_ETAG_MAX];     /* of the object; "" if unknown */
	char seen[STORE_MARK_MAX + 1]; /* its mark, after a HEAD */
	long status;		       /* of the last answer, as is what follows */
	struct s3_crc crc;
	struct bytes body;
};

/* ---- requests ---- */

static enum outcome outcome_of(int rc, long status)
{
	if (rc == 0)
		return DONE;
	if (rc == -EAGAIN || rc == -ENOMEM || rc == -ECANCELED || !status)
		return LATER;
	return status == 412 || status == 404 ? FAILED : REFUSED;
}

/* Returns whether the service says that the body has another CRC. */
static bool is_mismatch(const struct s3_spec *spec, const struct s3_error *why)
{
	return spec->crc && (strcmp(why->code, "BadDigest") == 0 ||
			     strcmp(why->code, "XAmzContentChecksumMismatch") == 0);
}

static enum outcome send_once(struct probe *p, const struct s3_spec *spec)
{
	auto_s3_request struct s3_request call = {0};
	struct s3_error why;
	err_clear(p->err);
	const int rc = s3_request_run(&call, p->s, spec, &why, p->err);
	if (rc == 0 && call.answer.has_etag)
		strcpy(p->etag, call.answer.meta.etag);
	strcpy(p->seen, call.answer.mark);
	p->status = call.http.status;
	p->crc = call.answer.crc;
	bytes_release(&p->body);
	p->body = call.http.answer;
	call.http.answer = (struct bytes){0};
	return is_mismatch(spec, &why) ? REFUSED : outcome_of(rc, call.http.status);
}

static enum outcome send(struct probe *p, const struct s3_spec *spec, bool again)
{
	const struct env *env = p->s->base.env;
	const uint64_t began_ns = env_now(env), most_ns = (uint64_t)AGAIN_MS * 1000 * 1000;
	enum outcome what = send_once(p, spec);
	for (int n = 1; what == LATER && again && !p->is_over && n < ATTEMPTS &&
			env_now(env) - began_ns < most_ns;
	     n++) {
		env->sleep(env, ((uint64_t)PAUSE_MS << n) * 1000 * 1000);
		what = send_once(p, spec);
	}
	p->is_over |= what == LATER;
	return what;
}

/* Makes the header of a condition: none if etag is NULL, If-None-Match if it is "*". */
static size_t condition(const char *etag, bool quoted, char value[S3_QUOTED_MAX],
			struct sigv4_pair *header)
{
	const bool absent = etag && etag[0] == '*';
	if (!etag)
		return 0;
	snprintf(value, S3_QUOTED_MAX, quoted && !absent ? "\"%s\"" : "%s", etag);
	*header = (struct sigv4_pair){absent ? "if-none-match" : "if-match", value};
	return 1;
}

static enum outcome put(struct probe *p, const char *etag, bool quoted)
{
	const struct piece piece = {content, sizeof(content) - 1};
	const bool is_own = etag == p->etag;
	char value[S3_QUOTED_MAX];
	struct sigv4_pair header[2] = {{S3_MARK_HEADER, p->mark}};
	const struct s3_spec spec = {
		.method = "PUT",
		.key = str_text(&p->key),
		.header = header,
		.n_header = 1 + condition(etag, quoted, value, &header[1]),
		.pieces = &piece,
		.n_pieces = 1,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	return send(p, &spec, !is_own);
}

static enum outcome head(struct probe *p)
{
	const struct s3_spec spec = {.method = "HEAD", .key = str_text(&p->key)};
	return send(p, &spec, true);
}

static enum outcome send_delete(struct probe *p, const char *etag)
{
	char value[S3_QUOTED_MAX];
	struct sigv4_pair header;
	const struct s3_spec spec = {
		.method = "DELETE",
		.key = str_text(&p->key),
		.header = &header,
		.n_header = condition(etag, true, value, &header),
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	return send(p, &spec, etag != p->etag);
}

/* ---- single requests ---- */

static enum s3_support after_absent(enum outcome what)
{
	return what == FAILED ? S3_WORKS : what == DONE ? S3_IGNORED : S3_MISSING;
}

/* Sends a request with If-Match. */
typedef enum outcome (*try_fn)(struct probe *p, const char *etag, bool quoted);

static enum outcome probe_match(struct probe *p, try_fn try, enum s3_support *support)
{
	enum outcome what = try(p, impossible, true);
	*support = what == DONE ? S3_IGNORED : S3_MISSING;
	if (what != FAILED)
		return what;
	what = p->etag[0] ? try(p, p->etag, true) : FAILED;
	*support = S3_WORKS;
	if (what == DONE || what == LATER)
		return what;
	what = try(p, impossible, false);
	*support = what == DONE ? S3_IGNORED : S3_BROKEN;
	if (what != FAILED)
		return what;
	what = p->etag[0] ? try(p, p->etag, false) : FAILED;
	*support = what == DONE ? S3_BARE : S3_BROKEN;
	return what;
}

static enum outcome probe_delete(struct probe *p, enum s3_support *support)
{
	enum outcome what = send_delete(p, impossible);
	*support = what == DONE ? S3_IGNORED : S3_MISSING;
	if (what == FAILED && p->etag[0]) {
		what = send_delete(p, p->etag);
		*support = what == DONE ? S3_WORKS : S3_BROKEN;
	}
	return what;
}

static enum outcome probe_single(struct probe *p, enum s3_support support[S3_FEATURES])
{
	enum outcome what = put(p, "*", false);
	support[S3_PUT_ABSENT] = after_absent(what);
	if (what != LATER)
		what = head(p);
	support[S3_MARKS] = what != DONE		    ? S3_UNTESTED
			    : strcmp(p->seen, p->mark) == 0 ? S3_WORKS
							    : S3_IGNORED;
	if (what != LATER)
		what = probe_match(p, put, &support[S3_PUT_MATCH]);
	return what == LATER ? LATER : probe_delete(p, &support[S3_DELETE_MATCH]);
}

/* ---- uploads in parts ---- */

struct upload {
	char id[ID_MAX];
	char etag[STORE_ETAG_MAX]; /* of its part */
};

static enum outcome begin_upload(struct probe *p, struct upload *u)
{
	const struct sigv4_pair query[] = {{"uploads", ""}};
	const struct s3_spec spec = {.method = "POST",
				     .key = str_text(&p->key),
				     .query = query,
				     .n_query = 1,
				     .body_max = ANSWER_MAX};
	const enum outcome what = send(p, &spec, true);
	if (what == DONE &&
	    (s3_xml_element(&p->body, "UploadId", u->id, sizeof(u->id)) || !u->id[0]))
		return REFUSED;
	return what;
}

static enum outcome send_part(struct probe *p, struct upload *u)
{
	const struct piece piece = {content, sizeof(content) - 1};
	const struct sigv4_pair query[] = {{"partNumber", "1"}, {"uploadId", u->id}};
	const struct s3_spec spec = {.method = "PUT",
				     .key = str_text(&p->key),
				     .query = query,
				     .n_query = 2,
				     .pieces = &piece,
				     .n_pieces = 1,
				     .body_max = HTTP_ERROR_BODY_MAX};
	char etag[STORE_ETAG_MAX];
	strcpy(etag, p->etag);
	const enum outcome what = send(p, &spec, true);
	strcpy(u->etag, p->etag);
	strcpy(p->etag, etag);
	return what;
}

static void abort_upload(struct probe *p, const struct upload *u)
{
	struct err unused = ERR_INIT, *err = p->err;
	const struct sigv4_pair query[] = {{"uploadId", u->id}};
	const struct s3_spec spec = {.method = "DELETE",
				     .key = str_text(&p->key),
				     .query = query,
				     .n_query = 1,
				     .body_max = HTTP_ERROR_BODY_MAX};
	p->err = &unused;
	send(p, &spec, true);
	p->err = err;
}

static enum outcome end_upload(struct probe *p, const struct upload *u, const char *etag,
			       bool quoted)
{
	auto_str struct str text = {0};
	char value[S3_QUOTED_MAX];
	struct sigv4_pair header;
	const struct sigv4_pair query[] = {{"uploadId", u->id}};
	str_addf(&text,
		 "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"%s\"</ETag>"
		 "</Part></CompleteMultipartUpload>",
		 u->etag);
	if (!str_ok(&text))
		return LATER;
	const struct piece piece = {text.b.data, text.b.len};
	const struct s3_spec spec = {.method = "POST",
				     .key = str_text(&p->key),
				     .query = query,
				     .n_query = 1,
				     .header = &header,
				     .n_header = condition(etag, quoted, value, &header),
				     .pieces = &piece,
				     .n_pieces = 1,
				     .body_max = ANSWER_MAX};
	return send(p, &spec, false);
}

/* Makes an upload that ends with a condition. The object has a new version afterwards. */
static enum outcome upload(struct probe *p, const char *etag, bool quoted)
{
	struct upload u = {{0}, {0}};
	enum outcome what = begin_upload(p, &u);
	if (what != DONE)
		return what == FAILED ? REFUSED : what;
	what = send_part(p, &u);
	if (what == DONE)
		what = end_upload(p, &u, etag, quoted);
	else if (what == FAILED)
		what = REFUSED;
	if (what != DONE)
		abort_upload(p, &u);
	else if (head(p) == LATER) /* the ETag is in the document, or nowhere */
		what = LATER;
	return what;
}

static enum outcome probe_parts(struct probe *p, enum s3_support support[S3_FEATURES])
{
	const enum outcome what = upload(p, "*", false);
	support[S3_PARTS_ABSENT] = after_absent(what);
	return what == LATER ? LATER : probe_match(p, upload, &support[S3_PARTS_MATCH]);
}

/* ---- CRCs of bodies ---- */

static enum outcome put_crc(struct probe *p, uint32_t crc)
{
	const struct piece piece = {content, sizeof(content) - 1};
	const struct s3_spec spec = {.method = "PUT",
				     .key = str_text(&p->key),
				     .pieces = &piece,
				     .n_pieces = 1,
				     .crc = &crc,
				     .body_max = HTTP_ERROR_BODY_MAX};
	return send(p, &spec, true);
}

static enum outcome probe_crc(struct probe *p, enum s3_support *support)
{
	const uint32_t crc = s3_crc32c_of(&(struct piece){content, sizeof(content) - 1}, 1);
	enum outcome what = put_crc(p, crc ^ 1);
	*support = what == DONE ? S3_IGNORED : S3_MISSING;
	if (what != REFUSED || p->status != 400)
		return what;
	what = put_crc(p, crc);
	*support = what == DONE && p->crc.kind == S3_CRC32C && p->crc.value == crc ? S3_WORKS
										   : S3_BROKEN;
	return what;
}

/* ---- all ---- */

static int name_object(struct probe *p)
{
	const struct env *env = p->s->base.env;
	uint8_t random[2 * RANDOM_BYTES];
	char name[2 * RANDOM_BYTES + 1];
	env->random(env, random, sizeof(random));
	hex_encode(random, RANDOM_BYTES, name);
	hex_encode(random + RANDOM_BYTES, RANDOM_BYTES, p->mark);
	str_addf(&p->key, "%s.hsmount/probe-%s", p->s->prefix, name);
	return str_ok(&p->key) ? 0 : err_no_memory(p->err);
}

static void set_untested(struct probe *p, enum s3_support support[S3_FEATURES])
{
	for (int i = 0; i < S3_FEATURES; i++)
		support[i] = S3_UNTESTED;
	log_info(p->s->base.env->log, "the conditions of writes cannot be tested: %s", p->err->msg);
}

/* The object exists, unless the probe is that of CRCs. */
static enum outcome probe_object(struct probe *p, enum s3_probe probe,
				 enum s3_support support[S3_FEATURES])
{
	const bool single = probe == S3_PROBE_SINGLE;
	struct err unused = ERR_INIT, *err = p->err;
	const enum outcome what = single		  ? probe_single(p, support)
				  : probe == S3_PROBE_CRC ? probe_crc(p, &support[S3_PUT_CRC])
							  : probe_parts(p, support);
	if (what == REFUSED && !p->etag[0]) /* there is no object */
		return what;
	if (single && what == DONE)
		return what;
	p->err = &unused;
	if (send_delete(p, NULL) != DONE)
		log_info(p->s->base.env->log, "object %s is left over: %s", str_text(&p->key),
			 unused.msg);
	p->err = err;
	return what;
}

int s3_probe_run(struct s3_store *s, enum s3_probe probe, enum s3_support support[S3_FEATURES],
		 struct err *err)
{
	struct probe p = {.s = s, .err = err};
	int rc = name_object(&p);
	enum outcome what = rc ? LATER : probe == S3_PROBE_CRC ? DONE : put(&p, NULL, false);
	if (what == DONE)
		what = probe_object(&p, probe, support);
	else if (what != LATER)
		set_untested(&p, support);
	if (what == LATER)
		rc = err_wrap(err, err->code ? err->code : -EAGAIN,
			      "test of the service's conditions");
	str_release(&p.key);
	bytes_release(&p.body);
	return rc;
}
