/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The S3 store's parts: where the bucket is (s3_place.c), one signed request and what its answer
 * means (s3_call.c), gets (s3.c), lists (s3_list.c), puts and deletes (s3_put.c), finding region
 * and rights at the start (s3_probe.c).
 *
 * Threads: nothing changes after the constructor but `if_match`, which is atomic, and `digests`,
 * which have a lock.
 */
#ifndef STORE_S3_H
#define STORE_S3_H

#include <store/s3.h>

#include <stdatomic.h>

#include <base/str.h>

#include "credentials.h"
#include "http.h"
#include "s3_digests.h"
#include "s3_error_xml.h"
#include "sigv4.h"

/* ---- place ---- */

struct s3_place {
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
int s3_place_init(struct s3_place *place, const struct cred_world *world,
		  const struct store_s3_options *opt, struct err *err);
/* What a server calls a region goes into hosts and headers. */
bool s3_region_ok(const char *region);
/* For AWS's own endpoints: the region decides the host. -ENOMEM. */
int s3_place_set_region(struct s3_place *place, const char *region);
/* To where a redirect of a request for the bucket itself leads: "scheme://host[:port]/path", with
 * the bucket in front of the host or at the end of the path. -EINVAL: that is no such place,
 * one without TLS where we had it, or, when requests are signed, one of another service: it would
 * get our session token. The same service is the same host, one below it, or Amazon's. */
int s3_place_redirect(struct s3_place *place, const char *location, bool is_signed);
/* Whether the bucket was put in front of a host that is not Amazon's, and nobody has asked for it:
 * such a host may know it in the path only. */
bool s3_place_is_guess(const struct s3_place *place);
/* Puts it into the path. -ENOMEM. */
int s3_place_use_path(struct s3_place *place);
/* Path of the URL and of the signature; key NULL: the bucket itself. */
void s3_place_path(const struct s3_place *place, const char *key, struct str *out);
void s3_place_release(struct s3_place *place);

/* ---- store ---- */

/* How the server wants the ETag of a PUT's If-Match. */
enum s3_if_match {
	S3_IF_MATCH_UNKNOWN, /* never tried */
	S3_IF_MATCH_QUOTED,  /* AWS, RFC 9110 */
	S3_IF_MATCH_BARE,    /* Ceph */
	S3_IF_MATCH_NONE,    /* ignores it: compare with a HEAD first */
};

struct s3_store {
	struct store base;
	struct http_io *io;
	struct credentials *creds; /* NULL: requests are not signed */
	struct s3_place place;
	char *owner; /* expected bucket owner, NULL */
	bool requester_pays, unchecked;
	atomic_int if_match; /* enum s3_if_match */
	struct s3_digests digests;
};

static inline struct s3_store *s3_store_of(struct store *s)
{
	return (struct s3_store *)s;
}

/* ---- one request ---- */

struct s3_request {
	const char *method;
	const char *key; /* NULL: the bucket */
	const struct sigv4_pair *query, *header;
	size_t n_query, n_header;
	const void *body;
	size_t body_len;
	uint64_t body_max;	    /* of the answer */
	unsigned int first_byte_ms; /* 0: the usual */
};

enum { S3_LOCATION_MAX = 512 };

/* Headers of an answer that S3 gives a meaning. */
struct s3_answer {
	struct store_meta meta;	     /* etag and time; size is 0 until s3_call_meta() */
	uint64_t range_first, total; /* Content-Range; total UINT64_MAX: not told */
	bool has_range, has_etag, is_xml;
	bool etag_is_opaque; /* encrypted with a key: the ETag is no MD5 */
	char request_id[64];
	char bucket_region[32], location[S3_LOCATION_MAX];
	unsigned int again_ms; /* Retry-After; 0: not told */
	int64_t date;	       /* the server's clock, seconds since the epoch; 0: not told */
};

struct s3_call {
	struct http_call http; /* its arg and done are the caller's to set */
	struct s3_answer answer;
	struct s3_store *s;
	const char *method, *what; /* for errors: GET, the key; borrowed from the request */
	struct str url, access_key;
	bool of_session; /* the key is */
};

/* Builds and signs. May wait for a service that renews credentials. The call keeps the method and
 * the key as they are: they must live as long as it. call is to be released whatever is
 * returned. */
int s3_call_init(struct s3_call *call, struct s3_store *s, const struct s3_request *req,
		 struct err *err);
void s3_call_release(struct s3_call *call);
#define auto_s3_call __attribute__((cleanup(s3_call_release)))
/* What the answer means: 0, or a negative errno with "GET key: 503 SlowDown: words (request id)".
 * -EAGAIN: a passing fault, with err->again_ms. -ERANGE: status 416. why may be NULL, else what the
 * body said. */
int s3_call_judge(struct s3_call *call, struct s3_error *why, struct err *err);
/* Both, and the waiting in between. */
int s3_call_run(struct s3_call *call, struct s3_store *s, const struct s3_request *req,
		struct s3_error *why, struct err *err);

/* Blocking head, for the parts. */
int s3_head(struct s3_store *s, const char *key, struct store_meta *meta, struct err *err);

/* Asks the bucket for one key: finds its region and endpoint where others were named, and says in
 * words what would fail later. -ENOENT: no such bucket. */
int s3_probe(struct s3_store *s, const char *prefix, struct err *err);

/* store_ops */
int s3_list(struct store *store, const struct store_list *req, struct store_page *page,
	    struct err *err);
int s3_put(struct store *store, const char *key, const void *body, size_t n,
	   const struct store_cond *cond, struct store_meta *meta, struct err *err);
int s3_del(struct store *store, const char *key, const struct store_cond *cond, struct err *err);

#endif
