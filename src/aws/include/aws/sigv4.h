/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4 in the Authorization header ("Authenticating Requests", Amazon S3 API
 * Reference): request, key and time in, header value out. No I/O.
 */
#ifndef AWS_SIGV4_H
#define AWS_SIGV4_H

#include <aws/digest.h>
#include <base/str.h>

struct sigv4_pair {
	const char *name, *value;
};

enum { SIGV4_DATE_SIZE = 17, SIGV4_PAIRS_MAX = 24 };

struct sigv4_request {
	const char *method;
	const char *path;		 /* as sent, with each segment encoded once */
	const struct sigv4_pair *query;	 /* not encoded, in any order */
	const struct sigv4_pair *header; /* to be signed, with host; names in any case and order */
	size_t n_query, n_header;	 /* at most SIGV4_PAIRS_MAX each */
	const char *payload; /* SHA-256 of the body in hexadecimal, or "UNSIGNED-PAYLOAD" */
};

struct sigv4_key {
	const char *access_key, *secret_key;
	const char *region, *service;
};

/* Writes seconds since the epoch as "20130524T000000Z". */
void sigv4_date(int64_t when, char date[SIGV4_DATE_SIZE]);
/* Appends "a=1&b=" in canonical order, which the URL uses, too. Fails with -EINVAL if there are too
 * many pairs, and with -ENOMEM. */
int sigv4_query(const struct sigv4_pair *query, size_t n, struct str *out);

/* Keeps the signing key, which is the same for all requests of a day with the same key, region and
 * service. Any thread may use it. */
struct sigv4_signer;
struct sigv4_signer *sigv4_signer_new(void); /* NULL if out of memory, or if OpenSSL refuses */
void sigv4_signer_free(struct sigv4_signer *signer); /* signer may be NULL */
/* Appends the value of the Authorization header. Fails with -EINVAL if there are too many pairs,
 * with -EIO if OpenSSL refuses, and with -ENOMEM. */
int sigv4_authorization(struct sigv4_signer *signer, const struct sigv4_request *req,
			const struct sigv4_key *key, int64_t when, struct str *out);

#endif
