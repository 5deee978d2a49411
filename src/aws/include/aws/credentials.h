/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS credentials, from the same sources as the AWS tools, renewed before they expire. They are
 * never logged, and never part of an error message.
 *
 * The first source of this chain that has credentials is used: environment; web identity of the
 * environment; profile of the shared files (keys, role with source profile, web identity, process);
 * container endpoint; instance metadata (version 2). If an option names a profile, this profile is
 * the only source.
 */
#ifndef AWS_CREDENTIALS_H
#define AWS_CREDENTIALS_H

#include <hsmount/err.h>
#include <base/env.h>
#include <base/str.h>

struct cred {
	struct str access_key, secret_key;
	struct str token; /* "" if there is none */
	int64_t expires;  /* seconds since the epoch; 0 if never */
};
void cred_release(struct cred *cred);
#define auto_cred __attribute__((cleanup(cred_release)))

/* One blocking HTTP request of a provider. */
struct cred_fetch {
	const char *method, *url;
	const char *header[4]; /* "Name: value"; the first NULL ends the list */
	const char *body;      /* of a POST, or NULL */
	unsigned int timeout_ms;
	bool to_link_local; /* not through a proxy */
};

/* The environment of the providers. Tests substitute their own. */
struct aws_environment {
	const struct env *env;
	const char *profile; /* option; NULL for AWS_PROFILE, or "default" */
	const char *region;  /* of STS; NULL for that of the environment or of the profile */
	const char *ca_bundle;
	/* Base of relative paths, and working directory of commands. A daemon has changed its
	 * working directory when it renews credentials, so this is the directory in which it was
	 * started. NULL stands for the working directory of the process. */
	const char *directory;
	bool warn; /* log a warning if other users can read a credentials file */
	const char *(*getenv)(const struct aws_environment *w, const char *name);
	int64_t (*wall)(const struct aws_environment *w); /* seconds since the epoch */
	/* Returns 0 with status and body, or a negative errno if no answer arrives. */
	int (*fetch)(const struct aws_environment *w, const struct cred_fetch *req, long *status,
		     struct str *body, struct err *err);
	/* Gets the user's home directory if HOME is not set, or fails with -ENOENT. It is NULL if
	 * there is none. */
	int (*home)(const struct aws_environment *w, struct str *out);
	void *ctx;
};
/* Returns the environment of this process; fetch uses libcurl. */
struct aws_environment aws_environment_real(const struct env *env);

struct credentials;
/* Finds credentials. environment and its strings are copied. On failure, returns NULL with err set;
 * the code is -ENOENT if no source has any, otherwise -EACCES, -EINVAL or another one. */
struct credentials *credentials_new(const struct aws_environment *environment, struct err *err);
void credentials_free(struct credentials *c);
/* Copies the valid credentials to *out. Renews them first if they expire soon; see credentials.c
 * for which callers block. Fails with -EACCES, -EIO or -ENOMEM, but with no code that could be a
 * statement about an object. Any thread except the I/O thread may call it. */
int credentials_get(struct credentials *c, struct cred *out, struct err *err);
/* To be called if the server says that this access key has expired. Returns true if the request is
 * worth another attempt with renewed credentials. */
bool credentials_expired(struct credentials *c, const char *access_key);
/* To be called if the server denies a request without a reason. Some servers (Ceph) do so when a
 * session has expired. Returns true if the request is worth another attempt, because the next
 * credentials_get() rereads the credentials; this happens at most every 30 s, and only for session
 * keys whose expiry time is unknown. */
bool credentials_denied(struct credentials *c, const char *access_key);

#endif
