/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the AWS tools: environment variables, and the shared config and credentials
 * files. Reads these files, otherwise pure.
 */
#ifndef AWS_PROFILE_H
#define AWS_PROFILE_H

#include <aws/credentials.h>
#include <aws/ini.h>

/* Returns an environment variable, or NULL if it is unset or empty. */
const char *cred_env(const struct aws_environment *w, const char *name);

/* The two shared files. A missing file counts as empty. */
struct profile_files {
	struct ini config, credentials;
	const char *profile; /* the profile in use; borrowed from the option or the variable */
};
int profile_files_load(const struct aws_environment *w, struct profile_files *out, struct err *err);
void profile_files_release(struct profile_files *files);
#define auto_profiles __attribute__((cleanup(profile_files_release)))
/* Returns a setting of a profile, or NULL if the profile does not have it. */
const char *profile_get(const struct profile_files *files, const char *profile, const char *key);
/* Returns the endpoint of a service ("s3", "sts") in the profile's "services" section, or NULL if
 * there is none. */
const char *profile_endpoint(const struct profile_files *files, const char *profile,
			     const char *service);
bool profile_exists(const struct profile_files *files, const char *profile);

#endif
