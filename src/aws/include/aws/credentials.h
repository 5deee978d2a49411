/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS credentials, found as AWS's tools find them, and renewed before they expire. They are never
 * logged, and never part of an error text.
 *
 * The chain, first hit wins: environment; web identity of the environment; profile of the shared
 * files (keys, role with source profile, web identity, process); container endpoint; instance
 * metadata (version 2). A profile that is named by an option goes before the environment.
 */
#ifndef AWS_CREDENTIALS_H
#define AWS_CREDENTIALS_H

#include <hsmount/err.h>
#include <base/env.h>
#include <base/str.h>

struct cred {
	struct str access_key, secret_key;
	struct str token; /* "" for none */
	int64_t expires;  /* seconds since the epoch; 0 never */
};
void cred_release(struct cred *cred);
#define auto_cred __attribute__((cleanup(cred_release)))

/* One blocking HTTP request of a provider. */
struct cred_fetch {
	const char *method, *url;
	const char *header[4]; /* "Name: value"; the first NULL ends */
	const char *body;      /* of a POST; NULL none */
	unsigned int timeout_ms;
	bool to_link_local; /* never through a proxy */
};

/* What providers take from the world, so that tests need none of it. */
struct aws_environment {
	const struct env *env;
	const char *profile; /* option; NULL: AWS_PROFILE, "default" */
	const char *region;  /* of STS; NULL: the environment's, the profile's */
	const char *ca_bundle;
	/* Relative paths are below it, and commands run in it: credentials are renewed by a daemon
	 * that has left the directory of whoever started it. NULL: the process's own. */
	const char *directory;
	bool warn; /* of a credentials file that others can read */
	const char *(*getenv)(const struct aws_environment *w, const char *name);
	int64_t (*wall)(const struct aws_environment *w); /* seconds since the epoch */
	/* 0 with status and body; -ECONNREFUSED …: no answer */
	int (*fetch)(const struct aws_environment *w, const struct cred_fetch *req, long *status,
		     struct str *body, struct err *err);
	/* The user's home directory, where no variable says; -ENOENT. NULL: there is none. */
	int (*home)(const struct aws_environment *w, struct str *out);
	void *ctx;
};
/* The real world; fetch over libcurl. */
struct aws_environment aws_environment_real(const struct env *env);

struct credentials;
/* Finds them for the first time. NULL with -ENOENT (nobody has any; err says where they were
 * looked for), -EACCES, -EINVAL … world is copied, its strings too. */
struct credentials *credentials_new(const struct aws_environment *world, struct err *err);
void credentials_free(struct credentials *c);
/* A copy of those that are valid now. Renews them when they are about to expire: then one caller
 * waits for the service, others only when they have expired already. -EACCES, -EIO, -ENOMEM: none
 * that an object could be the reason of. Any thread but the I/O thread. */
int credentials_get(struct credentials *c, struct cred *out, struct err *err);
/* The server says that this access key has expired: forget it. False when nothing newer could
 * be had. */
bool credentials_expired(struct credentials *c, const char *access_key);
/* The server has denied something to this access key, and some (Ceph) say no more than that when a
 * session is over. True when it is worth another attempt: the next credentials_get() looks whether
 * there is a newer session. Only of those whose end nobody knows, and seldom. */
bool credentials_doubted(struct credentials *c, const char *access_key);

#endif
