/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the S3 store:
 *
 *   s3.c        construction; which file answers which operation
 *   endpoint.c  the URL of the bucket
 *   discover.c  the first request, which finds region, addressing and rights
 *   connect.c   connections that are opened before they are needed
 *   operation.c how a store request becomes a series of HTTP requests
 *   get.c, list.c, put.c, delete.c   gets and heads; listings; puts; deletes
 *   conditions.c  which conditions the service supports; operations that wait for the answer
 *   probe_conditions.c     how the store finds that out
 *   multipart.c, upload_parts.c  puts of large objects in parts
 *   put_body.c      bodies that are read from a source
 *   object_note.c      the notes of objects, in headers
 *   put_checksum.c  CRCs that the service sends with an object
 *   absence.c   absence that a listing has to prove
 *   s3_request.c   one signed HTTP request and the interpretation of its answer
 *   outage.c, reach.c  whether the service answers at all
 *
 * For each store request, s3.c puts a struct s3_operation into the private memory of the request
 * and calls s3_get(), s3_list(), s3_put() or s3_delete(). These describe an HTTP request (struct
 * s3_spec) and call s3_send(). When the answer has arrived, `next` runs in a worker. It calls
 * s3_request_judge() to interpret the answer, and then sends another request or ends the operation
 * by s3_present(), s3_absent(), s3_fail() or s3_confirm_absence().
 *
 * A put whose body is a source, and a put in parts, begin in a thread of their own, unless the I/O
 * thread reads the source (put.c). All of a put in parts runs there: s3_send() waits for the answer
 * and calls `next` itself.
 *
 * Threads: a store does not change after the constructor, except for atomic members, and for
 * `bodies`, `reach` and `signer`, which have locks. One thread at a time uses an operation.
 */
#ifndef S3_S3_INTERNAL_H
#define S3_S3_INTERNAL_H

#include <s3/s3.h>

#include <stdatomic.h>

#include <aws/credentials.h>
#include <http/http.h>
#include <store/implement.h>
#include <aws/error_xml.h>
#include <aws/sigv4.h>
#include <base/str.h>

#include "put_checksum.h"
#include "reach.h"

/* ---- endpoint ---- */

struct s3_endpoint {
	struct str bucket, region;
	struct str host;      /* value of Host; begins with the bucket unless path_style */
	struct str root;      /* path of the endpoint, "" or "/a/b" */
	struct str ca_bundle; /* absolute path; "" for the system's certificates */
	enum store_s3_style style;
	bool path_style, tls;
	bool is_custom; /* named by the user or by a redirect, not derived from the region */
};

/* Fails with -EINVAL if the name of the bucket or the endpoint is not valid, and with -ENOENT or
 * another code because of the certificates. */
int s3_endpoint_init(struct s3_endpoint *endpoint, const struct aws_environment *world,
		     const struct store_s3_options *opt, struct err *err);
/* If the path of the endpoint ends with the bucket, as in "http://host/BUCKET", removes it there
 * and returns 0. Otherwise returns 1, or -ENOMEM. */
int s3_endpoint_drop_bucket(struct s3_endpoint *endpoint);
/* Returns true if a region that a server names may be used in hosts and headers. */
bool s3_region_ok(const char *region);
/* Sets the region; at AWS, also the host. Fails with -ENOMEM. */
int s3_endpoint_set_region(struct s3_endpoint *endpoint, const char *region);
/* Follows a redirect of a request for the bucket itself to "scheme://host[:port]/path", with the
 * bucket at the beginning of the host or at the end of the path. Fails with -EINVAL if the location
 * has another form or drops TLS, or, if requests are signed, belongs to another service, which
 * would get the session token. A host belongs to the same service if it is the same host, a
 * subdomain of it, or if both are Amazon's. */
int s3_endpoint_redirect(struct s3_endpoint *endpoint, const char *location, bool is_signed);
/* Returns true if the bucket is part of the host only by default, and the host is not Amazon's.
 * Such a server may accept the bucket only in the path. */
bool s3_endpoint_is_guess(const struct s3_endpoint *endpoint);
/* Moves the bucket from the host to the path. Fails with -ENOMEM. */
int s3_endpoint_use_path(struct s3_endpoint *endpoint);
/* Returns the host and the port of the service, without the bucket. */
const char *s3_endpoint_service(const struct s3_endpoint *endpoint);
/* Appends the path of the URL, which is also the path of the signature. If key is NULL, it is the
 * path of the bucket. */
void s3_endpoint_path(const struct s3_endpoint *endpoint, const char *key, struct str *out);
void s3_endpoint_release(struct s3_endpoint *endpoint);

/* ---- store ---- */

/* What a service may support, and may not. */
enum s3_feature {
	S3_PUT_ABSENT,	 /* If-None-Match of a PUT */
	S3_PUT_MATCH,	 /* If-Match of a PUT */
	S3_DELETE_MATCH, /* If-Match of a DELETE */
	S3_PARTS_ABSENT, /* the same conditions of CompleteMultipartUpload */
	S3_PARTS_MATCH,
	S3_MARKS,   /* a HEAD returns the mark of an object */
	S3_PUT_CRC, /* the CRC-32C of a body without a signature is compared */
	S3_FEATURES,
};

enum s3_support {
	S3_UNKNOWN,  /* not probed yet */
	S3_UNTESTED, /* the service refuses the probe's object */
	S3_WORKS,    /* an ETag is in quotes */
	S3_BARE,     /* works if the ETag is not in quotes */
	S3_IGNORED,  /* the service does not look at it */
	S3_BROKEN,   /* the condition fails although it holds */
	S3_MISSING,  /* the service refuses requests that have it */
};

/* There are three probes: of single requests, of uploads in parts, and of the CRCs of bodies. */
enum s3_probe { S3_PROBE_SINGLE, S3_PROBE_PARTS, S3_PROBE_CRC, S3_PROBES };

struct s3_operation;

struct s3_conditions {
	atomic_int support[S3_FEATURES]; /* enum s3_support */
	pthread_mutex_t lock;		 /* guards what follows */
	struct {
		bool running, done;
		uint64_t again; /* a time of env_now() after which it is not done, or 0 */
		struct s3_operation *waiting;
	} probe[S3_PROBES];
};

/* The memory of bodies that have been read and are being sent. */
struct s3_bodies {
	pthread_mutex_t lock; /* guards all of this */
	pthread_cond_t given;
	uint64_t used;	       /* bytes */
	uint64_t ticket, turn; /* of the next thread that waits, and of the first one */
};

struct s3_store {
	struct store base;
	struct http_io *io;
	struct credentials *creds; /* NULL if requests are not signed; likewise: */
	struct sigv4_signer *signer;
	struct s3_endpoint endpoint;
	/* By how many seconds the service's clock is ahead of this machine's. 0 until the service
	 * has refused a request because its time differs too much. */
	atomic_int_fast64_t clock_offset;
	char *owner; /* expected bucket owner; may be NULL */
	bool requester_pays;
	enum store_s3_verify verify;
	char *prefix; /* of all keys; "" or with a trailing slash */
	struct s3_conditions conditions;
	struct s3_crc_tables crc_tables;
	struct s3_bodies bodies;
	/* Whether the service answers: its own, or that of another store of the same service, which
	 * is freed later. */
	struct s3_reach own_reach, *reach;
	atomic_uint opening;		   /* connections that connect.c is opening */
	atomic_uint_fast64_t connected_ns; /* when it last began to, or 0 */
	atomic_bool closing;
	atomic_bool crc_unconfirmed; /* put.c; it has not compared the CRC of a body */
};

static inline struct s3_store *s3_store_of(struct store *s)
{
	return (struct s3_store *)s;
}

/* ---- one HTTP request ---- */

/* A request. s3_request_init() borrows it until it returns, and the method, the key and the pieces
 * until the request is released. */
struct s3_spec {
	const char *method; /* of HTTP */
	const char *key;    /* NULL for the bucket */
	const struct sigv4_pair *query, *header;
	size_t n_query, n_header;
	const struct piece *pieces; /* the body */
	size_t n_pieces;
	const struct source_part *part; /* the body instead of pieces, with `crc`; or NULL */
	const uint32_t *crc; /* the body's CRC-32C, which is sent instead of its SHA-256, or NULL */
	uint64_t body_max;   /* of the answer */
	unsigned int first_byte_ms; /* 0 for the store's */
	bool is_own_probe;	    /* see outage.h */
	bool ranged;		    /* has a range; skip and keep as in struct http_call */
	uint64_t skip, keep;
};

enum { S3_LOCATION_MAX = 512 };

/* The headers of an answer that are defined by S3. */
struct s3_answer {
	struct store_meta meta;	     /* etag and time; size is 0 */
	uint64_t range_first, total; /* Content-Range; total is UINT64_MAX if unknown */
	bool has_range, has_etag, is_xml;
	bool is_heard;	     /* its first header has arrived */
	bool etag_is_opaque; /* encrypted with a key, so the ETag is not the MD5 */
	struct s3_crc crc;   /* of the whole object; of kind S3_CRC_NONE if there is none */
	char note[STORE_NOTE_MAX + 1]; /* foreign text */
	char mark[STORE_MARK_MAX + 1]; /* "" if there is none, or no valid one */
	char request_id[64];
	char bucket_region[32], location[S3_LOCATION_MAX];
	unsigned int retry_after_ms; /* Retry-After; 0 if there is none */
	int64_t date;	  /* the server's clock, seconds since the epoch; 0 if there is none */
	int64_t our_date; /* this machine's clock when the answer arrived */
};

struct s3_request {
	struct http_call http;	    /* the caller sets arg and done */
	struct cancelled cancelled; /* set by the caller */
	struct s3_answer answer;
	struct s3_store *s;
	const char *method, *what; /* for errors (GET, the key); borrowed from the spec */
	struct str url, access_key;
	int64_t clock_offset; /* with which it was signed, see struct s3_store */
	bool of_session;      /* signed with session keys; the request has a token */
	bool is_own_probe;    /* see outage.h; likewise, until its end is noted: */
	bool is_guest;
	int failed; /* if it could not be sent, a negative errno; the caller's err has the reason */
};

/* A result of s3_request_judge() besides 0 and a negative errno: the answer says that the object
 * does not exist, but does not prove it. */
enum { S3_UNPROVEN = 1 };

/* Builds and signs a request. Fails with -EIO while the service is unreachable. May block while
 * credentials are renewed. Borrows the method and the key of the spec as long as the request lives.
 * The caller releases the request, also after an error. */
int s3_request_init(struct s3_request *call, struct s3_store *s, const struct s3_spec *spec,
		    struct err *err);
void s3_request_release(struct s3_request *call);
#define auto_s3_request __attribute__((cleanup(s3_request_release)))
/* Returns true if bodies from this store are compared with a CRC or with the MD5 in their ETag. */
bool s3_verifies(const struct s3_store *s);
/* Returns true if the MD5 in the ETag of the answer to a PUT is compared with the bytes that were
 * sent. */
bool s3_put_verifies(const struct s3_store *s);
/* Returns true if the ETag of the answer is the MD5 of the object. */
bool s3_request_has_md5(const struct s3_request *call);
/* Interprets the answer. Returns 0, or with err set ("GET key: 503 SlowDown: words (request id)"):
 *
 *   -ENOENT      the service's error document says that there is no such key
 *   -EAGAIN      a temporary failure, with err->retry_after_ms
 *   -ERANGE      status 416
 *   S3_UNPROVEN  the status says that there is no such key, but there is no such document: the
 *                request is a HEAD, or a proxy has answered
 *
 * and other negative errnos. Notes whether the service has answered. *why is the error document;
 * why may be NULL. If the request could not be sent, err is unchanged: it must be the one that
 * s3_request_init() has set. */
int s3_request_judge(struct s3_request *call, struct s3_error *why, struct err *err);
/* Builds a request, sends it, waits for the answer and interprets it. For the constructor. */
int s3_request_run(struct s3_request *call, struct s3_store *s, const struct s3_spec *spec,
		   struct s3_error *why, struct err *err);

/* ---- one store request ---- */

struct s3_upload;

/* A store request while the S3 store works on it; lives in the private memory of the request. It is
 * a series of HTTP requests: s3_send() starts each one, and `next` continues in a worker. */
struct s3_operation {
	struct s3_store *s;
	struct store_request *req;
	struct s3_request call; /* the current one, or the last */
	bool has_call;
	bool gets_object; /* the current request is a GET of the object of req */
	void (*next)(struct s3_operation *op);

	bool head;		  /* get.c; the current request is a HEAD */
	bool past_end;		  /* get.c; it is a HEAD because the range was refused with 416 */
	struct str token;	  /* list.c; continuation token of the server's next page */
	unsigned int empty_pages; /* list.c; consecutive ones so far */
	struct str left_out;	  /* list.c; the first key that was left out, and why */
	/* conditions.c; the next operation that waits for the same probe, and the function that
	 * continues this one. */
	struct s3_operation *waiting;
	void (*then)(struct s3_operation *op);
	/* put.c; the body, which is the caller's, or `loaded`. If it is a part of a source, there
	 * are no pieces. A put in parts does not use it. */
	const struct piece *pieces;
	size_t n_pieces;
	const struct source_part *part;
	struct s3_body *loaded;	  /* put_body.c; NULL if there is none */
	struct s3_upload *upload; /* multipart.c; NULL if the put has no parts */
	void (*free_upload)(struct s3_upload *u);
	bool apart;   /* all of it runs in a thread of its own */
	bool has_crc; /* put.c; the body is sent with a CRC, which is: */
	uint32_t crc;
};

static inline bool has_cond(const struct store_request *req)
{
	return req->cond.if_match || req->cond.if_none_match;
}
static inline struct err *err_of(struct s3_operation *op)
{
	return &op->req->answer.err;
}

/* Signs and sends a request. `next` runs in a worker when the answer has arrived; or in this thread
 * if the request could not be sent, or after a wait if the operation runs apart. The operation may
 * be freed when this returns. */
void s3_send(struct s3_operation *op, const struct s3_spec *spec,
	     void (*next)(struct s3_operation *op));
/* Complete the store request, which frees the operation. code is a negative errno other than
 * -ENOENT, the same as in the answer's err. */
void s3_present(struct s3_operation *op);
void s3_absent(struct s3_operation *op, enum store_evidence evidence);
void s3_fail(struct s3_operation *op, int code);

void s3_get(struct s3_operation *op);
void s3_list(struct s3_operation *op);
void s3_put(struct s3_operation *op);
/* See store_part_min(). */
uint64_t s3_part_min(const struct s3_store *s);
void s3_delete(struct s3_operation *op);

/* A put in parts, in a thread of its own. */
enum { S3_PARTS_MIN = 64 << 20 /* bytes; smaller objects are put at once */ };
void s3_put_parts(struct s3_operation *op);

/* list_uploads.c: see struct store_ops. */
int s3_list_uploads(struct store *s, const char *prefix, struct store_upload_page *page,
		    struct err *err);
int s3_abort_upload(struct store *s, const char *key, const char *id, struct err *err);

/* ---- bodies that are read from a source ---- */

void s3_bodies_init(struct s3_bodies *b);
void s3_bodies_release(struct s3_bodies *b);

/* A part of a body in memory. */
struct s3_body {
	struct s3_store *s;
	uint8_t *data;
	size_t room;	    /* of data, bytes */
	struct piece piece; /* what has been read */
};
/* Allocates memory for n bytes, charged to the budget. A store has a limit for all bodies in
 * memory; one larger body alone is allowed. If wait is true, it waits for other bodies to be sent;
 * a caller that has a body must not wait. Returns NULL if there is no room (without `wait`), or if
 * out of memory. */
struct s3_body *s3_body_new(struct s3_store *s, size_t n, bool wait);
void s3_body_free(struct s3_body *body); /* body may be NULL */
/* Reads the body of the request from offset on, like store_body_read(). */
int s3_body_read(struct s3_body *body, struct store_request *req, uint64_t offset, size_t n);

/* Reads a part, and compares it with its CRC. Blocks. Returns 0, -EIO, or the error of the source.
 */
int s3_part_check(const struct source_part *part, struct err *err);

/* ---- conditions ---- */

void s3_conditions_init(struct s3_conditions *c);
void s3_conditions_release(struct s3_conditions *c);
/* Calls `then` as soon as the probe has been done once; the first caller does it. If the probe
 * cannot be done now, the operation fails with -EAGAIN or another errno, and the next one tries it
 * again. */
void s3_await_probe(struct s3_operation *op, enum s3_probe probe,
		    void (*then)(struct s3_operation *op));
enum s3_support s3_support(const struct s3_store *s, enum s3_feature feature);
/* Records that the service has refused the caller's own request with a condition, or has not
 * confirmed a CRC. From now on the store compares itself, or sends the SHA-256. */
void s3_set_missing(struct s3_store *s, enum s3_feature feature);

/* Makes the header for a condition, if the service checks it. Returns the number of headers: 0 or
 * 1. */
enum { S3_QUOTED_MAX = STORE_ETAG_MAX + 3 };
size_t s3_cond_header(const struct s3_store *s, enum s3_feature feature, const char *etag,
		      char value[S3_QUOTED_MAX], struct sigv4_pair *header);

#define S3_MARK_HEADER "x-amz-meta-hsmount-mark"
/* Makes the header of the mark. Returns the number of headers: 0 or 1. */
size_t s3_mark_header(const char *mark, struct sigv4_pair *header);
/* Returns true if the answer to a HEAD shows the mark of this put. */
bool s3_has_own_mark(const struct s3_operation *op);
bool s3_drops_marks(const struct s3_store *s);

/* Sends the requests of a probe, and waits for them. Fills in the features that it is about. If it
 * fails, nothing is known about them. */
int s3_probe_run(struct s3_store *s, enum s3_probe probe, enum s3_support support[S3_FEATURES],
		 struct err *err);

/* Sends a HEAD of the object. s3_head_result() then returns 0 with the object's meta, -ENOENT or
 * another errno. Here a 404 is sufficient for -ENOENT; callers must not report it as the
 * absence of the object. */
void s3_send_head(struct s3_operation *op, void (*next)(struct s3_operation *op));
int s3_head_result(struct s3_operation *op, struct store_meta *meta);

/* Called after a 404 without the service's own document. A listing decides the result of the
 * request. */
void s3_confirm_absence(struct s3_operation *op);
/* The same for a request that goes on: sends the listing. s3_absence_result() then returns 0 if the
 * object is absent, -EEXIST if the listing names it, or another errno with err set. */
void s3_send_absence(struct s3_operation *op, void (*next)(struct s3_operation *op));
int s3_absence_result(struct s3_operation *op);

/* ---- listings for other files ---- */

struct s3_list_query;
/* Requests a page. token is NULL, or the server's continuation token. */
void s3_send_list(struct s3_operation *op, const struct s3_list_query *query, const char *token,
		  void (*next)(struct s3_operation *op));
/* Reads the answer into result, which the caller releases, also after an error. */
struct s3_list_result;
int s3_read_list(struct s3_operation *op, const struct s3_list_query *query,
		 struct s3_list_result *result, struct err *err);

/* Sends the first request, a listing of one key. It finds the bucket's region and endpoint, and
 * reports errors of the configuration in words. `evidence` is that of struct store_s3_options.
 * Fails with -ENOENT if there is no such bucket. */
int s3_discover(struct s3_store *s, const char *prefix, const char *const *evidence,
		struct err *err);

/* ---- connections that are opened before they are needed ---- */

/* Called before each request. Opens a few connections if the store has not been used for a while,
 * at most once in HTTP_IDLE_S seconds. */
void s3_connect_few(struct s3_store *s);

#endif
