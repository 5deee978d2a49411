/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The providers of the chain, one per file. Each fills cred, or returns -ENOENT when it is not
 * configured here (err need not say why), or another code with the reason: then the chain stops.
 */
#ifndef STORE_CRED_PROVIDER_H
#define STORE_CRED_PROVIDER_H

#include "credentials.h"
#include "ini.h"

int cred_from_env(const struct cred_world *w, struct cred *out, struct err *err);
int cred_from_web_env(const struct cred_world *w, struct cred *out, struct err *err);
int cred_from_profile(const struct cred_world *w, struct cred *out, struct err *err);
int cred_from_container(const struct cred_world *w, struct cred *out, struct err *err);
int cred_from_imds(const struct cred_world *w, struct cred *out, struct err *err);

/* ---- shared ---- */

/* Environment; NULL also when it is empty. */
const char *cred_env(const struct cred_world *w, const char *name);

/* The two shared files. A file that is not there is empty. */
struct profile_files {
	struct ini config, credentials;
	const char *profile; /* the one in use; borrowed from world or environment */
};
int profile_files_load(const struct cred_world *w, struct profile_files *out, struct err *err);
void profile_files_release(struct profile_files *files);
#define auto_profiles __attribute__((cleanup(profile_files_release)))
/* A setting of a profile, NULL when it has none. */
const char *profile_get(const struct profile_files *files, const char *profile, const char *key);
/* The endpoint of a service ("s3", "sts") that the profile has in a section of its own, or NULL. */
const char *profile_endpoint(const struct profile_files *files, const char *profile,
			     const char *service);
bool profile_exists(const struct profile_files *files, const char *profile);

/* Up to max bytes of a file. -ENOENT, -EACCES …, -EFBIG. */
int cred_read_file(const struct cred_world *w, const char *path, size_t max, struct str *out,
		   struct err *err);

/* {"AccessKeyId": …, "SecretAccessKey": …, Token: …, "Expiration": …}; token: the name of its
 * member. -EINVAL. what: for the error text. */
int cred_from_json(const struct str *json, const char *token, const char *what, struct cred *out,
		   struct err *err);

/* Standard output of a command, for credential_process. */
int cred_run_process(const struct cred_world *w, const char *command, struct cred *out,
		     struct err *err);

/* STS. base signs AssumeRole; it is not used for the web identity. */
struct sts_role {
	const char *arn, *session, *external_id; /* the last two may be NULL */
	const char *region;			 /* may be NULL */
	const char *duration;			 /* seconds, or NULL */
	const char *endpoint;			 /* may be NULL */
};
int sts_assume_role(const struct cred_world *w, const struct sts_role *role,
		    const struct cred *base, struct cred *out, struct err *err);
int sts_web_identity(const struct cred_world *w, const struct sts_role *role,
		     const char *token_file, struct cred *out, struct err *err);

#endif
