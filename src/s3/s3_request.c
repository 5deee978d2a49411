/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request: headers, signature, URL; and the answer's headers, status and error document. A
 * request is used by the thread that builds it, then by the I/O thread, then by the thread that
 * interprets the answer.
 */
#include "s3_internal.h"

#include "error_hints.h"
#include "etag.h"
#include "object_note.h"
#include "status.h"
#include <aws/time.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { AGAIN_MAX_MS = 20000 }; /* limit for Retry-After, because programs wait for the data */

/* ---- the answer's headers ---- */

/* Reads "bytes 0-9/10"; the total may be an asterisk. The header of a 416 has no range and is
 * ignored. */
static void read_content_range(struct s3_answer *a, const char *value)
{
	uint64_t first, last, total;
	char unknown;
	if (sscanf(value, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &first, &last, &total) == 3) {
		a->range_first = first;
		a->total = total;
		a->has_range = true;
	} else if (sscanf(value, "bytes %" SCNu64 "-%" SCNu64 "/%c", &first, &last, &unknown) ==
		   3) {
		a->range_first = first;
		a->has_range = true;
	}
}

static void read_text(char *to, size_t size, const char *value)
{
	snprintf(to, size, "%s", value);
}

static void on_header(struct http_call *http, const char *name, const char *value)
{
	static const char checksum[] = "x-amz-checksum-";
	struct s3_request *call = (struct s3_request *)http;
	struct s3_answer *a = &call->answer;
	if (!a->is_heard)
		s3_reach_answered(call->s);
	a->is_heard = true;
	if (strcasecmp(name, "etag") == 0) {
		a->has_etag = true;
		s3_etag_read(value, a->meta.etag);
	} else if (strcasecmp(name, "last-modified") == 0) {
		a->meta.mtime_ns = s3_time_http(value) * 1000000000;
	} else if (strcasecmp(name, "content-range") == 0) {
		read_content_range(a, value);
	} else if (strcasecmp(name, "content-type") == 0) {
		a->is_xml = strstr(value, "xml") != NULL;
	} else if (strcasecmp(name, "x-amz-request-id") == 0) {
		read_text(a->request_id, sizeof(a->request_id), value);
	} else if (strcasecmp(name, "x-amz-bucket-region") == 0) {
		read_text(a->bucket_region, sizeof(a->bucket_region), value);
	} else if (strcasecmp(name, "location") == 0) {
		/* A longer location is ignored. */
		if (strlen(value) < sizeof(a->location))
			strcpy(a->location, value);
	} else if (strcasecmp(name, "retry-after") == 0) {
		a->retry_after_ms = s3_time_after(value, (int64_t)time(NULL), AGAIN_MAX_MS);
	} else if (strcasecmp(name, "date") == 0) {
		a->date = s3_time_http(value);
		a->our_date = (int64_t)time(NULL);
	} else if (strncasecmp(name, checksum, sizeof(checksum) - 1) == 0) {
		s3_crc_read(name + sizeof(checksum) - 1, value, &a->crc);
	} else if (strcasecmp(name, S3_NOTE_HEADER) == 0) {
		if (!s3_note_read(value, a->note))
			a->note[0] = '\0';
	} else if (strcasecmp(name, S3_MARK_HEADER) == 0) {
		if (store_mark_ok(value))
			strcpy(a->mark, value);
	} else if (strcasecmp(name, "x-amz-server-side-encryption") == 0) {
		/* With AES256, the service's own key, the ETag is the MD5. */
		a->etag_is_opaque |= strncmp(value, "aws:kms", 7) == 0;
	} else if (strcasecmp(name, "x-amz-server-side-encryption-customer-algorithm") == 0) {
		a->etag_is_opaque = true;
	}
}

/* ---- the request ---- */

struct draft {
	struct sigv4_pair header[SIGV4_PAIRS_MAX];
	size_t n;
	char date[SIGV4_DATE_SIZE], hash[SHA256_HEX], crc[S3_CRC32C_VALUE];
	struct str path;
	struct cred cred;
};

static void add(struct draft *d, const char *name, const char *value)
{
	if (d->n < SIGV4_PAIRS_MAX)
		d->header[d->n++] = (struct sigv4_pair){name, value};
}

/* Says what the signature contains of the body. */
static int draft_digest(struct draft *d, const struct s3_spec *req)
{
	if (!req->crc)
		return digest_sha256(req->pieces, req->n_pieces, d->hash);
	strcpy(d->hash, "UNSIGNED-PAYLOAD");
	s3_crc32c_write(*req->crc, d->crc);
	add(d, S3_CRC32C_HEADER, d->crc);
	return 0;
}

static int draft_header(struct draft *d, struct s3_store *s, const struct s3_spec *req, int64_t now)
{
	add(d, "host", str_text(&s->endpoint.host));
	for (size_t i = 0; i < req->n_header; i++)
		add(d, req->header[i].name, req->header[i].value);
	if (s->requester_pays)
		add(d, "x-amz-request-payer", "requester");
	if (s->owner)
		add(d, "x-amz-expected-bucket-owner", s->owner);
	if (!s->creds)
		return 0;
	const int rc = draft_digest(d, req);
	if (rc)
		return rc;
	sigv4_date(now, d->date);
	add(d, "x-amz-content-sha256", d->hash);
	add(d, "x-amz-date", d->date);
	if (str_text(&d->cred.token)[0])
		add(d, "x-amz-security-token", str_text(&d->cred.token));
	return 0;
}

/* Passes the headers to libcurl. Removes headers that libcurl adds by itself to a request with a
 * body: they are not signed, and Expect costs a round trip. */
static int set_header(struct s3_request *call, const struct draft *d,
		      const struct str *authorization)
{
	static const struct http_header unwanted[] = {{"Expect", ""}, {"Content-Type", ""}};
	enum { UNWANTED = sizeof(unwanted) / sizeof(unwanted[0]) };
	struct http_header header[SIGV4_PAIRS_MAX + 2 + UNWANTED];
	size_t n = 0;
	for (; n < d->n; n++)
		header[n] = (struct http_header){d->header[n].name, d->header[n].value};
	if (authorization->b.len)
		header[n++] = (struct http_header){"Authorization", str_text(authorization)};
	header[n++] = (struct http_header){"User-Agent", "hsmount"};
	if (call->method[0] == 'P') { /* PUT, POST */
		memcpy(&header[n], unwanted, sizeof(unwanted));
		n += UNWANTED;
	}
	return http_call_set_header(&call->http, header, n);
}

static int set_url(struct s3_request *call, const struct s3_spec *req, const struct draft *d)
{
	const struct s3_endpoint *endpoint = &call->s->endpoint;
	str_reserve(&call->url, sizeof("https://") + endpoint->host.b.len + d->path.b.len);
	str_addf(&call->url, "%s://%s%s", endpoint->tls ? "https" : "http",
		 str_text(&endpoint->host), str_text(&d->path));
	if (req->n_query) {
		str_add(&call->url, "?");
		int rc = sigv4_query(req->query, req->n_query, &call->url);
		if (rc)
			return rc;
	}
	call->http.url = str_text(&call->url);
	return str_ok(&call->url) ? 0 : -ENOMEM;
}

static int sign(struct s3_request *call, const struct s3_spec *req, const struct draft *d,
		int64_t now, struct str *authorization)
{
	struct s3_store *s = call->s;
	const struct sigv4_request canonical = {
		.method = req->method,
		.path = str_text(&d->path),
		.query = req->query,
		.header = d->header,
		.n_query = req->n_query,
		.n_header = d->n,
		.payload = d->hash,
	};
	const struct sigv4_key key = {
		.access_key = str_text(&d->cred.access_key),
		.secret_key = str_text(&d->cred.secret_key),
		.region = str_text(&s->endpoint.region),
		.service = "s3",
	};
	if (!s->creds)
		return 0;
	str_add(&call->access_key, key.access_key);
	call->of_session = str_text(&d->cred.token)[0] != '\0';
	return sigv4_authorization(s->signer, &canonical, &key, now, authorization);
}

static int build(struct s3_request *call, const struct s3_spec *req, struct draft *d)
{
	auto_secret struct str authorization = {0};
	call->clock_offset = atomic_load(&call->s->clock_offset);
	const int64_t now = (int64_t)time(NULL) + call->clock_offset;
	s3_endpoint_path(&call->s->endpoint, req->key, &d->path);
	int rc = draft_header(d, call->s, req, now);
	if (rc == 0)
		rc = sign(call, req, d, now, &authorization);
	if (rc == 0)
		rc = set_header(call, d, &authorization);
	return rc ? rc : set_url(call, req, d);
}

static enum http_method metered(const struct s3_spec *req)
{
	static const struct {
		const char *method;
		enum http_method metered;
	} methods[] = {
		{"HEAD", HTTP_HEAD},
		{"PUT", HTTP_PUT},
		{"DELETE", HTTP_DELETE},
	};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(methods[i].method, req->method) == 0)
			return methods[i].metered;
	return req->key ? HTTP_GET : HTTP_LIST;
}

int s3_request_init(struct s3_request *call, struct s3_store *s, const struct s3_spec *req,
		    struct err *err)
{
	struct draft d = {0};
	memset(call, 0, sizeof(*call));
	call->s = s;
	call->method = req->method;
	call->what = req->key ? req->key : str_text(&s->endpoint.bucket);
	call->answer.total = UINT64_MAX;
	call->is_own_probe = req->is_own_probe;
	call->http = (struct http_call){
		.method = req->method,
		.pieces = req->pieces,
		.n_pieces = req->n_pieces,
		.part = req->part,
		.body_len = req->part ? req->part->n : pieces_size(req->pieces, req->n_pieces),
		.body_max = req->body_max,
		.metered = metered(req),
		.first_byte_ms = req->first_byte_ms,
		.ranged = req->ranged,
		.skip = req->skip,
		.keep = req->keep,
		.cancelled = {.fn = s3_reach_ends, .arg = call},
		.is_urgent = req->is_own_probe,
		.on_header = on_header};
	int rc = s3_reach_admit(call, strcmp(req->method, "GET") == 0 || metered(req) == HTTP_HEAD,
				err);
	if (rc)
		return rc;
	rc = s->creds ? credentials_get(s->creds, &d.cred, err) : 0;
	if (rc)
		return err_wrap(err, rc, "%s %s", call->method, call->what);
	rc = build(call, req, &d);
	cred_release(&d.cred);
	str_release(&d.path);
	return rc ? err_errno(err, rc, "%s %s", call->method, call->what) : 0;
}

void s3_request_release(struct s3_request *call)
{
	s3_reach_leave(call);
	http_call_release(&call->http);
	str_release(&call->url);
	str_release(&call->access_key);
}

/* ---- the interpretation of the answer ---- */

/* TLS detects damage itself. */
bool s3_verifies(const struct s3_store *s)
{
	return s->verify == STORE_S3_VERIFY_ALWAYS ||
	       (s->verify == STORE_S3_VERIFY_AUTO && !s->endpoint.tls);
}

/* The signature of a request contains the SHA-256 of its body, or its CRC-32C over TLS. The server
 * compares the two before it stores the object. A second digest would cost more than everything
 * else that the store does for a large body. */
bool s3_put_verifies(const struct s3_store *s)
{
	return s->creds ? s->verify == STORE_S3_VERIFY_ALWAYS : s3_verifies(s);
}

bool s3_request_has_md5(const struct s3_request *call)
{
	return !call->answer.etag_is_opaque && s3_etag_is_md5(call->answer.meta.etag);
}

static int judge_end(const struct s3_request *call, struct err *err)
{
	static const struct {
		enum http_end end;
		int code;
		const char *words;
	} ends[] = {
		{HTTP_TRUNCATED, -EAGAIN, "the body is incomplete"},
		{HTTP_TOO_LONG, -EFBIG, "the body is too long"},
		{HTTP_TIMED_OUT, -EAGAIN, "timed out"},
		{HTTP_REFUSED, -EIO, "the server's certificate or the URL is not valid"},
		{HTTP_BROKEN, -EAGAIN, "connection failed"},
		{HTTP_UNKNOWN, -EAGAIN, "connection failed"},
		{HTTP_CANCELLED, -ECANCELED, "cancelled"},
		{HTTP_NO_MEMORY, -ENOMEM, "out of memory"},
		{HTTP_UNREAD, -EIO, "cannot read the bytes to store"},
	};
	if (s3_reach_explains(call, err))
		return -EAGAIN;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends[i].end == call->http.end)
			return err_set(err, ends[i].code, "%s %s: %s: %s", call->method, call->what,
				       ends[i].words, call->http.reason);
	return 0;
}

/* Some services send an error with status 200 if they detect it after they have begun to answer. */
static bool is_error_with_200(const struct s3_request *call, struct s3_error *why)
{
	return call->http.status == 200 && call->answer.is_xml && !call->answer.has_etag &&
	       s3_error_parse(call->http.answer.data, call->http.answer.len, why);
}

static int describe(const struct s3_request *call, const struct s3_error *why, int rc,
		    struct err *err)
{
	const char *id = why->request_id[0] ? why->request_id : call->answer.request_id;
	return err_set(err, rc, "%s %s: %ld%s%s%s%s%s%s%s", call->method, call->what,
		       call->http.status, why->code[0] ? " " : "", why->code,
		       why->message[0] ? ": " : "", why->message, id[0] ? " (request " : "", id,
		       id[0] ? ")" : "");
}

/* An XML document without an ETag is not an object, so it is an error even if it is too long to be
 * parsed. */
static bool is_long_error_with_200(const struct s3_request *call)
{
	return call->http.end == HTTP_TOO_LONG && call->http.status == 200 && call->answer.is_xml &&
	       !call->answer.has_etag;
}

/* The answer to a HEAD has no code, so any 400 may be an expired token. */
static bool may_have_expired(const struct s3_request *call, const struct s3_error *why)
{
	return strcmp(why->code, "ExpiredToken") == 0 ||
	       (call->http.status == 400 && strcmp(call->method, "HEAD") == 0);
}

/* The service refuses a signature whose time differs by more than 15 minutes from its own. The
 * answer to a HEAD has no code. */
static bool is_skewed(const struct s3_request *call, const struct s3_error *why)
{
	const int64_t tolerance = 300;
	const struct s3_answer *a = &call->answer;
	const int64_t ahead = a->date - a->our_date - call->clock_offset;
	return call->s->creds && a->date && (ahead > tolerance || ahead < -tolerance) &&
	       (strcmp(why->code, "RequestTimeTooSkewed") == 0 ||
		(call->http.status == 403 && !why->code[0]));
}

/* From now on, requests are signed with the time of the service. */
static void set_clock(const struct s3_request *call)
{
	const int64_t ahead = call->answer.date - call->answer.our_date;
	auto_str struct str span = {0};
	if (atomic_exchange(&call->s->clock_offset, ahead) != call->clock_offset)
		return; /* another request has just done it */
	s3_clock_words(-ahead, &span);
	log_warning(
		call->s->base.env->log,
		"the clock of this machine is %s, says %s. Requests are signed with the time of "
		"this service; set the clock",
		str_text(&span), str_text(&call->s->endpoint.host));
}

/* Only the service's own error document with a 404 proves that an object is absent. The answer to a
 * HEAD has no body, and a page that a proxy sends while its servers are down proves nothing. If
 * it were accepted, a stored chunk would read as the fill value. */
static bool is_unproven(const struct s3_request *call, const struct s3_error *why)
{
	return (call->http.status != 404 || strcmp(why->code, "NoSuchKey") != 0) &&
	       (call->http.metered == HTTP_GET || call->http.metered == HTTP_HEAD);
}

int s3_request_judge(struct s3_request *call, struct s3_error *why, struct err *err)
{
	struct s3_error unused;
	const struct bytes *body = &call->http.answer;
	if (!why)
		why = &unused;
	memset(why, 0, sizeof(*why));
	s3_reach_ended(call);
	if (call->failed)
		return call->failed;
	int rc = judge_end(call, err);
	if (rc && is_long_error_with_200(call))
		return err_set(err, -EAGAIN,
			       "%s %s: the answer is a long XML document without an ETag",
			       call->method, call->what);
	if (rc)
		return rc;
	if (call->http.status >= 300)
		s3_error_parse(body->data, body->len, why);
	const bool is_error = is_error_with_200(call, why);
	rc = s3_status_errno(call->http.status, why->code);
	if (is_error && rc == 0)
		rc = -EIO;
	/* A token may expire while the request is sent: the next attempt uses a new one. */
	if (may_have_expired(call, why) && call->s->creds &&
	    credentials_expired(call->s->creds, str_text(&call->access_key)))
		rc = -EAGAIN;
	if (rc == -EACCES && is_skewed(call, why)) {
		set_clock(call);
		rc = -EAGAIN;
	}
	if (rc == -EACCES && call->s->creds &&
	    credentials_denied(call->s->creds, str_text(&call->access_key)))
		rc = -EAGAIN;
	if (rc == 0)
		return 0;
	describe(call, why, rc, err);
	if (rc == -ENOENT && is_unproven(call, why))
		return S3_UNPROVEN;
	if (err && rc == -EAGAIN)
		err->retry_after_ms = call->answer.retry_after_ms;
	return rc;
}

int s3_request_run(struct s3_request *call, struct s3_store *s, const struct s3_spec *req,
		   struct s3_error *why, struct err *err)
{
	if (why)
		memset(why, 0, sizeof(*why));
	int rc = s3_request_init(call, s, req, err);
	if (rc)
		return rc;
	http_run(s->io, &call->http);
	return s3_request_judge(call, why, err);
}
