/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings as the AWS tools find them: environment variables, and the shared config and credentials
 * files. Pure but for reading those.
 */
#ifndef AWS_PROFILE_H
#define AWS_PROFILE_H

#include <aws/credentials.h>
#include <aws/ini.h>

/* Environment; NULL also when it is empty. */
const char *cred_env(const struct aws_environment *w, const char *name);

/* The two shared files. A file that is not there is empty. */
struct profile_files {
	struct ini config, credentials;
	const char *profile; /* the one in use; borrowed from world or environment */
};
int profile_files_load(const struct aws_environment *w, struct profile_files *out, struct err *err);
void profile_files_release(struct profile_files *files);
#define auto_profiles __attribute__((cleanup(profile_files_release)))
/* A setting of a profile, NULL when it has none. */
const char *profile_get(const struct profile_files *files, const char *profile, const char *key);
/* The endpoint of a service ("s3", "sts") that the profile has in a section of its own, or NULL. */
const char *profile_endpoint(const struct profile_files *files, const char *profile,
			     const char *service);
bool profile_exists(const struct profile_files *files, const char *profile);

#endif
