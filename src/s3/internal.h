/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the S3 store share:
 *
 *   s3.c        construction; which file answers which operation
 *   endpoint.c  where the bucket is
 *   discover.c  the first request, which finds region, addressing and rights
 *   flight.c    how a store request becomes a row of HTTP requests
 *   get.c, list.c, put.c   gets and heads; listings; puts and deletes
 *   digests.c, md5_many.c  MD5s of bodies that come together
 *   doubt.c     absence that has to be proved in another way
 *   request.c   one signed HTTP request, and what its answer means
 *
 * The way of a store request: s3.c puts a struct s3_flight into its slot and calls s3_get(),
 * s3_list(), s3_put() or s3_delete(). These describe an HTTP request (struct s3_spec) and call
 * s3_send(). When its answer is there, `next` runs in a worker. It asks s3_request_judge() what the
 * answer means, and then either sends the next one or ends the flight by s3_present(), s3_absent(),
 * s3_fail() or s3_doubt().
 *
 * Threads: nothing of a store changes after the constructor but `if_match`, which is atomic, and
 * `doubts` and `digests`, which have locks. A flight belongs to one thread at a time.
 */
#ifndef S3_INTERNAL_H
#define S3_INTERNAL_H

#include <s3/s3.h>

#include <stdatomic.h>

#include <aws/credentials.h>
#include <http/http.h>
#include <store/implement.h>
#include <aws/error_xml.h>
#include <aws/sigv4.h>
#include <base/str.h>

#include "digests.h"

/* ---- endpoint ---- */

struct s3_endpoint {
	struct str bucket, region;
	struct str host;      /* value of Host; with the bucket in front unless path_style */
	struct str root;      /* path of the endpoint, "" or "/a/b" */
	struct str ca_bundle; /* absolute path, "" for the system's */
	enum store_s3_style style;
	bool path_style, tls;
	bool own_endpoint;  /* not AWS's: a region found later does not change it */
	bool region_is_set; /* by option, environment or profile */
};

/* -EINVAL: a bucket or endpoint that cannot be one; -ENOENT …: certificates. */
int s3_endpoint_init(struct s3_endpoint *endpoint, const struct aws_environment *world,
		     const struct store_s3_options *opt, struct err *err);
/* What a server calls a region goes into hosts and headers. */
bool s3_region_ok(const char *region);
/* For AWS's own endpoints: the region decides the host. -ENOMEM. */
int s3_endpoint_set_region(struct s3_endpoint *endpoint, const char *region);
/* To where a redirect of a request for the bucket itself leads: "scheme://host[:port]/path", with
 * the bucket in front of the host or at the end of the path. -EINVAL: that is no such place,
 * one without TLS where we had it, or, when requests are signed, one of another service: it would
 * get our session token. The same service is the same host, one below it, or Amazon's. */
int s3_endpoint_redirect(struct s3_endpoint *endpoint, const char *location, bool is_signed);
/* Whether the bucket was put in front of a host that is not Amazon's, and nobody has asked for it:
 * such a host may know it in the path only. */
bool s3_endpoint_is_guess(const struct s3_endpoint *endpoint);
/* Puts it into the path. -ENOMEM. */
int s3_endpoint_use_path(struct s3_endpoint *endpoint);
/* Path of the URL and of the signature; key NULL: the bucket itself. */
void s3_endpoint_path(const struct s3_endpoint *endpoint, const char *key, struct str *out);
void s3_endpoint_release(struct s3_endpoint *endpoint);

/* ---- store ---- */

/* How the server wants the ETag of a PUT's If-Match. */
enum s3_if_match {
	S3_IF_MATCH_UNKNOWN, /* never tried */
	S3_IF_MATCH_QUOTED,  /* AWS, RFC 9110 */
	S3_IF_MATCH_BARE,    /* Ceph */
	S3_IF_MATCH_NONE,    /* ignores it: compare with a HEAD first */
};

struct s3_doubts;

struct s3_store {
	struct store base;
	struct http_io *io;
	struct credentials *creds; /* NULL: requests are not signed */
	struct s3_endpoint endpoint;
	char *owner; /* expected bucket owner, NULL */
	bool requester_pays;
	bool unchecked;	     /* bodies are not compared with the MD5 in their ETag */
	atomic_int if_match; /* enum s3_if_match */
	struct s3_doubts *doubts;
	struct s3_digests digests;
};

static inline struct s3_store *s3_store_of(struct store *s)
{
	return (struct s3_store *)s;
}

/* ---- one HTTP request ---- */

/* What is asked for. Borrowed until the request is built; the method, the key and the pieces until
 * it is answered. */
struct s3_spec {
	const char *method; /* of HTTP */
	const char *key;    /* NULL: the bucket */
	const struct sigv4_pair *query, *header;
	size_t n_query, n_header;
	const struct piece *pieces; /* the body */
	size_t n_pieces;
	uint64_t body_max;	    /* of the answer */
	unsigned int first_byte_ms; /* 0: the usual */
	bool ranged; /* and then what to keep of the answer, should the server ignore it */
	uint64_t skip, keep;
};

enum { S3_LOCATION_MAX = 512 };

/* Headers of an answer that S3 gives a meaning. */
struct s3_answer {
	struct store_meta meta;	     /* etag and time; size is 0 */
	uint64_t range_first, total; /* Content-Range; total UINT64_MAX: not told */
	bool has_range, has_etag, is_xml;
	bool etag_is_opaque; /* encrypted with a key: the ETag is no MD5 */
	char request_id[64];
	char bucket_region[32], location[S3_LOCATION_MAX];
	unsigned int again_ms; /* Retry-After; 0: not told */
	int64_t date;	       /* the server's clock, seconds since the epoch; 0: not told */
};

struct s3_request {
	struct http_call http; /* its arg and done are the caller's to set */
	struct s3_answer answer;
	struct s3_store *s;
	const char *method, *what; /* for errors: GET, the key; borrowed from the spec */
	struct str url, access_key;
	bool of_session; /* the access key is a session's: its token is sent, too */
	int failed;	 /* it was not sent: a negative errno, the reason is in the answer's err */
};

/* What s3_request_judge() returns besides 0 and a negative errno. */
enum { S3_DOUBTFUL = 1 /* not there, but not by a 404 in the service's own words */ };

/* Builds and signs. May wait for a service that renews credentials. The request keeps the method
 * and the key as they are: they must live as long as it. It is to be released whatever is
 * returned. */
int s3_request_init(struct s3_request *call, struct s3_store *s, const struct s3_spec *spec,
		    struct err *err);
void s3_request_release(struct s3_request *call);
#define auto_s3_request __attribute__((cleanup(s3_request_release)))
/* The answer has a whole object and its MD5, and the two are to be compared. */
bool s3_request_has_md5(const struct s3_request *call);
/* What the answer means: 0, or a negative errno with "GET key: 503 SlowDown: words (request id)".
 * -ENOENT: the service's error document says that there is no such key. S3_DOUBTFUL: the status
 * says so, but there is no such document, because the request was a HEAD, or because somebody else
 * answered; err is set likewise. -EAGAIN: a passing fault, with err->again_ms. -ERANGE: status
 * 416. why may be NULL, else what the body said. Of a request that was not sent err must be where
 * the reason was put, and is left as it is. */
int s3_request_judge(struct s3_request *call, struct s3_error *why, struct err *err);
/* Both, and the waiting in between; for the constructor. */
int s3_request_run(struct s3_request *call, struct s3_store *s, const struct s3_spec *spec,
		   struct s3_error *why, struct err *err);

/* ---- one store request ---- */

enum { S3_QUOTED_MAX = STORE_ETAG_MAX + 3 };

/* A store request while the S3 store has it, in its slot: a row of HTTP requests, each begun by
 * s3_send() and continued in a worker by its `next`. */
struct listed;
struct s3_flight {
	struct s3_store *s;
	struct store_request *req;
	struct s3_request call; /* the one under way, or the last */
	bool has_call;
	struct s3_digest digest; /* of the body, if it is long */
	void (*next)(struct s3_flight *f);

	bool head;		    /* get.c: asked by a HEAD now, also a get of nothing */
	bool past_end;		    /* get.c: because the range was refused with 416 */
	struct str token;	    /* list.c: of the next page of the server's */
	unsigned int empty_pages;   /* list.c: so far, in a row */
	bool quoted;		    /* put.c: the ETag that was sent */
	struct s3_flight *doubting; /* doubt.c: the next that waits for the same listing */
	struct listed *listing;	    /* doubt.c: where the listing is remembered */
};

/* Signs and sends; `next` goes on in a worker when the answer is there, or here when the request
 * could not be sent. The flight may be gone when this returns. */
void s3_send(struct s3_flight *f, const struct s3_spec *spec, void (*next)(struct s3_flight *f));
/* Completes the store request: the flight is gone. code < 0: as in the answer's err, -ENOENT is not
 * to be given here. */
void s3_present(struct s3_flight *f);
void s3_absent(struct s3_flight *f, enum store_evidence evidence);
void s3_fail(struct s3_flight *f, int code);

void s3_get(struct s3_flight *f);
void s3_list(struct s3_flight *f);
void s3_put(struct s3_flight *f);
void s3_delete(struct s3_flight *f);

/* Asks for an object by a HEAD. Then s3_head_taken(): what came of it, 0 with its meta, -ENOENT
 * (also where the 404 of a HEAD has to be enough, because nothing is concluded from it but that a
 * condition fails), or another errno. */
void s3_ask_head(struct s3_flight *f, void (*next)(struct s3_flight *f));
int s3_head_taken(struct s3_flight *f, struct store_meta *meta);

/* ---- doubt.c ---- */

struct s3_doubts *s3_doubts_new(const struct env *env); /* NULL without memory */
void s3_doubts_free(struct s3_doubts *doubts);
/* The service answered 404 without its own document: completes the request by what a listing says.
 */
void s3_doubt(struct s3_flight *f);

/* ---- listings for others ---- */

struct s3_list_query;
/* Asks for a page. token: NULL, or the server's own word for where to go on. */
void s3_send_list(struct s3_flight *f, const struct s3_list_query *query, const char *token,
		  void (*next)(struct s3_flight *f));
/* What came: fills result, which is to be released in any case. 0 or a negative errno as err says.
 */
struct s3_list_result;
int s3_take_list(struct s3_flight *f, const struct s3_list_query *query,
		 struct s3_list_result *result, struct err *err);

/* Asks the bucket for one key: finds its region and endpoint where others were named, and says in
 * words what would fail later. -ENOENT: no such bucket. */
int s3_discover(struct s3_store *s, const char *prefix, struct err *err);

#endif
