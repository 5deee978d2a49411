/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket of an S3 service: Amazon's, or any that speaks its protocol. To be wrapped in
 * store_retry_new(): a passing fault (429, 500, 502, 503, 504, a connection that breaks, a body
 * that is cut or damaged, a time-out) is -EAGAIN here.
 */
#ifndef S3_S3_H
#define S3_S3_H

#include <http/stats.h>
#include <store/store.h>

enum store_s3_style {
	STORE_S3_STYLE_AUTO, /* virtual-host where the host is a name with a dot and the bucket
				has none; else path */
	STORE_S3_STYLE_PATH,
	STORE_S3_STYLE_VIRTUAL,
};

/* Connections at once, by default: the documents of most domains in one round. */
enum { STORE_S3_CONNECTIONS = 128 };

/* A zeroed struct with a bucket is what most want. NULL and 0 mean: as the AWS tools find it in
 * environment and shared config file, or the default. */
struct store_s3_options {
	const char *bucket;
	/* What keys will begin with, NULL: with anything. The first request asks for no more, since
	 * rights may end there. Keys are whole nevertheless. */
	const char *prefix;
	const char *endpoint; /* URL. AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url */
	const char *region;   /* AWS_REGION, AWS_DEFAULT_REGION, region; else the bucket is asked */
	const char *profile;  /* AWS_PROFILE */
	const char *ca_bundle;		   /* AWS_CA_BUNDLE, ca_bundle; else the system's */
	const char *expected_bucket_owner; /* account id that every request names */
	bool requester_pays;
	bool no_sign_request; /* a public bucket; no credentials are looked for */
	bool no_etag_check;   /* the server's ETags look like MD5 and are none */
	enum store_s3_style style;
	struct http_stats *meter;     /* borrowed; NULL: nobody counts */
	unsigned int connections;     /* STORE_S3_CONNECTIONS */
	unsigned int connect_ms;      /* 5000 */
	unsigned int first_byte_ms;   /* 20000, from the request to the answer */
	unsigned int low_speed_s;     /* 10 s below */
	unsigned int low_speed_bytes; /* 1024 bytes a second */
};

/* Talks to the server once, so that a wrong secret, an expired token, a clock that is off or a
 * missing bucket is told now: -EACCES, -ENOENT, -EINVAL, -EIO … NULL with err set. env is
 * borrowed. No thread is left behind: a daemon may fork before its first request. */
struct store *store_s3_new(const struct env *env, const struct store_s3_options *opt,
			   struct err *err);
/* Ends the thread of such a store; its next request starts one again. No request is under way. For
 * a daemon that asks before it forks. */
void store_s3_rest(struct store *s);
/* Of such a store: what names its bucket among those of all services, as text without a NUL.
 * -ENOMEM. */
int store_s3_identity(struct store *s, struct bytes *out);

#endif
