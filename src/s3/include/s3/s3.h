/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of a bucket of an S3 service, Amazon's or another one. Temporary failures (429, 500,
 * 502, 503, 504, a broken connection, an incomplete or damaged body, a time-out) are -EAGAIN, so
 * callers wrap the store in store_retry_new().
 */
#ifndef S3_S3_H
#define S3_S3_H

#include <http/stats.h>
#include <store/store.h>

enum store_s3_style {
	STORE_S3_STYLE_AUTO, /* virtual host if the host is a name with a dot and the bucket has no
				dot; otherwise path */
	STORE_S3_STYLE_PATH,
	STORE_S3_STYLE_VIRTUAL,
};

/* Says whether the bodies of whole objects are compared with a CRC that the service sends, or else
 * with the MD5 in their ETag. The body of a put is compared with the MD5 in the ETag of the answer,
 * with AUTO only if requests are not signed: otherwise the service compares it with the SHA-256 or
 * the CRC-32C in the signature. */
enum store_s3_verify {
	STORE_S3_VERIFY_AUTO, /* only over plain HTTP, because TLS detects damage itself */
	STORE_S3_VERIFY_ALWAYS,
	STORE_S3_VERIFY_NEVER, /* the service's ETags look like MD5 and are not */
};

/* The default number of connections. It is enough to fetch the documents of most domains in one
 * round trip. */
enum { STORE_S3_CONNECTIONS = 256 };

/* NULL and 0 mean the setting of the AWS tools (environment variables in capitals, settings of the
 * shared config file in small letters), or the default. */
struct store_s3_options {
	const char *bucket;
	/* The prefix of all keys that will be requested, or NULL. The first request lists this
	 * prefix, because the credentials may allow no more. Keys of requests include the
	 * prefix. */
	const char *prefix;
	/* Keys of objects, up to NULL. If the service refuses the first listing but has one of
	 * these objects, the store is opened. NULL: none. */
	const char *const *evidence;
	const char *endpoint; /* URL. AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url */
	const char *region;  /* AWS_REGION, AWS_DEFAULT_REGION, region; else the service names it */
	const char *profile; /* AWS_PROFILE */
	const char *ca_bundle;		   /* AWS_CA_BUNDLE, ca_bundle; else the system's */
	const char *expected_bucket_owner; /* account id, sent with every request */
	bool requester_pays;
	bool no_sign_request; /* for a public bucket: use no credentials */
	enum store_s3_style style;
	enum store_s3_verify verify;
	struct http_stats *meter;     /* borrowed; may be NULL */
	unsigned int connections;     /* STORE_S3_CONNECTIONS */
	unsigned int connect_ms;      /* 5000 */
	unsigned int first_byte_ms;   /* 20000, from the request to the answer */
	unsigned int low_speed_s;     /* 10; a transfer fails if it is too slow for this time */
	unsigned int low_speed_bytes; /* 1024; too slow is less than this per second */
	/* 60000. If no request is answered for this time, the service counts as unreachable (see
	 * s3/outage.h). Then requests fail at once with -EIO, except for one at a time, until one
	 * is answered. Other limits are at most this. */
	unsigned int retry_ms;
	/* NULL, or a stack of stores that is freed later. If it is over such a store with the same
	 * profile and no_sign_request, at the same service, both share what is known about it. */
	struct store *beside;
};

/* Sends a request to the server, so that a wrong secret, an expired token, a wrong clock or a
 * missing bucket is reported now. On failure, returns NULL with err set; the code is -EACCES,
 * -ENOENT, -EINVAL, -EIO or another one. env is borrowed. No thread is running afterwards, so a
 * daemon may fork. */
struct store *store_s3_new(const struct env *env, const struct store_s3_options *opt,
			   struct err *err);
/* Ends the threads of such a store; the next request starts them again. No request is running when
 * this is called. A daemon that sends requests before it forks needs this. */
void store_s3_stop_thread(struct store *s);
/* Opens connections, without waiting for them, until the store has n; not with HTTP/2. For a caller
 * that is about to send many requests. From the first call on, the store opens a few connections
 * itself when it is used again after a pause. No process may fork afterwards. */
void store_s3_connect(struct store *s, unsigned int n);
/* What the service supports of what the store needs to write safely: conditions of requests, the
 * marks of objects, and CRCs of bodies. The store finds out before its first put with a condition;
 * before the first such put in parts what concerns uploads in parts; and before its first put of a
 * large body over TLS what concerns CRCs. The words are constant. */
enum { STORE_S3_FEATURES = 7 };
struct store_s3_feature {
	const char *name;    /* "put_if_none_match" … */
	const char *support; /* "unknown", "works" … */
};
void store_s3_features(struct store *s, struct store_s3_feature out[STORE_S3_FEATURES]);
/* Appends text, without a NUL, that identifies the store's bucket among the buckets of all
 * services. Fails with -ENOMEM. */
int store_s3_identity(struct store *s, struct bytes *out);

#endif
